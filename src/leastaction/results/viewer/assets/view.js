// The page: stages, charts and controls that follow one clock.

import { column, frameTimes, place, unpack } from "./data.js";
import { Clock } from "./clock.js";
import { number } from "./ticks.js";
import { Chart, paints } from "./chart.js";
import { Stage, cloudColour } from "./stage.js";

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function icon(path) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), shape = document.createElementNS(svg.namespaceURI, "path");
  svg.setAttribute("viewBox", "0 0 24 24"); svg.setAttribute("aria-hidden", "true"); shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

const PLAY = "M7 4l13 8-13 8z", PAUSE = "M6 4h4v16H6zM14 4h4v16h-4z";
const SPARING = 60; // milliseconds between two frames while an answer is awaited
const READING = 100; // milliseconds between two readings of the numbers
const TRAILS = [["none", "no trail"], ["short", "short trail"], ["long", "long trail"], ["all", "whole trail"]];
const HELP = "Space plays and pauses · ← → move in time, with Shift further · Home, End · + − change the speed · T trails · L log scale";

export class View {
  // onDrag(run, point, target, done): the drawing may be pulled; onBuild(charts): a place for a chart of one's own
  constructor(root, { onDrag = null, onBuild = null, heading = true, keys = document } = {}) {
    Object.assign(this, { root, onDrag, onBuild });
    root.classList.add("la");
    root.classList.toggle("framed", window.self !== window.top);
    root.replaceChildren();
    this.clock = new Clock(ticking => { if (!ticking) this.told = -Infinity; this.wake(); });
    this.title = element("h1"); this.facts = element("p", { class: "facts" });
    this.stages = element("div", { class: "stages" });
    this.charts = element("div", { class: "charts" });
    this.body = element("div", { class: "body" }, this.stages, this.charts);
    this.makeControls();
    root.append(...(heading ? [element("header", {}, this.title, this.facts)] : []), this.body, this.bar);
    root.tabIndex = -1;
    this.spare = false; this.drawn = -Infinity; this.told = -Infinity;
    this.log = false; this.phase = 0; this.hidden = new Set(); this.waiting = null;
    this.trail = this.trails.value = "short";
    keys.addEventListener("keydown", event => this.key(event));
    const resized = new ResizeObserver(() => this.wake());
    resized.observe(root);
    resized.observe(this.stages);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    root.motion = this;
  }

  makeControls() {
    this.playButton = element("button", { type: "button", class: "play", onclick: () => this.clock.toggle() });
    this.slider = element("input", {
      type: "range", min: 0, max: 1, step: "any", value: 0, "aria-label": "time", class: "time",
      oninput: () => { this.clock.pause(); this.clock.seek(this.clock.begin + this.slider.value * (this.clock.end - this.clock.begin)); },
    });
    this.readout = element("output", { class: "readout" });
    this.slower = element("button", { type: "button", title: "slower (−)", "aria-label": "slower", onclick: () => this.clock.faster(-1) }, "−");
    this.faster = element("button", { type: "button", title: "faster (+)", "aria-label": "faster", onclick: () => this.clock.faster(1) }, "+");
    this.speed = element("output", { class: "speed", title: "time of the motion for a second of yours" });
    this.trails = element("select", { "aria-label": "trails", onchange: () => this.setTrail(this.trails.value) },
      ...TRAILS.map(([value, text]) => element("option", { value }, text)));
    this.help = element("button", { type: "button", class: "keys", title: HELP, "aria-label": `keys: ${HELP}`, onclick: () => this.helpText.toggleAttribute("hidden") }, "?");
    this.helpText = element("p", { class: "help", hidden: true }, HELP);
    this.bar = element("div", { class: "bar", role: "group", "aria-label": "playing" },
      this.playButton, this.slider, this.readout,
      element("span", { class: "group" }, this.slower, this.speed, this.faster), this.trails, this.help, this.helpText);
  }

  // Show a scene; what the reader has chosen stays.
  load(scene) {
    const shape = JSON.stringify([scene.kind, scene.title, scene.runs.map(run => [run.label.split(",")[0], run.curves.map(c => c.name)]),
      scene.coordinates.map(c => c.q), scene.stage.dim]);
    this.scene = scene;
    this.paint = null; this.told = -Infinity;
    if (shape !== this.shape) { this.shape = shape; this.build(); }
    const first = scene.runs[0];
    this.clock.span(first.begin, first.end, scene.seconds);
    this.times = scene.runs.map(frameTimes);
    this.title.textContent = scene.title;
    this.showFacts();
    this.fill();
    this.wake();
  }

  showFacts() {
    const { scene } = this, parts = [];
    if (scene.runs.length === 1) parts.push(scene.runs[0].member ? `${scene.runs[0].method} (${scene.runs[0].member})` : scene.runs[0].method, ...scene.runs[0].facts);
    else parts.push(`${scene.runs.length} runs`);
    for (const [name, value] of scene.params) parts.push(`${name} = ${Array.isArray(value) ? "[…]" : number(value)}`);
    this.facts.replaceChildren(...parts.map(text => element("span", {}, text)));
  }

  build() {
    const { scene } = this, { runs } = scene, cloud = scene.kind === "cloud";
    this.root.classList.toggle("several", runs.length > 1);
    this.stageList = runs.map((run, r) => {
      const canvas = element("canvas", { role: "img", "aria-label": `the motion of ${scene.title}, ${run.label}` });
      const label = element("figcaption"), stage = new Stage(canvas, {
        onDrag: this.onDrag && ((point, target, done) => this.onDrag(r, point, target, done)),
        turned: () => { for (const other of this.stageList) other.view = stage.view; this.wake(); },
      });
      canvas.classList.toggle("turns", scene.stage.dim === 3);
      stage.trail = this.trail; stage.label = label;
      const hint = scene.stage.hint && r === 0 ? [element("details", { class: "hint", open: true },
        element("summary", {}, "pass draw= to see the bodies"), element("pre", {}, scene.stage.hint))] : [];
      this.stages.append(element("figure", { class: "card stage" }, canvas, label, ...hint));
      return stage;
    });
    this.stages.replaceChildren(...this.stageList.map(stage => stage.canvas.parentElement));
    this.trails.hidden = !cloud && !scene.stage.trails.length;
    if (cloud) this.setTrail("none");
    this.hidden = this.aside();
    this.charts.replaceChildren();
    const seek = t => { this.clock.pause(); this.clock.seek(t); };
    this.qChart = this.addChart("coordinates", { kind: "time", seek });
    this.pChart = this.addChart("phase portrait", { kind: "plane" });
    const curves = runs[0].curves, energy = curves.some(c => c.kind === "energy");
    this.eChart = energy ? this.addChart("", { kind: "time", seek }) : null;
    this.iChart = curves.some(c => c.kind === "invariant") ? this.addChart("invariants", { kind: "time", seek }) : null;
    if (scene.coordinates.length > 1) {
      this.phaseSelect = element("select", { "aria-label": "coordinate of the phase portrait", onchange: () => { this.phase = +this.phaseSelect.value; this.fill(); this.wake(); } },
        ...scene.coordinates.map((one, j) => element("option", { value: j }, `${one.q}, ${one.p}`)));
      this.phase = this.lively();
      this.phaseSelect.value = this.phase;
      this.pChart.head.append(this.phaseSelect);
    } else this.phase = 0;
    for (const chart of [this.eChart, this.iChart]) if (chart) {
      chart.logButton = element("button", { type: "button", class: "log", "aria-pressed": "false", title: "logarithmic scale (L)", onclick: () => this.setLog(!this.log) }, "log");
      chart.head.append(chart.logButton);
    }
    this.more = this.onBuild?.() ?? [];
  }

  // Coordinates that grow so much that the curves of the others would look flat, such as a top's spin.
  aside() {
    const { runs, coordinates, kind } = this.scene;
    if (kind === "cloud" || coordinates.length < 3) return new Set();
    const reach = coordinates.map((_, j) => { const [low, high] = this.range(runs[0].q, j); return high - low; });
    const usual = [...reach].sort((a, b) => a - b)[Math.floor(reach.length / 2)];
    return new Set(reach.flatMap((x, j) => x > 20 * usual ? [j] : []));
  }

  // The first coordinate whose momentum changes: the phase portrait of any other coordinate is a line.
  lively() {
    const found = this.scene.coordinates.findIndex((_, j) => {
      const [low, high] = this.range(this.scene.runs[0].p, j);
      return high - low > 1e-3 * Math.max(Math.abs(low), Math.abs(high));
    });
    return Math.max(0, found);
  }

  addChart(title, options) {
    const canvas = element("canvas", { role: "img", "aria-label": title || "energy" }), chart = new Chart(canvas, options);
    chart.heading = element("h2", {}, title); chart.legend = element("span", { class: "legend" });
    chart.head = element("div", { class: "head" }, chart.heading, chart.legend);
    chart.card = element("section", { class: "card chart" }, chart.head, element("div", { class: "plot" }, canvas));
    this.charts.append(chart.card);
    return chart;
  }

  // Data to stages and charts.
  fill() {
    const { scene } = this, { runs, coordinates } = scene, cloud = scene.kind === "cloud";
    const reaches = runs.map(Stage.reach), frame = { low: [...reaches[0].low], high: [...reaches[0].high] };
    for (const { low, high } of reaches) low.forEach((x, d) => { frame.low[d] = Math.min(frame.low[d], x); frame.high[d] = Math.max(frame.high[d], high[d]); });
    const span = [runs[0].begin, runs[0].end], two = runs.length > 1;
    runs.forEach((run, r) => {
      const stage = this.stageList[r];
      stage.set(scene, run, frame);
      stage.pace = this.clock.base;
      stage.label.replaceChildren(...(two ? [swatch(run), run.label] : scene.stage.what ? [scene.stage.what] : []));
    });
    const series = [];
    if (cloud) {
      const run = runs[0], each = run.q.each, shown = Math.min(run.members, 80);
      for (let i = 0; i < shown; i++) {
        const b = Math.round(i * (run.members - 1) / Math.max(1, shown - 1));
        series.push({ x: this.times[0], y: column(run.q, b * each + this.phase), colour: cloudColour(b / Math.max(1, run.members - 1)), thin: true, alpha: 0.5 });
      }
      this.qChart.heading.textContent = `${coordinates[this.phase].q} over time`;
      this.qChart.set({ series, xLabel: scene.time, yLabel: coordinates[this.phase].q_label, span });
      const all = this.range(run.q, this.phase).concat(this.range(run.p, this.phase));
      this.pChart.set({ series: [], xLabel: coordinates[this.phase].q_label, yLabel: coordinates[this.phase].p_label, frame: all });
    } else {
      const shown = coordinates.map((_, j) => j).filter(j => !this.hidden.has(j));
      runs.forEach((run, r) => shown.forEach(j => series.push({
        x: this.times[r], y: column(run.q, j), colour: two ? run.colour : coordinates[j].colour, dash: two ? run.dash : false, thin: shown.length > 4, alpha: two ? 0.9 : 1,
      })));
      this.qChart.set({ series, xLabel: scene.time, yLabel: shown.length === 1 ? coordinates[shown[0]].q_label : "", span });
      this.values = coordinates.map(() => element("b"));
      this.qChart.legend.replaceChildren(
        ...(two ? runs.map(run => element("span", {}, swatch(run), run.method)) : []),
        ...coordinates.map((one, j) => element("button", {
          type: "button", class: "chip", title: `show or hide ${one.q}`, "aria-pressed": !this.hidden.has(j), onclick: () => this.toggleCurve(j),
        }, ...(two ? [one.q] : [swatch(one), `${one.q} = `, this.values[j]]))));
      this.pChart.set({
        series: runs.map((run, r) => ({ x: column(run.q, this.phase), y: column(run.p, this.phase), colour: run.colour, dash: run.dash, thin: true, alpha: 0.8 })),
        xLabel: coordinates[this.phase].q_label, yLabel: coordinates[this.phase].p_label,
      });
    }
    this.pChart.card.querySelector("canvas").setAttribute("aria-label", `phase portrait of ${coordinates[this.phase].q}`);
    this.fillCurves();
  }

  range(packed, j) {
    let low = Infinity, high = -Infinity;
    for (let i = j; i < packed.values.length; i += packed.each ?? packed.cols) { const v = packed.values[i]; if (v < low) low = v; if (v > high) high = v; }
    return [low, high];
  }

  fillCurves() {
    const { scene } = this, { runs } = scene, two = runs.length > 1;
    if (this.eChart) {
      const energies = runs.map(run => run.curves.find(c => c.kind === "energy"));
      this.eChart.heading.textContent = energies[0].name;
      this.eChart.legend.replaceChildren(...runs.map((run, r) => element("span", {}, ...(two ? [swatch(run)] : []), `largest ${number(energies[r].largest, 2)}`)));
      this.eChart.set({
        series: energies.map((curve, r) => ({ x: curve.t.values, y: curve.y.values, colour: runs[r].colour, dash: runs[r].dash })),
        xLabel: scene.time, yLabel: "", log: this.log,
      });
      this.eChart.logButton.setAttribute("aria-pressed", this.log);
    }
    if (this.iChart) {
      const kept = runs.map(run => run.curves.filter(c => c.kind === "invariant"));
      const series = [], legend = [];
      kept.forEach((curves, r) => curves.forEach((curve, i) => {
        const colour = two ? runs[r].colour : scene.palette[i % scene.palette.length];
        series.push({ x: curve.t.values, y: curve.y.values, colour, dash: two ? runs[r].dash : false });
        if (!two) legend.push(element("span", {}, swatch({ colour }), curve.name));
      }));
      if (two) legend.push(...runs.map(run => element("span", {}, swatch(run), run.method)));
      this.iChart.heading.textContent = two ? `change of ${kept[0].map(c => c.name).join(", ")}` : "change of invariants";
      this.iChart.legend.replaceChildren(...legend);
      this.iChart.set({ series, xLabel: scene.time, yLabel: "", log: this.log });
      this.iChart.logButton.setAttribute("aria-pressed", this.log);
    }
  }

  toggleCurve(j) {
    if (!this.hidden.delete(j)) this.hidden.add(j);
    if (this.hidden.size === this.scene.coordinates.length) this.hidden.clear();
    this.fill();
    this.wake();
  }

  setLog(log) { this.log = log; this.fillCurves(); this.wake(); }

  setTrail(trail) {
    this.trail = this.trails.value = trail;
    for (const stage of this.stageList) stage.trail = trail;
    this.wake();
  }

  // Draw soon, once. While `spare` is set, something is awaited: the motion that plays meanwhile is drawn less often, so that
  // its frames do not keep the answer waiting.
  wake() {
    this.waiting ??= requestAnimationFrame(now => {
      this.waiting = null;
      if (this.spare && this.clock.playing && now - this.drawn < SPARING) return;
      this.drawn = now;
      this.draw();
    });
  }

  // Draw at once, and not a second time soon.
  drawNow() {
    if (this.waiting !== null) cancelAnimationFrame(this.waiting);
    this.waiting = null;
    this.draw();
  }

  repaint() {
    this.paint = null;
    for (const chart of this.chartList()) chart.stale = true;
    this.wake();
  }

  chartList() { return [this.qChart, this.pChart, this.eChart, this.iChart, ...this.more ?? []].filter(Boolean); }

  // On paper everything is drawn on white, sharper, at once.
  print(begin) {
    if (!this.scene) return;
    this.root.classList.toggle("printing", begin);
    this.paint = null;
    for (const one of [...this.chartList(), ...this.stageList]) { one.ratio = begin ? 3 : undefined; one.stale = true; }
    this.draw();
  }

  draw() {
    if (!this.scene || !this.root.isConnected) return;
    const { clock, scene } = this, { t } = clock;
    this.paint ??= paints(this.root);
    const { paint } = this;
    this.stageList.forEach(stage => stage.draw(paint, t));
    this.qChart.draw(paint, t);
    this.pChart.draw(paint, null, this.present(t));
    this.eChart?.draw(paint, t);
    this.iChart?.draw(paint, t);
    for (const chart of this.more) chart.draw(paint, null);
    // Text and slider make the browser lay out the page anew, which takes longer than all drawing: while the motion plays, a
    // reader who watches it reads ten times a second at most.
    const now = performance.now();
    if (clock.playing && now - this.told < READING) return;
    this.told = now;
    if (document.activeElement !== this.slider || clock.playing) this.slider.value = clock.end === clock.begin ? 0 : (t - clock.begin) / (clock.end - clock.begin);
    const unit = scene.seconds ? " s" : "", digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(clock.end - clock.begin) / 10 || 1))));
    const shown = `t = ${t.toFixed(digits).replace("-", "−")}${unit}`;
    if (this.readout.value !== shown) { this.readout.value = shown; this.slider.setAttribute("aria-valuetext", shown); }
    const speed = scene.seconds ? `×${number(clock.speed, 3)}` : `${number(clock.speed, 3)} /s`;
    if (this.speed.value !== speed) this.speed.value = speed;
    if (this.shownPlaying !== clock.playing) {
      this.shownPlaying = clock.playing;
      this.playButton.replaceChildren(icon(clock.playing ? PAUSE : PLAY));
      this.playButton.setAttribute("aria-label", clock.playing ? "pause" : "play");
    }
    this.values?.forEach((node, j) => {
      const text = number(this.q(0, j, t), 4);
      if (node.textContent !== text) node.textContent = text;
    });
  }

  q(r, j, t, which = "q") {
    const packed = this.scene.runs[r][which], [k, part] = place(this.times[r], t), next = Math.min(k + 1, packed.rows - 1);
    const a = packed.values[k * packed.cols + j];
    return a + part * (packed.values[next * packed.cols + j] - a);
  }

  // Where the runs are now in the phase portrait.
  present(t) {
    const { runs, kind } = this.scene;
    if (kind !== "cloud") return runs.map((run, r) => ({ x: this.q(r, this.phase, t), y: this.q(r, this.phase, t, "p"), colour: run.colour }));
    const run = runs[0], { each } = run.q, result = [];
    for (let b = 0; b < run.members; b++) {
      const j = b * each + this.phase;
      result.push({ x: this.q(0, j, t), y: this.q(0, j, t, "p"), colour: cloudColour(b / Math.max(1, run.members - 1)), small: true });
    }
    return result;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.scene) return;
    const kind = event.target.tagName, typing = kind === "TEXTAREA" || kind === "SELECT" || kind === "INPUT" && event.target !== this.slider;
    if (typing || kind === "BUTTON" && event.key === " ") return;
    const far = event.shiftKey ? 0.1 : 0.005, { clock } = this;
    const stop = then => { clock.pause(); then(); };
    const acts = {
      " ": () => clock.toggle(),
      ArrowLeft: () => stop(() => clock.step(-far)), ArrowRight: () => stop(() => clock.step(far)),
      Home: () => stop(() => clock.seek(clock.begin)), End: () => stop(() => clock.seek(clock.end)),
      "+": () => clock.faster(1), "=": () => clock.faster(1), "-": () => clock.faster(-1), "−": () => clock.faster(-1),
      t: () => this.setTrail(TRAILS[(TRAILS.findIndex(([name]) => name === this.trail) + 1) % TRAILS.length][0]),
      l: () => this.setLog(!this.log), "?": () => this.helpText.toggleAttribute("hidden"),
    };
    const act = acts[event.key] ?? acts[event.key.toLowerCase()];
    if (act) { act(); event.preventDefault(); }
  }
}

const LIFTS = CSS.supports("color", "color-mix(in srgb, red, white 10%)");

export function swatch({ colour, dash = false }) {
  const node = element("i", { class: dash ? "swatch dash" : "swatch" });
  node.style.color = colour === "#000000" ? "var(--ink)" : LIFTS ? `color-mix(in srgb, ${colour}, white var(--lift))` : colour;
  return node;
}

export function start(root, message) {
  const view = new View(root);
  view.load(unpack(message));
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) view.clock.play();
  return view;
}
