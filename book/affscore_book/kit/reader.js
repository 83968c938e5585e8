// Reads a panel out: the numbers of the point under the cursor, or of the one that the arrow keys have reached.
import { element, format } from "./panel.js";

const INVITATION = "Point at a picture, or go to it with Tab and press the arrow keys: its numbers stand here.";

/** A number with as many digits as can be told apart on an axis that spans `range`; one that is not 0 is never "0". */
export function reading(value, range) {
  const digits = Math.min(Math.max(3 - Math.floor(Math.log10(range)), 0), 8);
  const least = 10 ** -digits;
  if (value === 0 || Math.abs(value) >= least / 2) return format(value, digits);
  return value > 0 ? `< ${format(least, digits)}` : `> ${format(-least, digits)}`;
}

/** The points that can be read, in their order: a list for each series, [{x, y, i, layer}, ...] from left to right. */
export function readable(layers, names) {
  return layers.filter((layer) => layer.texts || names[layer.className] !== undefined).map((layer) => {
    const points = Array.from(layer.xs, (x, i) => ({ x, y: layer.ys[i], i, layer }));
    const there = points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));
    return layer.stride ? there : there.sort((a, b) => a.x - b.x || a.y - b.y);
  }).filter((points) => points.length);
}

/** The names of both axes: [across, up]. An xlabel may end with "(vertical: ...)". */
export function axes({ xlabel, ylabel = "" }) {
  const up = /\((?:vertical|both axes): (.*)\)/.exec(xlabel)?.[1];
  return [xlabel.replace(/ \(.*\)$/, ""), ylabel || up || "", Boolean(up)];
}

export class Reader {
  /**
   * `series` names what is read, by class: {class: name}; otherwise the legend does, or ylabel where there is none.
   * `x` and `y` are names in place of the labels, `textX(value)` writes an abscissa. With `keys: false` the panel has
   * keys of its own.
   */
  constructor(panel, output, { label, xlabel, ylabel, legend = [], series, x, y, textX, keys = true }) {
    Object.assign(this, { panel, output, textX, shown: null });
    const [across, up, plane] = axes({ xlabel, ylabel });
    this.names = series ?? (legend.length ? Object.fromEntries(legend) : null);
    Object.assign(this, { across: x ?? across, up: y ?? up, plane: plane || y !== undefined });
    if (!output.textContent) output.textContent = INVITATION;
    const { svg } = panel;
    if (keys) {
      // A slider, since screen readers then leave the arrow keys to it and say its text.
      for (const [name, value] of Object.entries({
        role: "slider", tabindex: 0, "aria-label": label, "aria-valuenow": 0, "aria-valuemin": 0, "aria-valuemax": 0,
        "aria-valuetext": "the arrow keys read its numbers", "data-lm-suppress-shortcuts": "true",
      })) svg.setAttribute(name, value);
      svg.addEventListener("keydown", (event) => this.pressed(event));
      svg.addEventListener("blur", () => this.hide());
    }
    svg.addEventListener("pointermove", (event) => this.pointed(event));
    svg.addEventListener("pointerdown", (event) => this.pointed(event));
    svg.addEventListener("pointerleave", (event) => { // a finger leaves when it is lifted
      if (event.pointerType === "mouse" && document.activeElement !== svg) this.hide();
    });
  }

  get points() {
    const { panel } = this;
    const names = this.names
      ?? Object.fromEntries(panel.layers.filter((layer) => layer.className).map(({ className }) => [className, this.up]));
    const { left, right, top, bottom } = panel.box;
    const inside = ({ x, y }) => panel.x(x) > left - 1 && panel.x(x) < right + 1 && panel.y(y) > top - 1 && panel.y(y) < bottom + 1;
    return readable(panel.layers, names).map((points) => points.filter(inside)).filter((points) => points.length)
      .map((points) => points.map((point) => ({ ...point, name: names[point.layer.className] })));
  }

  /** What is said of a point. */
  text({ x, y, i, layer, name }) {
    if (layer.texts) return layer.texts[i];
    const [width, height] = [this.panel.xlim, this.panel.ylim].map(([low, high]) => high - low);
    const number = (value, values, range) => (
      Array.from(values).every(Number.isInteger) ? format(value, 0) : reading(value, range));
    const across = `${this.across} ${this.textX?.(x) ?? number(x, layer.xs, this.plane ? width : 10 * width)}`;
    const what = [layer.names[i], name].filter(Boolean).join(", ");
    const up = number(y, layer.ys, height);
    return this.plane ? `${what}: ${across}, ${this.up} ${up}` : `${across}: ${what} ${up}`;
  }

  show(series, at) {
    const all = this.points;
    if (!all.length) {
      this.hide();
      return;
    }
    series = Math.min(Math.max(series, 0), all.length - 1);
    at = Math.min(Math.max(at, 0), all[series].length - 1);
    const point = all[series][at];
    if (this.output.reader !== this) this.output.reader?.hide(); // one reading for all panels of a figure
    this.output.reader = this;
    this.shown = { series, at };
    this.ring ??= element(this.panel.svg, "circle", { class: "reading-ring", r: 9 });
    const { svg } = this.panel;
    for (const [name, value] of Object.entries({ cx: this.panel.x(point.x), cy: this.panel.y(point.y), visibility: "visible" })) {
      this.ring.setAttribute(name, value);
    }
    this.ring.dataset.x = point.x;
    this.ring.dataset.y = point.y;
    this.ring.dataset.drawn = point.layer.texts ? "otherwise" : "here"; // for tests
    const text = this.text(point);
    this.output.textContent = text;
    this.output.classList.add("now");
    if (svg.getAttribute("role") === "slider") {
      svg.setAttribute("aria-valuemax", all[series].length - 1);
      svg.setAttribute("aria-valuenow", at);
      svg.setAttribute("aria-valuetext", text);
    }
  }

  /** Read out point i of what was drawn with a class. */
  showPoint(className, i) {
    this.points.forEach((points, series) => {
      const at = points.findIndex((point) => point.layer.className === className && point.i === i);
      if (at >= 0) this.show(series, at);
    });
  }

  hide() {
    if (!this.shown) return;
    this.shown = null;
    this.ring.setAttribute("visibility", "hidden");
    this.output.textContent = INVITATION;
    this.output.classList.remove("now");
  }

  /** After a redrawing: the same place, with its new numbers. */
  follow() {
    if (this.shown) this.show(this.shown.series, this.shown.at);
  }

  /** The point that is nearest to the cursor. Across counts more than up: a curve is read below and above it, too. */
  pointed(event) {
    const { svg } = this.panel;
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const [u, v] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const flat = this.plane ? 1 : 0.3;
    let [best, least] = [null, Infinity];
    this.points.forEach((points, series) => points.forEach(({ x, y }, at) => {
      const far = (this.panel.x(x) - u) ** 2 + (flat * (this.panel.y(y) - v)) ** 2;
      if (far < least) [best, least] = [[series, at], far];
    }));
    if (best) this.show(...best);
  }

  pressed(event) {
    const all = this.points;
    if (!all.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const { series, at } = this.shown ?? { series: 0, at: -1 };
    const points = all[Math.min(series, all.length - 1)];
    const stride = points[0].layer.stride || 0;
    const other = (step) => {
      if (!this.shown || all.length < 2) return [series, Math.max(at, 0)];
      const next = (series + step + all.length) % all.length;
      const far = all[next].map(({ x }) => Math.abs(x - points[Math.min(at, points.length - 1)].x));
      return [next, far.indexOf(Math.min(...far))];
    };
    const move = (step) => [series, at + step >= 0 && at + step < points.length ? at + step : Math.max(at, 0)];
    const steps = {
      ArrowRight: () => move(stride || 1), ArrowLeft: () => move(-(stride || 1)),
      ArrowUp: () => (stride ? move(1) : other(-1)), ArrowDown: () => (stride ? move(-1) : other(1)),
      PageUp: () => move(10), PageDown: () => move(-10), Home: () => [series, 0], End: () => [series, points.length - 1],
    };
    if (event.key === "Escape") this.hide();
    else if (steps[event.key]) this.show(...steps[event.key]());
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
