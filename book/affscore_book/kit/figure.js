// The frame of every widget: controls bound to traits, panels that draw curves as SVG, a live text, and the
// attributes that tests read. still.js makes the picture that a notebook stores of the same drawing.

const SVG = "http://www.w3.org/2000/svg";

/** A number as readers see it: fixed digits and a true minus sign. */
export function format(value, digits = 2) {
  if (Number.isNaN(value)) return "undefined";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
}

/** A number as a readout has it: one that is not 0 is never shown as 0.000, but as "< 0.001". */
export function readout(value, digits = 3) {
  const hidden = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  return hidden ? `< ${format(10 ** -digits, digits)}` : format(value, digits);
}

/** A child element with attributes and text. */
export function element(parent, tag, attributes = {}, text = "") {
  const node = parent.namespaceURI === SVG || tag === "svg"
    ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  parent.appendChild(node);
  return node;
}

/** Round numbers from low to high, about `count` of them. */
export function ticks(low, high, count = 6) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const result = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    result.push(Number((k * step).toPrecision(12)));
  }
  return result;
}

/** One pair of axes. Its coordinates are those of the data; its layers are drawn in the order they are added. */
export class Panel {
  /** legend: [[class of a line, its name], ...], shown above the axes beside ylabel. */
  constructor(parent, { label, xlim, ylim, xlabel, ylabel = "", legend = [], width = 340, height = 250 }) {
    this.svg = element(parent, "svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "affscore-panel",
    });
    this.box = { left: 42, right: width - 10, top: 26, bottom: height - 42 };
    element(this.svg, "rect", { class: "paper", width, height, rx: 4 });
    this.axes = element(this.svg, "g");
    element(this.svg, "text", {
      class: "label", x: (this.box.left + this.box.right) / 2, y: height - 8, "text-anchor": "middle",
    }, xlabel);
    if (ylabel) element(this.svg, "text", { class: "label", x: 6, y: 16 }, ylabel);
    let x = ylabel ? 22 + 7 * ylabel.length : 6;
    for (const [className, text] of legend) {
      element(this.svg, "path", { class: className, d: `M${x} 12L${x + 24} 12` });
      element(this.svg, "text", { class: "label", x: x + 30, y: 16 }, text);
      x += 46 + 7 * text.length;
    }
    this.setLimits(xlim, ylim);
  }

  /** New limits [low, high] for both axes. Layers keep what they drew: draw them again. */
  setLimits(xlim, ylim) {
    const key = `${xlim} ${ylim}`;
    if (this.limits === key) return;
    Object.assign(this, { limits: key, xlim, ylim });
    const { left, right, top, bottom } = this.box;
    this.axes.replaceChildren();
    for (const value of ticks(...xlim)) {
      const x = this.x(value);
      element(this.axes, "line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom });
      element(this.axes, "text", { class: "tick", x, y: bottom + 15, "text-anchor": "middle" },
        format(value, decimals(value)));
    }
    for (const value of ticks(...ylim)) {
      const y = this.y(value);
      element(this.axes, "line", { class: "grid", x1: left, x2: right, y1: y, y2: y });
      element(this.axes, "text", { class: "tick", x: left - 6, y: y + 4, "text-anchor": "end" },
        format(value, decimals(value)));
    }
  }

  x(value) {
    const { left, right } = this.box;
    return round(left + ((value - this.xlim[0]) / (this.xlim[1] - this.xlim[0])) * (right - left));
  }

  y(value) {
    const { top, bottom } = this.box;
    return round(bottom - ((value - this.ylim[0]) / (this.ylim[1] - this.ylim[0])) * (bottom - top));
  }

  /** Returns draw(xs, ys), which draws a line that is broken where y is NaN. */
  line(className) {
    const path = element(this.svg, "path", { class: className });
    return (xs, ys) => {
      let text = "";
      let pen = "M";
      for (let i = 0; i < xs.length; i++) {
        if (Number.isNaN(ys[i])) {
          pen = "M";
        } else {
          text += `${pen}${this.x(xs[i])} ${this.y(ys[i])}`;
          pen = "L";
        }
      }
      path.setAttribute("d", text);
    };
  }

  /** Returns draw(xs, ys, names), which draws a dot at each point where y is a number; names show under the cursor. */
  dots(className, radius = 5) {
    const group = element(this.svg, "g");
    return (xs, ys, names = []) => {
      while (group.childNodes.length > xs.length) group.lastChild.remove();
      for (let i = 0; i < xs.length; i++) {
        const dot = group.childNodes[i] ?? element(group, "circle", { class: className, r: radius });
        const visible = !Number.isNaN(ys[i]);
        dot.setAttribute("cx", visible ? this.x(xs[i]) : 0);
        dot.setAttribute("cy", visible ? this.y(ys[i]) : 0);
        dot.setAttribute("visibility", visible ? "visible" : "hidden");
        if (names[i]) (dot.firstChild ?? element(dot, "title", {})).textContent = names[i];
      }
    };
  }

  /** As dots(), for many points: one path of lines without length, which round caps make dots. */
  specks(className) {
    const draw = this.line(className);
    const twice = (column) => Array.from(column).flatMap((value) => [value, value, NaN]);
    return (xs, ys) => draw(twice(xs), twice(ys));
  }

  /** Returns draw(xs, ys), which draws an x at each point; its arms reach `arm` pixels across and down. */
  crosses(className, arm) {
    const draw = this.line(className);
    const at = (column, steps) => Array.from(column).flatMap((value) => steps.map((step) => value + step));
    return (xs, ys) => {
      const across = (arm * (this.xlim[1] - this.xlim[0])) / (this.box.right - this.box.left);
      const up = (arm * (this.ylim[1] - this.ylim[0])) / (this.box.bottom - this.box.top);
      draw(at(xs, [-across, across, NaN, -across, across, NaN]), at(ys, [-up, up, NaN, up, -up, NaN]));
    };
  }

  /** Returns draw(from, to), which fills the panel's height between two abscissae. */
  band(className) {
    const { top, bottom } = this.box;
    const rect = element(this.svg, "rect", { class: className, y: top, height: bottom - top });
    return (from, to) => {
      rect.setAttribute("x", this.x(from));
      rect.setAttribute("width", Math.max(0, round(this.x(to) - this.x(from))));
    };
  }

  /** Returns draw(x, y, text), which writes text at a point. anchor: "start", "middle" or "end". */
  text(className, anchor = "start") {
    const node = element(this.svg, "text", { class: className, "text-anchor": anchor });
    return (x, y, text) => {
      node.setAttribute("x", this.x(x));
      node.setAttribute("y", this.y(y));
      node.textContent = text;
    };
  }
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function decimals(value) {
  return (String(value).split(".")[1] ?? "").length;
}

/**
 * The places of a slider that a reader has seen. A curve that is drawn there only does not give away the answer to a
 * question that was asked before the slider was moved. What lies between two places near each other was passed.
 */
export class Trail {
  constructor(places) {
    this.places = Array.from(places);
    this.near = (this.places.at(-1) - this.places[0]) / 8;
    this.curves = new Map();
  }

  /** Which of the places were seen on this curve, x now among them: an array of booleans. A still picture has all. */
  visit(curve, x) {
    if (globalThis.document?.still) return this.places.map(() => true);
    if (!this.curves.has(curve)) this.curves.set(curve, { seen: this.places.map(() => false), last: x });
    const state = this.curves.get(curve);
    const from = Math.abs(x - state.last) <= this.near ? state.last : x;
    const step = (this.places[1] - this.places[0]) / 2;
    this.places.forEach((place, i) => {
      if (place >= Math.min(from, x) - step && place <= Math.max(from, x) + step) state.seen[i] = true;
    });
    state.last = x;
    return state.seen;
  }
}

/**
 * A widget's frame inside el. Every control writes its trait to the model; a change of any of `traits`, from a
 * control or from Python, calls the function given to onDraw once and at once.
 *
 * The root element carries for tests and styles: data-widget, data-ready ("true" after the first drawing),
 * data-state (the traits, JSON), data-score (the score, all digits) and data-redraw-ms (time of the last drawing).
 */
export class Figure {
  constructor({ model, el, name, label, traits }) {
    this.model = model;
    this.traits = traits;
    this.root = element(el, "div", {
      class: "affscore-figure", role: "group", "aria-label": label, "data-widget": name,
    });
    this.controls = element(this.root, "div", { class: "affscore-controls" });
    const readout = element(this.root, "p", { class: "affscore-readout", "aria-live": "polite" });
    this.shown = element(readout, "strong");
    this.text = element(readout, "span");
    this.panels = element(this.root, "div", { class: "affscore-panels" });
    this.followers = [];
    this.redraw = () => this.draw();
  }

  /** A range input for a numeric trait. text(value) is what is shown beside it and read aloud. */
  slider({ trait, label, min, max, step, text = (value) => format(value) }) {
    const box = element(this.controls, "label", { class: "affscore-control affscore-slider" });
    element(box, "span", {}, label);
    const shown = element(box, "output", { "aria-hidden": "true" });
    // JupyterLab takes the arrow keys for itself unless the input says otherwise.
    const input = element(box, "input", {
      type: "range", min, max, step, "aria-label": label, "data-trait": trait, "data-lm-suppress-shortcuts": "true",
    });
    input.addEventListener("input", () => this.set(trait, Number(input.value)));
    this.followers.push(() => {
      const value = this.model.get(trait);
      if (Number(input.value) !== value) input.value = value;
      shown.textContent = text(value);
      input.setAttribute("aria-valuetext", text(value));
    });
    return input;
  }

  /** A drop-down list for a trait. options: [[value, shown text], ...]. */
  select({ trait, label, options }) {
    const box = element(this.controls, "label", { class: "affscore-control" });
    element(box, "span", {}, label);
    const input = element(box, "select", {
      "aria-label": label, "data-trait": trait, "data-lm-suppress-shortcuts": "true",
    });
    for (const [value, text] of options) element(input, "option", { value }, text);
    input.addEventListener("change", () => this.set(trait, input.value));
    this.followers.push(() => { input.value = this.model.get(trait); });
    return input;
  }

  /** A box of text for a trait. Tab leaves it. */
  textarea({ trait, label, rows = 3 }) {
    const box = element(this.controls, "label", { class: "affscore-control affscore-text" });
    element(box, "span", {}, label);
    const input = element(box, "textarea", {
      rows, spellcheck: "false", "aria-label": label, "data-trait": trait, "data-lm-suppress-shortcuts": "true",
    });
    input.addEventListener("input", () => this.set(trait, input.value));
    this.followers.push(() => {
      const value = this.model.get(trait);
      if (input.value !== value) input.value = value; // or the cursor would jump
    });
    return input;
  }

  /** A panel; see Panel for the options. */
  panel(options) {
    return new Panel(this.panels, options);
  }

  /**
   * A panel of the affinity score over [-limit, limit]. Returns { curve(xs, scores), dot(x, score) }; with `gaps`, the
   * curve shades the abscissae below and above 0 where there is no score.
   */
  scorePanel({ label, xlabel, limit, gaps }) {
    const panel = this.panel({
      label, xlim: [-limit, limit], ylim: [0, 1], xlabel, ylabel: "affinity score",
      legend: gaps ? [["dead-key", "undefined"]] : [],
    });
    const bands = gaps ? [panel.band("dead-band"), panel.band("dead-band")] : [];
    const line = panel.line("score-curve");
    const dots = panel.dots("score-dot", 6);
    const curve = (xs, scores, passed = xs.map(() => true)) => {
      const dead = xs.filter((_, i) => passed[i] && Number.isNaN(scores[i]));
      bands.forEach((band, side) => {
        const part = dead.filter((x) => (side === 0 ? x < 0 : x > 0));
        band(part[0] ?? 0, part.at(-1) ?? 0);
      });
      line(xs, Array.from(scores, (score, i) => (passed[i] ? score : NaN)));
    };
    return { curve, dot: (x, score) => dots([x], [score]) };
  }

  set(trait, value) {
    this.model.set(trait, value);
    this.model.save_changes();
  }

  draw() {
    const start = performance.now();
    for (const follow of this.followers) follow();
    const { score, text, headline } = this.callback();
    this.shown.textContent = headline ?? (Number.isNaN(score)
      ? "The score is undefined: the output is constant." : `Affinity score ${readout(score)}`);
    this.text.textContent = text;
    this.root.dataset.state = JSON.stringify(
      Object.fromEntries(this.traits.map((trait) => [trait, this.model.get(trait)])));
    this.root.dataset.score = String(score);
    this.root.dataset.redrawMs = (performance.now() - start).toFixed(2);
    this.root.dataset.ready = "true";
  }

  /**
   * Draw now and after every change. callback() draws and returns {score, text}: the score is shown, with text, a
   * line that says what it is the score of. {headline} is shown in place of the affinity score, where the number is
   * another one. Returns the clean-up function that render() should return.
   */
  onDraw(callback) {
    this.callback = callback;
    for (const trait of this.traits) this.model.on(`change:${trait}`, this.redraw);
    this.draw();
    return () => {
      for (const trait of this.traits) this.model.off(`change:${trait}`, this.redraw);
    };
  }
}
