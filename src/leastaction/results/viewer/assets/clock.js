// The clock that all pictures of a page follow.

const SPEEDS = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32, 64];

export class Clock {
  // changed(ticking): the time has gone on by itself, or the reader has done something
  constructor(changed) {
    this.begin = 0; this.end = 1; this.t = 0; this.playing = false;
    this.base = 1; this.factor = 1; // time of the motion for each second of the reader's
    this.changed = changed;
    this.frames = 0;
    this.tick = this.tick.bind(this);
  }

  // A new stretch of time. The reader stays at the same time, if the new stretch contains it.
  span(begin, end, seconds) {
    const within = (this.t - begin) * (this.t - end) <= 0 && this.known;
    [this.begin, this.end] = [begin, end];
    if (!within) this.t = begin;
    this.known = true;
    const length = Math.abs(end - begin);
    this.base = seconds && length >= 2 && length <= 120 ? 1 : nice(length / 20) || 1;
  }

  get speed() { return this.base * this.factor; }

  seek(t) {
    const [low, high] = this.begin <= this.end ? [this.begin, this.end] : [this.end, this.begin];
    this.t = Math.min(high, Math.max(low, t));
    this.changed();
  }

  step(part) { this.seek(this.t + part * (this.end - this.begin)); }

  faster(steps) {
    const at = SPEEDS.indexOf(this.factor) + steps;
    this.factor = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, at))];
    this.changed();
  }

  toggle() { this.playing ? this.pause() : this.play(); }

  play() {
    if (this.playing) return;
    if (this.t === this.end) this.t = this.begin;
    this.playing = true;
    this.last = null;
    requestAnimationFrame(this.tick);
    this.changed();
  }

  pause() { this.playing = false; this.changed(); }

  tick(now) {
    if (!this.playing) return;
    const passed = this.last === null ? 0 : Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    this.frames += 1;
    const forward = this.end >= this.begin ? 1 : -1;
    let t = this.t + forward * passed * this.speed;
    if (forward * (t - this.end) >= 0) t = this.begin; // again from the start
    this.t = t;
    this.changed(true);
    requestAnimationFrame(this.tick);
  }
}

// The largest number of the form 1, 2 or 5 times a power of ten that is not above x.
export function nice(x) {
  if (!(x > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(x)), digit = x / power;
  return power * (digit >= 5 ? 5 : digit >= 2 ? 2 : 1);
}
