// The lab: controls beside a view. While a control moves, the desk is asked, through `ask`, for the motion that it tells.

import { element, View } from "./view.js";
import { number } from "./ticks.js";

const COMPARED = "rk4", MOST_POINTS = 30000;

export class Lab {
  // ask(request) gives a scene; link {read(), write(text), full()} keeps the state in an address, or null
  constructor(root, { ask, first, link = null, keys = document }) {
    Object.assign(this, { root, ask, first, link });
    root.replaceChildren();
    root.classList.add("la-lab");
    this.panel = element("form", { class: "la panel", autocomplete: "off", onsubmit: event => event.preventDefault() });
    this.message = element("p", { class: "message", role: "alert", hidden: true });
    const place = element("div");
    root.append(this.panel, element("main", { class: "la desk" }, this.message, place));
    this.view = new View(place, {
      heading: false, keys, onDrag: (run, point, target, done) => this.drag(run, point, target, done), onBuild: () => this.sectionCard(),
    });
    this.latency = []; this.answered = 0;
    root.lab = this;
    this.begin();
  }

  async begin() {
    try {
      const hello = await this.ask({ what: "hello" });
      this.subjects = hello.subjects; this.methods = hello.methods;
      await this.choose(this.read() ?? { subject: this.first });
    } catch (error) { this.say(error.message); }
  }

  // A state: all that the controls tell.
  async choose(wanted) {
    const told = this.subject = await this.ask({ what: "subject", subject: wanted.subject });
    const start = list => list.map(one => one.value);
    this.state = {
      subject: told.key, params: Object.fromEntries(told.params.map(one => [one.key, one.value])), q0: start(told.q0), v0: start(told.v0),
      runs: [{ method: told.method, h: told.h, tol: 1e-6, by: told.paced ? "pace" : "h" }], after: 0, span: told.span,
    };
    const { params, ...rest } = wanted;
    Object.assign(this.state, rest);
    for (const [name, value] of Object.entries(params ?? {})) if (name in this.state.params) this.state.params[name] = value;
    this.view.clock.known = false;
    this.stopSection();
    this.build();
    this.changed();
    this.view.clock.play();
  }

  request(what, more = {}) {
    const { subject, params, q0, v0, runs, after, span } = this.state;
    const plain = runs.map(({ method, h, tol, by }) => by === "tol" ? { method, tol } : { method, h, paced: by === "pace" });
    return { what, subject, params, q0, v0, runs: plain, after, span, ...more };
  }

  // Only the latest state is asked for: states that were set meanwhile are dropped.
  changed(drag = null) {
    this.wanted = { drag, since: performance.now() };
    if (this.section?.on) this.restartSection();
    if (!this.busy) this.pump();
  }

  async pump() {
    this.busy = true;
    while (this.wanted) {
      const { drag, since } = this.wanted, asked = this.request("run", drag ? { drag } : {});
      this.wanted = null;
      this.root.classList.add("busy");
      this.view.spare = true;
      try {
        const scene = await this.ask(asked);
        // the start was pulled, or put back on the constraints; changes made meanwhile are asked for next
        if (drag || (this.subject.constrained && !this.wanted)) { Object.assign(this.state, { q0: scene.q0, v0: scene.v0 }); this.showValues(); }
        if (this.toBegin) { this.view.clock.t = scene.runs[0].begin; this.toBegin = false; }
        this.view.load(scene);
        this.view.drawNow();
        this.showSteps(scene.h, scene.steps);
        this.say(scene.notes.join("\n"));
        this.latency.push(performance.now() - since);
      } catch (error) { this.say(error.message); }
      this.view.spare = false;
      this.answered += 1;
      this.root.classList.remove("busy");
      this.write();
      await new Promise(done => setTimeout(done)); // the page stays alive
    }
    this.busy = false;
  }

  // Not while the drawing is pulled: the message would push the drawing away from the mouse.
  say(text) { if (this.dragging) return; this.message.textContent = text; this.message.hidden = !text; }

  // The point of the drawing that is pulled takes the motion's present place as the start with it.
  drag(run, point, target, done) {
    if (!this.dragging) {
      const { view } = this, n = this.state.q0.length;
      this.dragging = true;
      if (n <= view.scene.coordinates.length) this.state.q0 = this.state.q0.map((_, j) => view.q(run, j, view.clock.t));
      this.state.after = 0;
      this.toBegin = true;
      view.clock.pause();
    }
    this.changed({ point, to: target });
    if (done) { this.dragging = false; this.view.clock.play(); }
  }

  // ---- controls

  build() {
    const { subject, state } = this;
    this.rows = [];
    const pick = element("select", { class: "subject", "aria-label": "system", onchange: () => this.choose({ subject: pick.value }).catch(error => this.say(error.message)) },
      ...this.subjects.map(([key, title]) => element("option", { value: key }, title)));
    pick.value = state.subject;
    const list = element("datalist", { id: "la-methods" }, ...this.methods.map(name => element("option", { value: name })));
    const unit = subject.unit ? ` (${subject.unit})` : "", { period } = subject;
    this.panel.replaceChildren(
      element("h1", {}, "leastaction lab"), pick, element("p", { class: "about" }, subject.about), list,
      this.group("Method", this.methodRow(0), state.runs.length > 1 ? this.methodRow(1) : element("button", {
        type: "button", class: "wide", onclick: () => { state.runs.push({ ...state.runs[0], method: state.runs[0].method === COMPARED ? "simpson" : COMPARED }); this.build(); this.changed(); },
      }, "compare with another method")),
      this.group("Time", this.row("shown" + unit, () => state.span, x => { state.span = x; }, { low: period, high: 500 * period, log: true }),
        this.row("begins at" + unit, () => state.after, x => { state.after = x; }, { low: period, high: 10000 * period, log: true, zero: true })),
      this.group("Start", element("p", { class: "hint" }, "Pull the drawing to set the positions."),
        ...subject.q0.map((one, j) => this.row(one.name, () => state.q0[j], x => { state.q0[j] = x; }, one)),
        ...subject.v0.map((one, j) => this.row(one.name, () => state.v0[j], x => { state.v0[j] = x; }, one))),
      ...(subject.params.length ? [this.group("Parameters", ...subject.params.map(one => this.row(one.name, () => state.params[one.key], x => { state.params[one.key] = x; }, one)))] : []),
      element("div", { class: "actions" },
        element("button", { type: "button", title: "Simpson's method beside RK4, after 10,000 periods with 20 steps each", onclick: () => this.lesson() }, "10,000 periods"),
        element("button", { type: "button", onclick: () => this.choose({ subject: state.subject }) }, "reset"),
        ...(this.link ? [element("button", { type: "button", class: "copy", onclick: event => this.copy(this.link.full(), event.target) }, "copy link")] : []),
        element("button", { type: "button", onclick: () => this.showCode() }, "Python"),
        element("button", { type: "button", onclick: () => this.save() }, "save as HTML")),
    );
  }

  group(title, ...children) { return element("fieldset", {}, element("legend", {}, title), ...children); }

  // A slider and its number. A logarithmic one may have zero at its left end.
  row(name, get, set, { low, high, log = false, zero = false }) {
    const toPart = x => log ? (x <= 0 ? 0 : (zero ? 0.02 : 0) + (zero ? 0.98 : 1) * Math.log(Math.max(x, low) / low) / Math.log(high / low)) : (x - low) / (high - low);
    const fromPart = p => !log ? low + p * (high - low) : zero && p < 0.02 ? 0 : +(low * (high / low) ** (zero ? (p - 0.02) / 0.98 : p)).toPrecision(3);
    const slider = element("input", { type: "range", min: 0, max: 1, step: log ? 0.005 : "any", "aria-label": name, oninput: () => {
      const x = fromPart(+slider.value);
      set(log ? x : tidy(x, high - low)); box.value = trim(get()); box.removeAttribute("aria-invalid");
      this.changed();
    } });
    const box = element("input", { type: "text", inputmode: "decimal", class: "number", "aria-label": `${name}, value`, onchange: () => {
      const x = box.value.trim() === "" ? NaN : Number(box.value.trim().replace("−", "-").replace(",", "."));
      if (!Number.isFinite(x)) { box.setAttribute("aria-invalid", "true"); this.say(`${name} must be a number; got “${box.value.slice(0, 40)}”`); return; }
      box.removeAttribute("aria-invalid");
      set(x); slider.value = toPart(x);
      this.changed();
    } });
    const show = () => { slider.value = toPart(get()); if (document.activeElement !== box) box.value = trim(get()); };
    show();
    this.rows.push(show);
    return element("label", { class: "row" }, element("span", {}, name), slider, box);
  }

  showValues() { for (const show of this.rows) show(); }

  methodRow(r) {
    const run = this.state.runs[r], { period } = this.subject;
    const name = element("input", { type: "text", list: "la-methods", value: run.method, class: "method", "aria-label": r ? "other method" : "method", spellcheck: "false",
      onchange: () => { run.method = name.value.trim(); this.changed(); }, onfocus: () => name.select() });
    const by = element("select", { "aria-label": "step or tolerance", onchange: () => { run.by = by.value; this.build(); this.changed(); } },
      element("option", { value: "h" }, "h"), element("option", { value: "tol" }, "tol"),
      ...(this.subject.paces ? [element("option", { value: "pace", title: "shorter steps where the motion is quick" }, "pace")] : []));
    by.value = run.by;
    const found = element("span", { class: "found" });
    run.show = (h, states) => { found.textContent = { tol: `h = ${number(h, 3)}`, h: `${number(period / h, 3)} steps a period`, pace: `${states} steps, shorter where it is quick` }[run.by]; };
    const slider = run.by !== "tol"
      ? this.row("h", () => run.h, x => { run.h = x; }, { low: Math.min(period / 1000, this.subject.h / 10), high: period / 4, log: true })
      : this.row("tol", () => run.tol, x => { run.tol = x; }, { low: 1e-12, high: 1e-2, log: true });
    const drop = r ? [element("button", { type: "button", "aria-label": "no comparison", title: "no comparison", onclick: () => { this.state.runs.pop(); this.build(); this.changed(); } }, "×")] : [];
    return element("div", { class: "run" }, element("div", { class: "top" }, name, by, ...drop), slider, found);
  }

  showSteps(lengths, counts) { this.state.runs.forEach((run, r) => run.show?.(lengths[r], counts[r])); }

  // Simpson's method beside RK4, long after the start: what the papers show.
  lesson() {
    const { state, subject } = this, h = +(subject.period / 20).toPrecision(3);
    Object.assign(state, { runs: ["simpson", "rk4"].map(method => ({ method, h, tol: 1e-6, by: "h" })), after: +(10000 * subject.period).toPrecision(6), span: +(10 * subject.period).toPrecision(6) });
    this.view.clock.known = false;
    this.build();
    this.changed();
  }

  // ---- links, code, pages to keep

  write() {
    if (!this.link) return;
    const { state } = this, words = new URLSearchParams({ system: state.subject, q0: state.q0.join(), v0: state.v0.join(), span: state.span });
    if (state.after) words.set("after", state.after);
    for (const [name, value] of Object.entries(state.params)) words.set(`p.${name}`, value);
    for (const run of state.runs) words.append("run", [run.method, run.by, run.by === "tol" ? run.tol : run.h].join("~"));
    this.link.write(words.toString());
  }

  read() {
    const words = new URLSearchParams(this.link?.read() ?? "");
    if (!words.get("system")) return null;
    const wanted = { subject: words.get("system"), params: {} }, numbers = text => text.split(",").map(Number);
    for (const key of ["q0", "v0"]) if (words.get(key)) wanted[key] = numbers(words.get(key));
    for (const key of ["after", "span"]) if (words.get(key)) wanted[key] = Number(words.get(key));
    for (const [key, value] of words) if (key.startsWith("p.")) wanted.params[key.slice(2)] = Number(value);
    const runs = words.getAll("run").map(text => text.split("~"));
    if (runs.length) wanted.runs = runs.map(([method, by, value]) => ({ method, by: ["tol", "pace"].includes(by) ? by : "h", h: by === "tol" ? 0.01 : Number(value), tol: by === "tol" ? Number(value) : 1e-6 }));
    return wanted;
  }

  async copy(text, button) {
    const before = button.textContent;
    try { await navigator.clipboard.writeText(text); button.textContent = "copied"; }
    catch { this.dialog("Link", text); }
    setTimeout(() => { button.textContent = before; }, 1500);
  }

  async showCode() {
    try { this.dialog("The same in Python", (await this.ask(this.request("code"))).code); }
    catch (error) { this.say(error.message); }
  }

  dialog(title, text) {
    const box = element("dialog", { class: "la" }, element("h2", {}, title), element("pre", { tabindex: 0 }, text),
      element("div", { class: "actions" },
        element("button", { type: "button", onclick: event => this.copy(text, event.target) }, "copy"),
        element("button", { type: "button", onclick: () => box.close() }, "close")));
    box.addEventListener("close", () => box.remove());
    this.root.append(box);
    box.showModal();
  }

  async save() {
    try {
      const { html, name } = await this.ask(this.request("html"));
      const address = URL.createObjectURL(new Blob([html], { type: "text/html" }));
      const anchor = element("a", { href: address, download: name });
      this.root.append(anchor);
      anchor.click();
      anchor.remove();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
      this.saved = html;
    } catch (error) { this.say(error.message); }
  }

  // ---- the Poincaré section, which fills while it runs

  sectionCard() {
    const { subject } = this, before = this.section?.subject === subject ? this.section : null;
    if (before) before.round += 1;
    this.section = null;
    if (!subject?.section) return [];
    const { view } = this, chart = view.addChart("Poincaré section", { kind: "plane" });
    const section = this.section = {
      chart, subject, on: false, x: [], y: [], state: null, round: 0, coordinate: before?.coordinate ?? 0, show: before?.show ?? subject.coordinates.length - 1,
    };
    chart.card.classList.add("section");
    section.count = element("span", {});
    chart.legend.append(section.count);
    if (subject.section === "plane") {
      section.pick = element("select", { "aria-label": "section", onchange: () => {
        section.coordinate = +section.pick.value; section.show = section.coordinate === section.show ? (section.show + 1) % subject.coordinates.length : section.show; this.restartSection(true);
      } }, ...subject.coordinates.map((name, j) => element("option", { value: j }, `${name} = 0, rising`)));
      section.pick.value = section.coordinate;
      chart.head.append(section.pick);
    }
    section.button = element("button", { type: "button", class: "fill", "aria-pressed": "false", onclick: () => section.on ? this.stopSection() : this.restartSection(true) }, "fill");
    chart.head.append(section.button);
    this.drawSection();
    if (before?.on) this.restartSection(true);
    return [chart];
  }

  drawSection(labels) {
    const { section } = this, j = section.show, name = this.subject.coordinates[j];
    if (labels) section.labels = labels;
    section.chart.set({
      series: [{ x: section.x, y: section.y, colour: this.view.scene?.runs[0].colour ?? "#0072B2" }],
      xLabel: section.labels?.[0] ?? name, yLabel: section.labels?.[1] ?? "p", dots: true,
    });
    section.count.textContent = section.x.length ? `${section.x.length} points` : "";
    this.view.wake();
  }

  stopSection() {
    const { section } = this;
    if (!section) return;
    section.on = false; section.round += 1;
    section.button.setAttribute("aria-pressed", "false");
  }

  // From the start again; the points so far belong to another motion.
  restartSection(turnOn = false) {
    const { section } = this;
    if (!section || !(section.on || turnOn)) return;
    Object.assign(section, { on: true, x: [], y: [], state: null, round: section.round + 1, labels: null });
    section.button.setAttribute("aria-pressed", "true");
    this.drawSection();
    this.fillSection(section, section.round);
  }

  async fillSection(section, round) {
    const mine = () => this.section === section && section.on && section.round === round;
    while (mine() && section.x.length < MOST_POINTS) {
      if (this.busy) { await new Promise(done => setTimeout(done, 30)); continue; }
      try {
        const found = await this.ask(this.request("section", { state: section.state, coordinate: section.coordinate, show: section.show, value: 0 }));
        if (!mine()) return;
        section.x.push(...found.x.values); section.y.push(...found.y.values);
        section.state = found.state;
        this.drawSection(found.labels);
        if (!found.state) break;
      } catch (error) { this.say(error.message); break; }
      await new Promise(done => setTimeout(done, 10));
    }
    if (mine()) this.stopSection();
  }
}

function tidy(x, range) { const digits = Math.max(0, 3 - Math.floor(Math.log10(range))); return +x.toFixed(Math.min(12, digits)); }

function trim(x) { return String(+x.toPrecision(6)); }
