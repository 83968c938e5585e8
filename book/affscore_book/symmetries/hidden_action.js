// Two hidden neurons and a matrix that acts on them: does an output layer exist that gives the same function?
// Python's side: symmetries.py.
import { activation } from "../kit/affinity1d.js";
import { Figure } from "../kit/figure.js";
import { format } from "../kit/panel.js";

export const POINTS = 161;
export const REACH = 3;
const FRAME = 8;
// Weights and biases of the two hidden neurons, and the output layer.
export const WEIGHT = [-1.4, 0.9];
export const BIAS = [-2.3, 0.6];
export const OUTPUT = [1.5, 1.3];
export const OPTIONS = [
  ["relu", "ReLU"],
  ["leaky_relu", "Leaky ReLU"],
  ["tanh", "tanh"],
  ["gaussian", "Gaussian"],
  ["identity", "identity"],
];
export const ORDERS = [["kept", "kept"], ["swapped", "swapped"]];

/** The matrix of a state: a rotation times a permutation times a diagonal matrix, [[a, b], [c, d]]. */
export function matrixOf({ angle, order, first, second }) {
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  const [p, q] = [2 ** (first / 4), 2 ** (second / 4)];
  return order === "kept" ? [[cos * p, -sin * q], [sin * p, cos * q]] : [[-sin * p, cos * q], [cos * p, sin * q]];
}

/** values less its mean, and less its part along each of the earlier columns. */
function leftOver(values, columns) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let rest = values.map((value) => value - mean);
  const size = Math.sqrt(rest.reduce((sum, value) => sum + value * value, 0));
  // Twice: once leaves rounding errors of the part that is taken out.
  for (const column of [...columns, ...columns]) {
    const along = rest.reduce((sum, value, k) => sum + value * column[k], 0);
    rest = rest.map((value, k) => value - along * column[k]);
  }
  const left = Math.sqrt(rest.reduce((sum, value) => sum + value * value, 0));
  return { rest, size, left };
}

/** All that the page shows: the function, the hidden values before and after sigma, the best fit, what it misses. */
export function evaluate(state) {
  const sigma = activation(state.activation);
  const matrix = matrixOf(state);
  const x = Float64Array.from({ length: POINTS }, (_, k) => -REACH + (2 * REACH * k) / (POINTS - 1));
  const before = [0, 1].map((i) => x.map((value) => WEIGHT[i] * value + BIAS[i]));
  const after = matrix.map(([a, b]) => before[0].map((value, k) => a * value + b * before[1][k]));
  const original = before.map((values) => values.map(sigma));
  const hidden = after.map((values) => values.map(sigma));
  const wanted = x.map((_, k) => OUTPUT[0] * original[0][k] + OUTPUT[1] * original[1][k]);
  const columns = [];
  for (const values of hidden) {
    const { rest, size, left } = leftOver(values, columns);
    // A neuron that is constant, or an affine image of the other, adds nothing.
    if (left > 1e-7 * size && left > 1e-12) columns.push(rest.map((value) => value / left));
  }
  const { rest, size, left } = leftOver(wanted, columns);
  const change = left / size;
  return { score: change, x, after, hidden, wanted, fitted: wanted.map((value, k) => value - rest[k]), matrix };
}

/** The values of two neurons as a curve, broken where it leaves the frame. */
function inside([first, second]) {
  return [first, second.map((value, k) => (Math.max(Math.abs(value), Math.abs(first[k])) <= FRAME ? value : NaN))];
}

function summary(state, { score }) {
  const label = OPTIONS.find(([value]) => value === state.activation)[1];
  const verdict = score < 1e-9 ? "an output layer gives the same function" : "no output layer gives the same function";
  return `${label}, rotated by ${format(state.angle, 0)}\u00b0: ${verdict}`;
}

function render({ model, el }) {
  const traits = ["activation", "angle", "first", "order", "second"];
  const figure = new Figure({
    model, el, name: "HiddenAction", traits, label: "A matrix acts on two hidden neurons of a small network",
  });
  figure.select({ trait: "activation", label: "Activation", options: OPTIONS });
  figure.select({ trait: "order", label: "Order of the neurons", options: ORDERS });
  figure.slider({
    trait: "angle", label: "Rotation", min: -180, max: 180, step: 5, text: (value) => `${format(value, 0)}\u00b0`,
  });
  for (const [trait, label] of [["first", "Scale of neuron 1"], ["second", "Scale of neuron 2"]]) {
    figure.slider({ trait, label, min: -8, max: 8, step: 1, text: (value) => `\u00d7${format(2 ** (value / 4), 2)}` });
  }

  const left = figure.panel({
    label: "The values of the two hidden neurons, before and after the activation", xlim: [-FRAME, FRAME],
    ylim: [-FRAME, FRAME],
    xlabel: "neuron 1 (vertical: neuron 2)", legend: [["curve", "into the activation"], ["input-curve", "out of it"]],
    height: 356,
  });
  const line = left.line("curve");
  const path = left.line("input-curve");
  const right = figure.panel({
    label: "The function of the network, and the closest one after the matrix has acted", xlim: [-REACH, REACH],
    ylim: [0, 5], xlabel: "input", legend: [["curve", "function"], ["image-line", "after the matrix"]], height: 356,
  });
  const wanted = right.line("curve");
  const fitted = right.line("image-line");

  return figure.onDraw(() => {
    const state = Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
    const result = evaluate(state);
    line(...inside(result.after));
    path(...inside(result.hidden));
    const all = [...result.wanted, ...result.fitted].map((value) => Math.round(value * 1e6) / 1e6);
    right.setLimits([-REACH, REACH], [Math.floor(Math.min(...all)), Math.ceil(Math.max(...all))]);
    wanted(result.x, result.wanted);
    fitted(result.x, result.fitted);
    return {
      score: result.score, text: summary(state, result),
      headline: `Change of the function, relative: ${format(result.score, 3)}`,
    };
  });
}

export default { render };
