// The drawing that moves: points and links in the plane or in space, with trails.

import { frameTimes, place } from "./data.js";
import { below, sharp, stroke } from "./chart.js";
import { tickLabels, ticks } from "./ticks.js";

const SHADES = 12, SEGMENTS = 2400;
const SHORT = 400; // frames of a short trail at most: a line of trail costs 5 µs, and a frame has 16 ms for everything
const PIECES = 12; // of a rod, each with its own depth
const FACING = { azimuth: 0.5, elevation: 0.4 };

// cividis, for trajectories of a cloud: from dark blue to yellow, read alike by every kind of colour vision
const CLOUD = ["#00204d", "#31446b", "#666970", "#958f78", "#cbba69", "#ffea46"];

export class Stage {
  // onDrag(point, target, done): the reader pulls a point of the start; null where no point can be pulled
  constructor(canvas, { onDrag = null, turned = null } = {}) {
    Object.assign(this, { canvas, onDrag, turned });
    this.view = { ...FACING };
    this.trail = "short"; this.pace = 1;
    canvas.addEventListener("pointerdown", event => this.down(event));
    canvas.addEventListener("pointermove", event => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, event => this.up(event));
    canvas.addEventListener("dblclick", () => { this.view = { ...FACING }; this.turned?.(); });
  }

  set(scene, run, frame) {
    const { stage } = scene;
    Object.assign(this, { stage, run, cloud: scene.kind === "cloud" });
    this.wide = frame;
    if (!this.holds()) this.frame = frame; // while a point is held, the scale stays
    this.dim = stage.dim;
    this.times = frameTimes(run);
    if (!this.cloud) {
      this.count = run.fixed.length;
      this.slots = []; // of each point its first column, or null if it never moves
      let next = 0;
      for (const fixed of run.fixed) this.slots.push(fixed ? null : (next += this.dim) - this.dim);
      const outline = new Set(stage.bodies.flatMap(body => body.points)), held = new Set();
      for (const [i, j, kind] of stage.links) for (const k of [i, j]) (kind === "thread" ? outline : held).add(k);
      this.dots = run.fixed.map((_, k) => !outline.has(k) || held.has(k));
    }
  }

  // Lowest and highest coordinates of everything a run shows.
  static reach(run) {
    const { dim } = run, low = Array(dim).fill(Infinity), high = Array(dim).fill(-Infinity);
    const take = (d, x) => { if (x < low[d]) low[d] = x; if (x > high[d]) high[d] = x; };
    const { values } = run.points;
    for (let i = 0; i < values.length; i++) take(i % dim, values[i]);
    for (const place of [...run.fixed ?? [], ...run.corners ?? []]) place?.forEach((x, d) => take(d, x));
    return { low, high };
  }

  at(k, part, point) {
    const slot = this.slots[point];
    if (slot === null) return this.run.fixed[point];
    const { values, cols } = this.run.points, result = [];
    const a = k * cols + slot, b = Math.min(k + 1, this.run.points.rows - 1) * cols + slot;
    for (let d = 0; d < this.dim; d++) result.push(values[a + d] + part * (values[b + d] - values[a + d]));
    return result;
  }

  // From the motion's coordinates to the screen's.
  project() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight, { low, high } = this.frame;
    const axes = this.stage.axes.length > 0 && this.dim === 2;
    const box = this.box = axes
      ? { left: 48, right: width - 14, top: 18, bottom: height - 34 }
      : { left: 22, right: width - 22, top: 22, bottom: height - 22 };
    const [w, h] = [Math.max(10, box.right - box.left), Math.max(10, box.bottom - box.top)];
    const [cx, cy] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const size = low.map((x, d) => Math.max(high[d] - x, 1e-12)), middle = low.map((x, d) => (x + high[d]) / 2);
    if (this.dim === 2) {
      const equal = this.stage.equal, fit = Math.min(w / size[0], h / size[1]);
      const sx = this.sx = equal ? fit : w / size[0] / 1.08, sy = this.sy = equal ? fit : h / size[1] / 1.08;
      this.toScreen = p => [cx + (p[0] - middle[0]) * sx, cy - (p[1] - middle[1]) * sy, 0];
      this.fromScreen = (x, y) => [middle[0] + (x - cx) / sx, middle[1] - (y - cy) / sy];
      return;
    }
    const { azimuth, elevation } = this.view, radius = Math.hypot(...size) / 2, around = Math.max(size[0], size[1]) * Math.SQRT1_2;
    const high3 = around * Math.abs(Math.sin(elevation)) + size[2] / 2 * Math.cos(elevation);
    const scale = Math.min(w / 2 / around, h / 2 / Math.max(high3, 1e-12));
    const right = [Math.cos(azimuth), Math.sin(azimuth), 0];
    // right × up points to the reader, who looks from above where the elevation is positive
    const up = [-Math.sin(azimuth) * Math.sin(elevation), Math.cos(azimuth) * Math.sin(elevation), Math.cos(elevation)];
    const ahead = [-Math.sin(azimuth) * Math.cos(elevation), Math.cos(azimuth) * Math.cos(elevation), -Math.sin(elevation)];
    Object.assign(this, { right, up, scale });
    const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    this.toScreen = p => {
      const from = [p[0] - middle[0], p[1] - middle[1], p[2] - middle[2]];
      return [cx + scale * dot(from, right), cy - scale * dot(from, up), dot(from, ahead) / radius];
    };
  }

  draw(paint, t) {
    const c = sharp(this.canvas, this.ratio);
    c.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    this.project();
    this.paint = paint;
    if (this.dim === 3) this.floor(c, paint);
    if (this.stage.axes.length && this.dim === 2) this.axes(c, paint);
    const [k, part] = this.now = place(this.times, t);
    if (this.cloud) return this.drawCloud(c, paint, k, part);
    const colour = paint.line(this.run.colour);
    for (const point of this.stage.trails) this.drawTrail(c, colour, point, k, part);
    const points = Array.from({ length: this.count }, (_, i) => this.at(k, part, i)), places = this.places = points.map(this.toScreen);
    const drawn = []; // [depth, how], from the farthest to the nearest
    c.lineCap = "round";
    for (const [i, j, kind] of this.stage.links) {
      const pieces = kind === "rod" && this.stage.bodies.length && this.dim === 3 ? PIECES : 1; // a rod may pierce a body
      for (let n = 0; n < pieces; n++) {
        const [a, b] = [between(places[i], places[j], n / pieces), between(places[i], places[j], (n + 1) / pieces)];
        drawn.push([(a[2] + b[2]) / 2, () => link(c, a, b, kind, paint)]);
      }
    }
    for (const body of this.stage.bodies) this.addBody(drawn, c, paint, colour, body, body.points.map(i => points[i]));
    places.forEach((place, i) => { if (this.dots[i]) drawn.push([place[2] - 1e-3, () => this.drawDot(c, paint, colour, i, place)]); });
    for (const [, how] of drawn.sort((a, b) => b[0] - a[0])) how();
  }

  // The faces of a body, on the paper's colour so that nothing behind them is seen.
  addBody(drawn, c, paint, colour, { vertices, faces, shades }, [centre, ...ends]) {
    const corners = vertices.map(along => this.toScreen(centre.map((x, d) => along.reduce((sum, part, e) => sum + part * (ends[e][d] - x), x))));
    faces.forEach((face, f) => {
      const outline = face.map(i => corners[i]), depth = outline.reduce((sum, corner) => sum + corner[2], 0) / face.length;
      drawn.push([depth, () => {
        c.beginPath();
        for (const [x, y] of outline) c.lineTo(x, y);
        c.closePath();
        c.fillStyle = c.strokeStyle = paint.paper; c.lineWidth = 0.75; c.fill(); c.stroke();
        c.globalAlpha = shades[f]; c.fillStyle = c.strokeStyle = colour; c.fill(); c.stroke();
        c.globalAlpha = 1;
      }]);
    });
  }

  drawDot(c, paint, colour, i, [x, y, depth]) {
    const still = this.slots[i] === null, radius = (still ? 4 : this.count > 40 ? 3 : 8) * (1 - 0.15 * depth);
    c.beginPath();
    c.arc(x, y, Math.max(1.5, radius), 0, 2 * Math.PI);
    c.fillStyle = still ? paint.rod : colour;
    c.fill();
    c.lineWidth = 1.5; c.strokeStyle = paint.paper; c.stroke();
    if (i === this.grabbed || i === this.near) {
      c.beginPath(); c.arc(x, y, radius + 5, 0, 2 * Math.PI);
      c.lineWidth = 2; c.strokeStyle = colour; c.stroke();
    }
  }

  trailFrames() {
    // in the reader's seconds, at the usual speed
    const second = Math.max(1, Math.abs(this.pace / this.run.dt));
    return { none: 0, short: Math.min(SHORT, Math.round(1.5 * second)), long: Math.round(8 * second), all: this.run.count }[this.trail];
  }

  // The way that a point has come; older parts are paler.
  drawTrail(c, colour, point, k, part) {
    const length = Math.min(k, this.trailFrames());
    if (!length || this.slots[point] === null) return;
    const stride = Math.max(1, Math.ceil(length / SEGMENTS)), whole = this.trail === "all";
    const steps = Math.ceil(length / stride), shades = whole ? 1 : Math.min(SHADES, steps);
    c.strokeStyle = colour; c.lineWidth = whole ? 1 : 2; c.lineJoin = "bevel"; c.lineCap = "butt";
    for (let shade = 0; shade < shades; shade++) {
      const from = Math.floor(steps * shade / shades), to = Math.floor(steps * (shade + 1) / shades);
      c.globalAlpha = whole ? 0.65 : 0.05 + 0.75 * ((shade + 1) / shades) ** 1.5;
      c.beginPath();
      for (let s = from; s <= to; s++) {
        const back = length - s * stride;
        const [x, y] = back > 0 ? this.toScreen(this.at(k - back, 0, point)) : this.toScreen(this.at(k, part, point));
        s === from ? c.moveTo(x, y) : c.lineTo(x, y);
      }
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  drawCloud(c, paint, k, part) {
    const { values, cols, rows } = this.run.points, { dim } = this, members = this.run.members;
    const next = Math.min(k + 1, rows - 1), size = members > 600 ? 2.5 : members > 100 ? 3.5 : 5;
    const point = (frame, b) => Array.from({ length: dim }, (_, d) => values[frame * cols + b * dim + d]);
    const back = members > 400 ? 0 : Math.min(k, Math.ceil(this.trailFrames() / 4), Math.floor(16000 / members));
    for (let b = 0; b < members; b++) {
      const from = point(k, b), to = point(next, b);
      const [x, y] = this.toScreen(from.map((v, d) => v + part * (to[d] - v)));
      if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
      c.fillStyle = c.strokeStyle = paint.line(cloudColour(members > 1 ? b / (members - 1) : 0));
      if (back) {
        c.globalAlpha = 0.35; c.lineWidth = 1;
        stroke(c, [...Array(back + 1).keys()].map(s => this.toScreen(point(k - back + s, b))).concat([[x, y]]));
        c.globalAlpha = 1;
      }
      c.beginPath(); c.arc(x, y, size, 0, 2 * Math.PI); c.fill();
      if (size > 2.5) { c.strokeStyle = paint.paper; c.lineWidth = 0.75; c.stroke(); }
    }
  }

  axes(c, paint) {
    const { box } = this, [x0, y1] = this.fromScreen(box.left, box.top), [x1, y0] = this.fromScreen(box.right, box.bottom);
    c.font = "11px system-ui, sans-serif"; c.lineWidth = 1; c.strokeStyle = paint.grid; c.fillStyle = paint.faint;
    const xs = ticks(x0, x1, (box.right - box.left) / 90), ys = ticks(y0, y1, (box.bottom - box.top) / 60);
    const xt = tickLabels(xs), yt = tickLabels(ys);
    c.textAlign = "center"; c.textBaseline = "top";
    xs.forEach((x, i) => {
      const [sx] = this.toScreen([x, 0]);
      stroke(c, [[sx, box.top], [sx, box.bottom]]); below(c, xt.labels[i], sx, box.bottom + 4, this.canvas.clientWidth);
    });
    c.textAlign = "right"; c.textBaseline = "middle";
    ys.forEach((y, i) => {
      const [, sy] = this.toScreen([0, y]);
      stroke(c, [[box.left, sy], [box.right, sy]]); c.fillText(yt.labels[i], box.left - 5, sy);
    });
    c.textBaseline = "alphabetic";
    c.fillText(`${this.stage.axes[0]} ${xt.factor}`, box.right, box.bottom + 30);
    c.textAlign = "left"; c.fillText(`${this.stage.axes[1]} ${yt.factor}`, 6, 12);
  }

  // The ground below everything, and the axes at one of its corners, that tell how space is turned.
  floor(c, paint) {
    const { low, high } = this.frame, n = 6, z = low[2];
    const reach = Math.max(high[0] - low[0], high[1] - low[1]) / 2 || 1, x0 = (low[0] + high[0]) / 2, y0 = (low[1] + high[1]) / 2;
    const line = (...ends) => stroke(c, ends.map(this.toScreen));
    c.fillStyle = paint.grid; c.globalAlpha = 0.45;
    c.beginPath();
    for (const [i, j] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) c.lineTo(...this.toScreen([x0 + i * reach, y0 + j * reach, z]).slice(0, 2));
    c.fill();
    c.globalAlpha = 1; c.strokeStyle = paint.grid; c.lineWidth = 1;
    for (let i = -n / 2; i <= n / 2; i++) {
      const s = 2 * i / n * reach;
      line([x0 + s, y0 - reach, z], [x0 + s, y0 + reach, z]);
      line([x0 - reach, y0 + s, z], [x0 + reach, y0 + s, z]);
    }
    const corner = [x0 - reach, y0 - reach, z], names = this.stage.axes.length ? this.stage.axes : ["x", "y", "z"];
    const long = [2 * reach, 2 * reach, Math.max(high[2] - z, 0.6 * reach)];
    c.font = "12px system-ui, sans-serif"; c.strokeStyle = c.fillStyle = paint.faint; c.textAlign = "center"; c.textBaseline = "middle";
    names.forEach((name, d) => {
      const end = part => corner.map((x, e) => e === d ? x + part * long[d] : x), [x, y] = this.toScreen(end(1.08));
      line(corner, end(1));
      c.fillText(name, x, y);
    });
  }

  holds() { return this.grabbed !== null && this.grabbed !== undefined; }

  pointer(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  nearest([x, y], reach) {
    let found = null, least = reach;
    (this.places ?? []).forEach(([px, py], i) => {
      const far = Math.hypot(px - x, py - y);
      if (this.slots[i] !== null && this.dots[i] && far < least) { found = i; least = far; }
    });
    return found;
  }

  down(event) {
    if (event.button !== 0 || !this.toScreen) return;
    const at = this.pointer(event);
    this.grabbed = this.onDrag && !this.cloud ? this.nearest(at, event.pointerType === "mouse" ? 20 : 32) : null;
    this.turning = this.grabbed === null && this.dim === 3 ? at : null;
    if (this.grabbed === null && !this.turning) return;
    this.canvas.setPointerCapture(event.pointerId);
    if (this.grabbed !== null) { this.anchor = at; this.held = this.at(...this.now, this.grabbed); this.onDrag(this.grabbed, this.held, false); }
  }

  move(event) {
    if (!this.toScreen) return;
    const at = this.pointer(event);
    if (this.turning) {
      this.view.azimuth -= (at[0] - this.turning[0]) * 0.008;
      this.view.elevation = Math.min(1.55, Math.max(-1.55, this.view.elevation + (at[1] - this.turning[1]) * 0.008));
      this.turning = at;
      this.turned?.();
    } else if (this.holds()) {
      this.onDrag(this.grabbed, this.target(at), false);
    } else if (this.onDrag && !this.cloud) {
      const near = this.nearest(at, 20);
      if (near !== this.near) { this.near = near; this.canvas.style.cursor = near === null ? "" : "grab"; this.turned?.(); }
    }
  }

  // Where the point that is held should go.
  target([x, y]) {
    const [dx, dy] = [x - this.anchor[0], y - this.anchor[1]];
    if (this.dim === 2) return [this.held[0] + dx / this.sx, this.held[1] - dy / this.sy];
    return this.held.map((v, d) => v + (this.right[d] * dx - this.up[d] * dy) / this.scale);
  }

  up(event) {
    if (this.holds()) this.onDrag(this.grabbed, this.target(this.pointer(event)), true);
    this.grabbed = null; this.turning = null;
    this.frame = this.wide;
  }
}

export function cloudColour(part) {
  const x = part * (CLOUD.length - 1), k = Math.min(CLOUD.length - 2, Math.floor(x)), f = x - k;
  const mix = [1, 3, 5].map(i => {
    const [a, b] = [CLOUD[k], CLOUD[k + 1]].map(hex => parseInt(hex.slice(i, i + 2), 16));
    return Math.round(a + f * (b - a));
  });
  return `#${mix.map(x => x.toString(16).padStart(2, "0")).join("")}`;
}

function between(a, b, part) { return a.map((x, d) => x + part * (b[d] - x)); }

function link(c, a, b, kind, paint) {
  c.strokeStyle = paint.rod;
  c.lineWidth = kind === "thread" ? 1 : 2.5;
  c.globalAlpha = kind === "thread" ? 0.7 : 1;
  if (kind !== "spring") stroke(c, [a, b]);
  else {
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], length = Math.hypot(dx, dy) || 1, coils = 14, wide = 9;
    const [nx, ny] = [-dy / length * wide, dx / length * wide], points = [a];
    for (let i = 0; i <= coils; i++) {
      const part = 0.12 + 0.76 * i / coils, side = i === 0 || i === coils ? 0 : i % 2 ? 1 : -1;
      points.push([a[0] + part * dx + side * nx, a[1] + part * dy + side * ny]);
    }
    c.lineWidth = 1.75; c.lineJoin = "round";
    stroke(c, [...points, b]);
  }
  c.globalAlpha = 1;
}
