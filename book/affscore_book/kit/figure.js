// The frame of every widget: controls bound to traits, panels, a live text, the numbers under the cursor, and the
// attributes that tests read.
import { Panel, decimals, element, format, readout } from "./panel.js";
import { Reader } from "./reader.js";

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
    this.reading = element(this.root, "p", { class: "affscore-reading" });
    this.readers = [];
    this.followers = [];
    this.redraw = () => this.draw();
  }

  /** A range input for a numeric trait. text(value) is what is shown and read aloud: by default the digits of a step. */
  slider({ trait, label, min, max, step, text = (value) => format(value, decimals(step)) }) {
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

  /** A panel whose numbers can be read; see Panel for the options, and Reader for `reads`. */
  panel({ reads = {}, ...options }) {
    const panel = new Panel(this.panels, options);
    panel.reader = new Reader(panel, this.reading, { ...options, ...reads });
    this.readers.push(panel.reader);
    return panel;
  }

  /**
   * A panel of the affinity score over [-limit, limit]. Returns { curve(xs, scores), dot(x, score) }; with `gaps`, the
   * curve shades the abscissae below and above 0 where there is no score.
   */
  scorePanel({ label, xlabel, limit, gaps }) {
    const panel = this.panel({
      label, xlim: [-limit, limit], ylim: [0, 1], xlabel, ylabel: "affinity score",
      legend: gaps ? [["dead-key", "undefined"]] : [],
      reads: { series: { "score-curve": "affinity score", "score-dot": "affinity score now" } },
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

  /** The traits by name. */
  get state() {
    return Object.fromEntries(this.traits.map((trait) => [trait, this.model.get(trait)]));
  }

  set(trait, value) {
    this.model.set(trait, value);
    this.model.save_changes();
  }

  draw() {
    const start = performance.now();
    for (const follow of this.followers) follow();
    const { score, text, headline } = this.callback(this.state);
    this.shown.textContent = headline ?? (Number.isNaN(score)
      ? "The score is undefined: the output is constant." : `Affinity score ${readout(score)}`);
    this.text.textContent = text;
    for (const reader of this.readers) reader.follow();
    this.root.dataset.state = JSON.stringify(this.state);
    this.root.dataset.score = String(score);
    this.root.dataset.redrawMs = (performance.now() - start).toFixed(2);
    this.root.dataset.ready = "true";
  }

  /**
   * Draw now and after every change. callback(state) draws and returns {score, text}: the score is shown, with text, a
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
