// A cloud in the plane goes through an activation: the outputs, the affine image of the inputs, and the optimal
// coupling between the two. Python's side: widget.py.
import { CHOICES, activation } from "../kit/affinity1d.js";
import { SPIRAL, affinity2d } from "../kit/affinity2d.js";
import { Figure } from "../kit/figure.js";
import { element, format, readout, steadyLimits } from "../kit/panel.js";

export const CENTRE = 3;
export const WIDTHS = [0.02, 1];
const FRAME = [-5.5, 5.5];

/** The spiral, squeezed to `width` in one direction, turned by `angle` degrees and moved to (centre, centre). */
export function cloud({ width, angle, centre }) {
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  return [
    Float64Array.from(SPIRAL, ([a, b]) => centre + cos * a - sin * width * b),
    Float64Array.from(SPIRAL, ([a, b]) => centre + sin * a + cos * width * b),
  ];
}

/** The score of a state of the widget, with its clouds. */
export function evaluate({ activation: name, width, angle, centre }) {
  const x = cloud({ width, angle, centre });
  return affinity2d(x, x.map((column) => column.map(activation(name))));
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "CloudThroughActivation", traits: ["activation", "angle", "centre", "width"],
    label: "A cloud in the plane through an activation, with its affinity score",
  });
  figure.select({ trait: "activation", label: "Activation", options: CHOICES });
  figure.slider({ trait: "centre", label: "Centre of the cloud", min: -CENTRE, max: CENTRE, step: 0.1 });
  figure.slider({ trait: "width", label: "Width across", min: WIDTHS[0], max: WIDTHS[1], step: 0.02 });
  figure.slider({
    trait: "angle", label: "Direction", min: 0, max: 180, step: 5, text: (value) => `${format(value, 0)}\u00b0`,
  });

  const size = { width: 340, height: 346 };
  const left = figure.panel({
    label: "The input cloud", xlim: FRAME, ylim: FRAME, xlabel: "first input", ylabel: "second input", ...size,
    reads: { series: { "input-dots small": "" }, y: "second input" },
  });
  const input = left.specks("input-dots small");
  const right = figure.panel({
    label: "The outputs, the affine image of the inputs, and the optimal coupling between them", xlim: [0, 1],
    ylim: [0, 1], xlabel: "first output (vertical: second output)", ...size,
    reads: { series: { "input-dots": "output", "image-line": "affine image" } },
  });
  element(right.svg, "circle", { class: "input-dot", cx: 12, cy: 12, r: 4 });
  element(right.svg, "text", { class: "label", x: 22, y: 16 }, "output");
  element(right.svg, "path", { class: "image-line", d: "M88 8L96 16M88 16L96 8" });
  element(right.svg, "text", { class: "label", x: 102, y: 16 }, "affine image");
  element(right.svg, "path", { class: "w2-curve", d: "M200 12L224 12" });
  element(right.svg, "text", { class: "label", x: 230, y: 16 }, "coupling");
  const links = right.line("w2-curve");
  const output = right.specks("input-dots");
  const image = right.crosses("image-line", 4);

  return figure.onDraw((state) => {
    const result = evaluate(state);
    const [[i1, i2], [y1, y2]] = [result.image, result.y];
    const limits = steadyLimits([...i1, ...i2, ...y1, ...y2]);
    right.setLimits(limits, limits);
    const names = Array.from(result.x[0], (_, i) => `point ${i + 1}`);
    input(...result.x, names);
    const gap = (from, to) => Array.from(from).flatMap((value, i) => [value, to[result.partner[i]], NaN]);
    links(gap(i1, y1), gap(i2, y2));
    output(...result.y, names);
    image(...result.image, names);
    const label = CHOICES.find(([value]) => value === state.activation)[1];
    return {
      score: result.score,
      text: `${label}: W\u2082 ${readout(result.w2)} of at most ${readout(result.bound)}`,
    };
  });
}

export { steadyLimits };
export default { render };
