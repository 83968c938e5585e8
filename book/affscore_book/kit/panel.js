// Panels that draw curves and points as SVG, and remember what they drew, so that reader.js can read it out.
// still.js writes what they drew as text.

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

/** Limits that hold all values and seldom change while a slider moves: multiples of a power of two. */
export function steadyLimits(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const step = high > low ? 2 ** Math.ceil(Math.log2(high - low)) / 4 : 1;
  return [(Math.floor(low / step) - 0.25) * step, (Math.ceil(high / step) + 0.25) * step];
}

/** One pair of axes. Its coordinates are those of the data; its layers are drawn in the order they are added. */
export class Panel {
  /** legend: [[class of a line, its name], ...], shown above the axes beside ylabel. */
  constructor(parent, { label, xlim, ylim, xlabel, ylabel = "", legend = [], width = 340, height = 250 }) {
    this.layers = []; // what was drawn: {className, xs, ys, names} and what notes() adds
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

  /** Remember what is drawn by this class from now on. */
  layer(className, rest = {}) {
    const layer = { className, xs: [], ys: [], names: [], ...rest };
    this.layers.push(layer);
    return layer;
  }

  /**
   * Returns note(xs, ys, texts): what a reader is told at places where something else is drawn than lines and dots.
   * `stride` is the number of places in a column, if they form a grid.
   */
  notes(stride = 0) {
    const layer = this.layer(null, { stride, texts: [] });
    return (xs, ys, texts) => Object.assign(layer, { xs, ys, texts });
  }

  /** Returns draw(xs, ys), which draws a line that is broken where y is NaN. */
  line(className) {
    const path = element(this.svg, "path", { class: className });
    const layer = this.layer(className);
    return (xs, ys, points = [xs, ys], names = []) => {
      Object.assign(layer, { xs: points[0], ys: points[1], names });
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
    const layer = this.layer(className);
    return (xs, ys, names = []) => {
      Object.assign(layer, { xs, ys, names });
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

  /** As dots(), for many points and without titles: one path of lines without length, which round caps make dots. */
  specks(className) {
    const draw = this.line(className);
    const twice = (column) => Array.from(column).flatMap((value) => [value, value, NaN]);
    return (xs, ys, names = []) => draw(twice(xs), twice(ys), [xs, ys], names);
  }

  /** Returns draw(xs, ys), which draws an x at each point; its arms reach `arm` pixels across and down. */
  crosses(className, arm) {
    const draw = this.line(className);
    const at = (column, steps) => Array.from(column).flatMap((value) => steps.map((step) => value + step));
    return (xs, ys, names = []) => {
      const across = (arm * (this.xlim[1] - this.xlim[0])) / (this.box.right - this.box.left);
      const up = (arm * (this.ylim[1] - this.ylim[0])) / (this.box.bottom - this.box.top);
      const arms = [[-across, across, NaN, -across, across, NaN], [-up, up, NaN, up, -up, NaN]];
      draw(at(xs, arms[0]), at(ys, arms[1]), [xs, ys], names);
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

/** How many digits of a number stand behind its point. */
export function decimals(value) {
  return (String(value).split(".")[1] ?? "").length;
}
