// Packed arrays, as pack.py writes them, to arrays of numbers.

const LEVELS = 65534, MISSING = 65535;

// A message {scene, buffers}: every packed array of the scene becomes {rows, cols, values}, values row after row.
export function unpack(message) {
  const buffers = message.buffers.map(part => typeof part === "string" ? fromBase64(part) : part);
  return walk(message.scene, buffers);
}

// A binary message: how long the JSON is, the JSON, and the buffers, each beginning at a multiple of eight bytes.
export function fromBytes(bytes) {
  const length = Number(new DataView(bytes).getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, length)));
  const buffers = [];
  let place = 8 + length;
  for (const size of head.lengths) {
    buffers.push(bytes.slice(place, place + size));
    place += size + (8 - size % 8) % 8;
  }
  return unpack({ scene: head.scene, buffers });
}

function fromBase64(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

function walk(node, buffers) {
  if (Array.isArray(node)) return node.map(entry => walk(entry, buffers));
  if (node === null || typeof node !== "object") return node;
  if ("f8" in node) return { rows: node.rows, cols: 1, values: new Float64Array(buffers[node.f8]) };
  if ("u2" in node) return coarse(node, new Uint16Array(buffers[node.u2]));
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, walk(value, buffers)]));
}

function coarse({ rows, cols, lo, hi, each = cols }, levels) {
  const values = new Float64Array(levels.length);
  for (let i = 0; i < levels.length; i++) {
    const c = i % each;
    values[i] = levels[i] === MISSING ? NaN : lo[c] + (hi[c] - lo[c]) * (levels[i] / LEVELS);
  }
  return { rows, cols, each, values };
}

export function column(packed, c) {
  const result = new Float64Array(packed.rows);
  for (let k = 0; k < packed.rows; k++) result[k] = packed.values[k * packed.cols + c];
  return result;
}

// The times of a run's frames. Without a list of times they are equally spaced, but for the last.
export function frameTimes(run) {
  if (run.t) return run.t.values;
  const t = new Float64Array(run.count);
  for (let k = 0; k < run.count; k++) t[k] = run.begin + k * run.dt;
  t[run.count - 1] = run.end;
  return t;
}

// Between which frames a time lies: [k, part of the way to k + 1].
export function place(times, t) {
  const last = times.length - 1, forward = times[last] >= times[0];
  if (last === 0) return [0, 0];
  let low = 0, high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (forward ? times[middle] <= t : times[middle] >= t) low = middle; else high = middle;
  }
  const part = (t - times[low]) / (times[low + 1] - times[low]);
  return [low, Math.min(1, Math.max(0, part))];
}
