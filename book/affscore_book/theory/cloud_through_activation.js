// A cloud in the plane goes through an activation: the outputs, the affine image of the inputs, and the optimal
// coupling between the two. Python's side: widget.py.
import { CHOICES, activation, centreColumn } from "../kit/affinity1d.js";
import { assignment } from "../kit/assignment.js";
import { Figure, element, format, readout } from "../kit/figure.js";

export const POINTS = 56;
export const CENTRE = 3;
export const WIDTHS = [0.02, 1];
const FRAME = [-5.5, 5.5];

// A cloud is a pair of columns [first coordinates, second coordinates].

// A sunflower spiral whose radii are quantiles of |N(0, I)|: an even standard normal cloud without random numbers.
const SPIRAL = Array.from({ length: POINTS }, (_, i) => {
  const radius = Math.sqrt(-2 * Math.log(1 - (i + 0.5) / POINTS));
  const turn = i * Math.PI * (3 - Math.sqrt(5));
  return [radius * Math.cos(turn), radius * Math.sin(turn)];
});

/** The spiral, squeezed to `width` in one direction, turned by `angle` degrees and moved to (centre, centre). */
export function cloud({ width, angle, centre }) {
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  return [
    Float64Array.from(SPIRAL, ([a, b]) => centre + cos * a - sin * width * b),
    Float64Array.from(SPIRAL, ([a, b]) => centre + sin * a + cos * width * b),
  ];
}

const inner = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);

/** R = [[r11, r12], [0, r22]] with R^T R = Cov, from the centred columns: nothing is squared and subtracted. */
function rootOfCovariance([u, v]) {
  const root = Math.sqrt(u.length);
  const r11 = Math.hypot(...u);
  if (r11 === 0) return [0, 0, Math.hypot(...v) / root];
  const q = u.map((value) => value / r11);
  // Taken out twice, the projection leaves nothing of rounding size behind.
  const once = inner(q, v);
  const left = v.map((value, i) => value - once * q[i]);
  const twice = inner(q, left);
  return [r11 / root, (once + twice) / root, Math.hypot(...left.map((value, i) => value - twice * q[i])) / root];
}

/** A = Z Z^T with Z = R_Y^T U sigma^(-1/2) and R_Y R_X^T = U sigma V^T, cut to its rank, as [a11, a12, a22]. */
function transportMatrix([x11, x12, x22], [y11, y12, y22]) {
  const [a, b, c, d] = [y11 * x11 + y12 * x12, y12 * x22, y22 * x12, y22 * x22];
  const [sum, difference] = [[(a + d) / 2, (c - b) / 2], [(a - d) / 2, (c + b) / 2]];
  const first = Math.hypot(...sum) + Math.hypot(...difference);
  if (first === 0) return [0, 0, 0];
  // The second singular value from the determinant: as a difference it would cancel.
  const second = (x11 * x22 * y11 * y22) / first;
  const turn = (Math.atan2(sum[1], sum[0]) + Math.atan2(difference[1], difference[0])) / 2;
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const matrix = [0, 0, 0];
  for (const [sigma, u, v] of [[first, cos, sin], [second, -sin, cos]]) {
    if (sigma > 2 * Number.EPSILON * first) {
      const [p, q] = [y11 * u, y12 * u + y22 * v];
      matrix[0] += (p * p) / sigma;
      matrix[1] += (p * q) / sigma;
      matrix[2] += (q * q) / sigma;
    }
  }
  return matrix;
}

/**
 * The affinity score of two clouds in the plane with empirical covariances, as affscore.affinity_score gives it, and
 * what goes into it: the affine image of x, and partner[i], the point of y that image point i is coupled with.
 */
export function affinity2d(x, y) {
  const n = x[0].length;
  const [u, v] = [x.map(centreColumn), y.map(centreColumn)];
  const columns = [u, v].map((pair) => pair.map(({ centred }) => centred));
  const [a11, a12, a22] = transportMatrix(...columns.map(rootOfCovariance));
  const [[x1, x2], [y1, y2]] = columns;
  const image1 = x1.map((value, i) => a11 * value + a12 * x2[i]);
  const image2 = x1.map((value, i) => a12 * value + a22 * x2[i]);
  const cost = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) cost[i * n + j] = (image1[i] - y1[j]) ** 2 + (image2[i] - y2[j]) ** 2;
  }
  const partner = assignment(cost, n);
  const spread = inner(y1, y1) + inner(y2, y2);
  const residual = partner.reduce((sum, j, i) => sum + cost[i * n + j], 0);
  const score = spread > 0 ? 1 - Math.sqrt(residual / (2 * spread)) : NaN;
  const image = [image1.map((value) => value + v[0].mean), image2.map((value) => value + v[1].mean)];
  return { score, x, y, image, partner, w2: Math.sqrt(residual / n), bound: Math.sqrt((2 * spread) / n) };
}

/** The score of a state of the widget, with its clouds. */
export function evaluate({ activation: name, width, angle, centre }) {
  const x = cloud({ width, angle, centre });
  return affinity2d(x, x.map((column) => column.map(activation(name))));
}

/** Limits that hold all values and seldom change while a slider moves: multiples of a power of two. */
export function frame(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const step = high > low ? 2 ** Math.ceil(Math.log2(high - low)) / 4 : 1;
  return [(Math.floor(low / step) - 0.25) * step, (Math.ceil(high / step) + 0.25) * step];
}

function render({ model, el }) {
  const traits = ["activation", "angle", "centre", "width"];
  const figure = new Figure({
    model, el, name: "CloudThroughActivation", traits,
    label: "A cloud in the plane through an activation, with its affinity score",
  });
  figure.select({ trait: "activation", label: "Activation", options: CHOICES });
  figure.slider({
    trait: "centre", label: "Centre of the cloud", min: -CENTRE, max: CENTRE, step: 0.1,
    text: (value) => format(value, 1),
  });
  figure.slider({ trait: "width", label: "Width across", min: WIDTHS[0], max: WIDTHS[1], step: 0.02 });
  figure.slider({
    trait: "angle", label: "Direction", min: 0, max: 180, step: 5, text: (value) => `${format(value, 0)}\u00b0`,
  });

  const size = { width: 340, height: 346 };
  const left = figure.panel({
    label: "The input cloud", xlim: FRAME, ylim: FRAME, xlabel: "first input", ylabel: "second input", ...size,
  });
  const input = left.specks("input-dots small");
  const right = figure.panel({
    label: "The outputs, the affine image of the inputs, and the optimal coupling between them", xlim: [0, 1],
    ylim: [0, 1], xlabel: "first output (vertical: second output)", ...size,
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

  return figure.onDraw(() => {
    const state = Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
    const result = evaluate(state);
    const [[i1, i2], [y1, y2]] = [result.image, result.y];
    const limits = frame([...i1, ...i2, ...y1, ...y2]);
    right.setLimits(limits, limits);
    input(...result.x);
    const gap = (from, to) => Array.from(from).flatMap((value, i) => [value, to[result.partner[i]], NaN]);
    links(gap(i1, y1), gap(i2, y2));
    output(...result.y);
    image(...result.image);
    const label = CHOICES.find(([value]) => value === state.activation)[1];
    return {
      score: result.score,
      text: `${label}: W\u2082 ${readout(result.w2)} of at most ${readout(result.bound)}`,
    };
  });
}

export default { render };
