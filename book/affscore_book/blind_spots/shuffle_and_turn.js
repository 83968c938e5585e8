// A cloud in the plane, turned, and some of its outputs shuffled: two scores, of which one sees the pairs.
// Python's side: widget.py.
import { SPIRAL, affinity2d } from "../kit/affinity2d.js";
import { Figure, Trail } from "../kit/figure.js";
import { element, format, readout } from "../kit/panel.js";

export const STRETCH = 0.8;
export const SHARES = Array.from({ length: 21 }, (_, i) => i / 20);
const FRAME = [-6, 6];
const STEP = 23; // has no factor in common with the number of points
const SHAPES = [["skewed", "skewed"], ["round", "round"]];

/** The spiral, or its exponential, whose points are few and far on one side. */
export function cloud(shape) {
  return [0, 1].map((k) => Float64Array.from(SPIRAL, (point) => (shape === "round" ? point[k] : Math.exp(STRETCH * point[k]))));
}

/** Which row each output comes from when this share of them is shuffled. */
export function rows(share, n) {
  const order = Array.from({ length: n }, (_, i) => (i * STEP) % n);
  const moved = order.slice(0, Math.round(share * n)).sort((a, b) => a - b);
  const found = Array.from({ length: n }, (_, i) => i);
  moved.forEach((row, i) => { found[row] = moved.at((i - 2) % moved.length); });
  return found;
}

/** Both scores of a state, with the inputs and the outputs. */
export function evaluate({ shape, angle, shuffled }) {
  const x = cloud(shape);
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  const [a, b] = x;
  const turned = [a.map((value, i) => cos * value - sin * b[i]), a.map((value, i) => sin * value + cos * b[i])];
  const from = rows(shuffled, a.length);
  return affinity2d(x, turned.map((column) => column.map((_, i) => column[from[i]])));
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "ShuffleAndTurn", traits: ["angle", "shape", "shuffled"],
    label: "A cloud, turned and shuffled, with its affinity score and its paired score",
  });
  figure.select({ trait: "shape", label: "Cloud", options: SHAPES });
  figure.slider({
    trait: "shuffled", label: "Outputs shuffled", min: 0, max: 1, step: 0.05,
    text: (value) => `${format(100 * value, 0)} %`,
  });
  figure.slider({
    trait: "angle", label: "Turned by", min: 0, max: 180, step: 5, text: (value) => `${format(value, 0)}\u00b0`,
  });
  const size = { width: 340, height: 346 };
  const left = figure.panel({
    label: "Inputs, outputs, and which belongs to which", xlim: FRAME, ylim: FRAME,
    xlabel: "first channel (vertical: second channel)", ...size,
    reads: { series: { "input-dots": "input", "image-line": "output" } },
  });
  element(left.svg, "circle", { class: "input-dot", cx: 12, cy: 12, r: 4 });
  element(left.svg, "text", { class: "label", x: 22, y: 16 }, "input");
  element(left.svg, "path", { class: "image-line", d: "M78 8L86 16M78 16L86 8" });
  element(left.svg, "text", { class: "label", x: 92, y: 16 }, "output");
  element(left.svg, "path", { class: "curve pair", d: "M160 12L184 12" });
  element(left.svg, "text", { class: "label", x: 190, y: 16 }, "pair");
  const links = left.line("curve pair");
  const input = left.specks("input-dots");
  const output = left.crosses("image-line", 4);
  const right = figure.panel({
    label: "Both scores against the share of outputs that is shuffled", xlim: [-0.05, 1.05], ylim: [-0.5, 1.05],
    xlabel: "share of the outputs shuffled", legend: [["score-curve", "affinity score"], ["w2-curve", "paired score"]],
    reads: { textX: (value) => `${format(100 * value, 0)} %` }, ...size,
  });
  const curves = [right.line("score-curve"), right.line("w2-curve")];
  const dots = [right.dots("score-dot", 6), right.dots("w2-dot", 6)];

  const trail = new Trail(SHARES);
  const known = new Map();
  return figure.onDraw((state) => {
    const result = evaluate(state);
    const pairs = [0, 1].map((k) => Array.from(result.x[k]).flatMap((value, i) => [value, result.y[k][i], NaN]));
    links(...pairs);
    const names = Array.from(result.x[0], (_, i) => `pair ${i + 1}`);
    input(...result.x, names);
    output(...result.y, names);
    const key = `${state.shape} ${state.angle}`;
    const seen = trail.visit(key, state.shuffled);
    const at = (i) => {
      const place = `${key} ${i}`;
      if (!known.has(place)) known.set(place, evaluate({ ...state, shuffled: SHARES[i] }));
      return known.get(place);
    };
    ["score", "paired"].forEach((name, k) => {
      curves[k](SHARES, SHARES.map((_, i) => (seen[i] ? at(i)[name] : NaN)));
      dots[k]([state.shuffled], [result[name]]);
    });
    return { score: result.score, text: `Paired score ${readout(result.paired)}` };
  });
}

export default { render };
