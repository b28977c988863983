// A chart on a canvas: curves over time or in a plane, drawn once, and a mark of the present over them.

import { raised, tickLabels, ticks } from "./ticks.js";

const LONG = 600; // points of a curve that is drawn thin

// The canvas at the screen's own resolution; its context in CSS pixels.
export function sharp(canvas, ratio = window.devicePixelRatio || 1) {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const context = canvas.getContext("2d");
  context.setTransform(w / Math.max(1, width), 0, 0, h / Math.max(1, height), 0, 0);
  return context;
}

// The page's colours, as its style sheet has them; black lines take the colour of ink.
export function paints(root) {
  const style = getComputedStyle(root), read = name => style.getPropertyValue(name).trim();
  const ink = read("--ink"), lift = parseFloat(read("--lift")) / 100 || 0;
  return {
    ink, paper: read("--card"), faint: read("--faint"), grid: read("--grid"), rod: read("--rod"),
    line: colour => colour === "#000000" ? ink : lift && colour.startsWith("#") ? lighter(colour, lift) : colour,
  };
}

// On a dark ground colours are mixed with white, as the style sheet tells.
function lighter(colour, lift) {
  const parts = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
  return `rgb(${parts.map(x => Math.round(x + lift * (255 - x))).join(" ")})`;
}

export class Chart {
  // kind: "time", where x is time and a click seeks, or "plane"
  constructor(canvas, { kind, seek = null }) {
    this.canvas = canvas; this.kind = kind; this.series = []; this.stale = true;
    this.still = document.createElement("canvas");
    this.xLabel = this.yLabel = ""; this.log = false; this.dots = false;
    if (seek) this.seekWith(seek);
  }

  // series: {x, y, colour, dash}, arrays of equal length
  set({ series, xLabel, yLabel, log = false, dots = false, equal = false, span = null, frame = null }) {
    Object.assign(this, { series, xLabel, yLabel, log, dots, equal, span, frame, stale: true });
  }

  seekWith(seek) {
    const go = event => {
      const box = this.box;
      if (!box) return;
      const x = event.clientX - this.canvas.getBoundingClientRect().left;
      seek(this.low[0] + (x - box.left) / (box.right - box.left) * (this.high[0] - this.low[0]));
    };
    this.canvas.addEventListener("pointerdown", event => {
      if (event.button !== 0) return;
      this.canvas.setPointerCapture(event.pointerId);
      this.held = true;
      go(event);
    });
    this.canvas.addEventListener("pointermove", event => { if (this.held) go(event); });
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => { this.held = false; });
  }

  value(y) { return this.log ? Math.log10(Math.max(Math.abs(y), 1e-18)) : y; }

  bounds() {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { x, y } of this.series) {
      for (let k = 0; k < x.length; k++) {
        const v = this.value(y[k]);
        if (!Number.isFinite(v) || this.log && y[k] === 0) continue;
        if (x[k] < x0) x0 = x[k];
        if (x[k] > x1) x1 = x[k];
        if (v < y0) y0 = v;
        if (v > y1) y1 = v;
      }
    }
    if (this.frame) [x0, x1, y0, y1] = this.frame;
    if (this.span) [x0, x1] = this.span[0] <= this.span[1] ? this.span : [this.span[1], this.span[0]];
    if (!(x1 >= x0)) [x0, x1] = [0, 1];
    if (!(y1 >= y0)) [y0, y1] = [0, 1];
    if (this.log) { y1 = Math.ceil(y1 + 0.1); y0 = Math.max(y0, y1 - 16); y0 = Math.floor(Math.min(y0, y1 - 2)); }
    // A curve that varies in its last digits only is drawn as a constant, unless it shows changes from a first value.
    const pad = (a, b, part) => b - a > 1e-6 * Math.max(Math.abs(a), Math.abs(b)) ? (b - a) * part : Math.abs(a) * 0.1 || 1e-16;
    const py = this.log ? 0 : pad(y0, y1, 0.08), px = this.kind === "time" ? 0 : pad(x0, x1, 0.06);
    this.low = [x0 - px, y0 - py];
    this.high = [x1 + px, y1 + py];
    if (this.high[0] === this.low[0]) this.high[0] += 1;
  }

  // Everything that does not move.
  drawStill(paint) {
    const { canvas, still } = this, width = canvas.clientWidth, height = canvas.clientHeight;
    [still.width, still.height] = [canvas.width, canvas.height];
    const c = still.getContext("2d"), ratio = canvas.width / Math.max(1, width);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.bounds();
    c.font = "11px system-ui, sans-serif";
    const yTicks = this.log ? this.powers() : ticks(this.low[1], this.high[1], Math.max(2, height / 45));
    const yText = this.log ? { labels: yTicks.map(k => `10${raised(k)}`), factor: "" } : tickLabels(yTicks);
    const left = Math.max(34, ...yText.labels.map(label => c.measureText(label).width + 14));
    const box = this.box = { left, right: width - 12, top: 16, bottom: height - 32 };
    const X = this.X = x => box.left + (x - this.low[0]) / (this.high[0] - this.low[0]) * (box.right - box.left);
    const Y = this.Y = y => box.bottom - (y - this.low[1]) / (this.high[1] - this.low[1]) * (box.bottom - box.top);
    const xTicks = ticks(this.low[0], this.high[0], Math.max(2, width / 90)), xText = tickLabels(xTicks);
    c.lineWidth = 1; c.strokeStyle = paint.grid; c.fillStyle = paint.faint;
    c.textAlign = "center"; c.textBaseline = "top";
    xTicks.forEach((tick, k) => {
      stroke(c, [[X(tick), box.top], [X(tick), box.bottom]]);
      below(c, xText.labels[k], X(tick), box.bottom + 4, width);
    });
    c.textAlign = "right"; c.textBaseline = "middle";
    yTicks.forEach((tick, k) => {
      stroke(c, [[box.left, Y(tick)], [box.right, Y(tick)]]);
      c.fillText(yText.labels[k], box.left - 5, Y(tick));
    });
    c.textBaseline = "alphabetic";
    c.textAlign = "right"; c.fillText(withFactor(this.xLabel, xText.factor), box.right, height - 4);
    c.textAlign = "left"; c.fillText(withFactor(this.yLabel, yText.factor), 4, 10);
    c.save();
    c.beginPath(); c.rect(box.left, box.top - 2, box.right - box.left, box.bottom - box.top + 4); c.clip();
    for (const one of this.series) this.curve(c, one, paint);
    c.restore();
    this.stale = false;
  }

  powers() {
    const step = Math.max(1, Math.ceil((this.high[1] - this.low[1]) / Math.max(2, this.canvas.clientHeight / 34)));
    const found = [];
    for (let k = Math.ceil(this.low[1]); k <= this.high[1]; k++) if ((k - Math.ceil(this.low[1])) % step === 0) found.push(k);
    return found;
  }

  curve(c, { x, y, colour, dash, thin, alpha = 1 }, paint) {
    c.strokeStyle = c.fillStyle = paint.line(colour);
    c.globalAlpha = alpha;
    if (this.dots) {
      for (let k = 0; k < x.length; k++) c.fillRect(this.X(x[k]) - 1, this.Y(this.value(y[k])) - 1, 2, 2);
    } else {
      // Without a GPU a line of a broader curve takes five times as long as one a pixel wide: 5 µs.
      c.lineWidth = thin || x.length > LONG ? 1 : 1.5;
      c.lineJoin = "bevel";
      c.setLineDash(dash ? [5, 4] : []);
      c.beginPath();
      if (this.kind === "time" && x.length > 3 * (this.box.right - this.box.left)) this.outline(c, x, y);
      else this.every(c, x, y);
      c.stroke();
      c.setLineDash([]);
    }
    c.globalAlpha = 1;
  }

  every(c, x, y) {
    let down = false;
    for (let k = 0; k < x.length; k++) {
      const v = this.value(y[k]);
      if (!Number.isFinite(v) || this.log && y[k] === 0) { down = false; continue; }
      if (down) c.lineTo(this.X(x[k]), this.Y(v)); else c.moveTo(this.X(x[k]), this.Y(v));
      down = true;
    }
  }

  // Of many points over one pixel only the lowest and the highest can be seen.
  outline(c, x, y) {
    let pixel = null, low = 0, high = 0, started = false;
    const put = () => {
      if (pixel === null) return;
      if (started) c.lineTo(pixel, this.Y(low)); else c.moveTo(pixel, this.Y(low));
      started = true;
      if (high > low) c.lineTo(pixel, this.Y(high));
    };
    for (let k = 0; k < x.length; k++) {
      const v = this.value(y[k]), at = Math.round(this.X(x[k]) * 2) / 2;
      if (!Number.isFinite(v)) continue;
      if (at !== pixel) { put(); pixel = at; low = high = v; }
      else if (v < low) low = v; else if (v > high) high = v;
    }
    put();
  }

  // The whole chart, with the present: a time, or points [{x, y, colour}] of the plane.
  draw(paint, t, points = []) {
    const before = [this.canvas.width, this.canvas.height];
    const c = sharp(this.canvas, this.ratio);
    if (this.stale || before[0] !== this.canvas.width || before[1] !== this.canvas.height) this.drawStill(paint);
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    c.clearRect(0, 0, width, height);
    c.drawImage(this.still, 0, 0, width, height);
    if (t !== null && this.kind === "time") {
      c.strokeStyle = paint.ink; c.globalAlpha = 0.55; c.lineWidth = 1;
      const x = Math.min(this.box.right, Math.max(this.box.left, this.X(t)));
      stroke(c, [[x, this.box.top], [x, this.box.bottom]]);
      c.globalAlpha = 1;
    }
    for (const { x, y, colour, small } of points) {
      const [px, py] = [this.X(x), this.Y(this.value(y))];
      if (!Number.isFinite(px) || !Number.isFinite(py)) continue;
      c.fillStyle = paint.line(colour);
      if (small) { c.fillRect(px - 1.5, py - 1.5, 3, 3); continue; }
      c.beginPath(); c.arc(px, py, 4.5, 0, 2 * Math.PI); c.fill();
      c.strokeStyle = paint.paper; c.lineWidth = 1.5; c.stroke();
    }
  }
}

function withFactor(label, factor) { return factor ? `${label}  ${factor}` : label; }

// A label under its tick; that of the last tick stays within the picture.
export function below(c, label, x, y, width) { c.fillText(label, Math.min(x, width - c.measureText(label).width / 2 - 2), y); }

export function stroke(c, points) {
  c.beginPath();
  points.forEach(([x, y], k) => k ? c.lineTo(x, y) : c.moveTo(x, y));
  c.stroke();
}
