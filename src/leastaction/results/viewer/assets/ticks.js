// Numbers and axes as a reader expects them.

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function raised(n) { return [...String(n)].map(c => RAISED[c] ?? c).join(""); }

export function number(x, digits = 4) {
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) {
    const [head, power] = x.toExponential(Math.max(0, digits - 2)).split("e");
    return `${head.replace("-", "−").replace(/\.?0+$/, "")}·10${raised(+power)}`;
  }
  return String(+x.toPrecision(digits)).replace("-", "−");
}

export function ticks(low, high, room) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, room), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find(m => m * power >= rough * 0.999) ?? 10);
  const first = Math.ceil(low / step - 1e-9), found = [];
  for (let k = first; k * step <= high + 1e-9 * step && found.length < 50; k++) found.push(k === 0 ? 0 : +(k * step).toPrecision(12));
  return found;
}

// Labels of an axis; a common power of ten stands apart, so that the labels stay short.
export function tickLabels(values) {
  const size = Math.max(...values.map(Math.abs));
  if (size === 0) return { labels: values.map(() => "0"), factor: "" };
  const power = Math.floor(Math.log10(size));
  if (power >= 5 || power < -2) {
    const unit = 10 ** power;
    return { labels: values.map(v => String(+(v / unit).toPrecision(6)).replace("-", "−")), factor: `×10${raised(power)}` };
  }
  return { labels: values.map(v => String(+v.toPrecision(6)).replace("-", "−")), factor: "" };
}
