// Any activation of the catalogue: its score for every mean and std of a normal input. Python's side: widget.py, and
// catalogue.py and laws.py for the mathematics.
import { erf, erfc, normalCdf, sigmoid } from "../kit/affinity1d.js";
import { Figure, Trail } from "../kit/figure.js";
import { format, readout } from "../kit/panel.js";
import { legendre } from "../kit/legendre.js";

const clamp = (x, low, high) => (x < low ? low : x > high ? high : x);
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const gelu = (x) => x * normalCdf(x);
const dsilu = (x) => sigmoid(x) * (1 + x * sigmoid(-x));
const SCALE = 1.0507009873554805;
const ALPHA = 1.6732632423543772;

/**
 * The catalogue of catalogue.py, by the same names: [title, function, kinks, function minus its limit at the left, and
 * at the right]. The last two are given where subtracting the limit would cancel.
 */
export const CATALOGUE = {
  heaviside: ["Heaviside", (x) => (x > 0 ? 1 : 0), [0]],
  sign: ["sign", Math.sign, [0]],
  sigmoid: ["sigmoid", sigmoid, [], null, (x) => -sigmoid(-x)],
  tanh: ["tanh", Math.tanh, [], (x) => 2 * sigmoid(2 * x), (x) => -2 * sigmoid(-2 * x)],
  lecun_tanh: ["LeCun's tanh", (x) => 1.7159 * Math.tanh((2 * x) / 3), [],
    (x) => 3.4318 * sigmoid((4 * x) / 3), (x) => -3.4318 * sigmoid((-4 * x) / 3)],
  penalized_tanh: ["penalized tanh", (x) => (x > 0 ? 1 : 0.25) * Math.tanh(x), [0],
    (x) => (x > 0 ? Math.tanh(x) + 0.25 : 0.5 * sigmoid(2 * x)),
    (x) => (x > 0 ? -2 * sigmoid(-2 * x) : 0.25 * Math.tanh(x) - 1)],
  hardtanh: ["hardtanh", (x) => clamp(x, -1, 1), [-1, 1]],
  hardsigmoid: ["hardsigmoid", (x) => clamp(x + 3, 0, 6) / 6, [-3, 3]],
  softsign: ["softsign", (x) => x / (1 + Math.abs(x)), [0]],
  arctan: ["arctan", Math.atan, []],
  erf: ["erf", erf, [], (x) => erfc(-x), (x) => -erfc(x)],
  isru: ["ISRU", (x) => x / Math.sqrt(1 + x * x), []],
  sqnl: ["SQNL", (x) => { const z = clamp(x, -2, 2); return z - (z * Math.abs(z)) / 4; }, [-2, 0, 2]],
  symlog: ["symlog", (x) => Math.sign(x) * Math.log1p(Math.abs(x)), [0]],
  cloglog: ["cloglog", (x) => -Math.expm1(-Math.exp(x)), [], null, (x) => -Math.exp(-Math.exp(x))],
  logsigmoid: ["log-sigmoid", (x) => -softplus(-x), []],
  tanhshrink: ["tanhshrink", (x) => x - Math.tanh(x), []],
  hardshrink: ["hardshrink", (x) => (Math.abs(x) > 0.5 ? x : 0), [-0.5, 0.5]],
  softshrink: ["softshrink", (x) => x - clamp(x, -0.5, 0.5), [-0.5, 0.5]],
  relu: ["ReLU", (x) => Math.max(x, 0), [0]],
  relu6: ["ReLU6", (x) => clamp(x, 0, 6), [0, 6]],
  brelu: ["bounded ReLU", (x) => clamp(x, 0, 1), [0, 1]],
  shifted_relu: ["shifted ReLU", (x) => Math.max(x, -1), [-1]],
  threshold: ["thresholded ReLU", (x) => (x > 1 ? x : 0), [1]],
  leaky_relu: ["LeakyReLU", (x) => (x < 0 ? 0.01 * x : x), [0]],
  prelu: ["PReLU", (x) => (x > 0 ? x : 0.25 * x), [0]],
  rrelu: ["RReLU", (x) => (x > 0 ? x : (11 / 48) * x), [0]],
  nlrelu: ["NLReLU", (x) => Math.log1p(Math.max(x, 0)), [0]],
  relu_squared: ["squared ReLU", (x) => Math.max(x, 0) ** 2, [0]],
  plu: ["PLU", (x) => 0.1 * x + 0.9 * clamp(x, -1, 1), [-1, 1]],
  elu: ["ELU", (x) => (x < 0 ? Math.expm1(x) : x), [0], (x) => (x > 0 ? x + 1 : Math.exp(x)), null],
  selu: ["SELU", (x) => SCALE * (x < 0 ? ALPHA * Math.expm1(x) : x), [0],
    (x) => SCALE * (x > 0 ? x + ALPHA : ALPHA * Math.exp(x)), null],
  isrlu: ["ISRLU", (x) => (x > 0 ? x : x / Math.sqrt(1 + x * x)), [0]],
  reu: ["REU", (x) => x * Math.exp(Math.min(x, 0)), [0]],
  elish: ["ELiSH", (x) => sigmoid(x) * (x > 0 ? x : Math.expm1(x)), [0]],
  hard_elish: ["HardELiSH", (x) => clamp((x + 1) / 2, 0, 1) * (x > 0 ? x : Math.expm1(x)), [-1, 0, 1]],
  exponential: ["exponential", Math.exp, []],
  softplus: ["softplus", softplus, []],
  squareplus: ["squareplus", (x) => 0.5 * (x + Math.sqrt(x * x + 4)), []],
  gelu: ["GELU", gelu, []],
  quick_gelu: ["quick GELU", (x) => x * sigmoid(1.702 * x), []],
  gelu_tanh: ["GELU (tanh)", (x) => x * sigmoid(Math.sqrt(8 / Math.PI) * (x + 0.044715 * x ** 3)), []],
  silu: ["SiLU", (x) => x * sigmoid(x), []],
  dsilu: ["dSiLU", dsilu, [], null, (x) => -dsilu(-x)],
  hardswish: ["hardswish", (x) => (x * clamp(x + 3, 0, 6)) / 6, [-3, 3]],
  fts: ["FTSwish", (x) => Math.max(x, 0) * sigmoid(x) - 0.2, [0]],
  mish: ["Mish", (x) => x * Math.tanh(softplus(x)), []],
  tanhexp: ["TanhExp", (x) => x * Math.tanh(Math.exp(x)), []],
  serf: ["Serf", (x) => x * erf(softplus(x)), []],
  logish: ["Logish", (x) => x * Math.log1p(sigmoid(x)), []],
  smish: ["Smish", (x) => x * Math.tanh(Math.log1p(sigmoid(x))), []],
  phish: ["Phish", (x) => x * Math.tanh(gelu(x)), []],
  lisht: ["LiSHT", (x) => x * Math.tanh(x), []],
  gaussian: ["Gaussian", (x) => Math.exp(-x * x), []],
  ricker: ["Mexican hat", (x) => (1 - x * x) * Math.exp((-x * x) / 2), []],
  sq_rbf: ["SQ-RBF", (x) => (Math.abs(x) < 1 ? 1 - (x * x) / 2 : Math.max(2 - Math.abs(x), 0) ** 2 / 2),
    [-2, -1, 1, 2]],
  sine: ["sine", Math.sin, []],
  cosine: ["cosine", Math.cos, []],
  snake: ["Snake", (x) => x + Math.sin(x) ** 2, []],
  gcu: ["GCU", (x) => x * Math.cos(x), []],
  identity: ["identity", (x) => x, []],
  abs: ["absolute value", Math.abs, [0]],
  square: ["square", (x) => x * x, []],
  cube: ["cube", (x) => x ** 3, []],
};

const FINE = { reach: 20, width: 0.5, ...legendre(16) };
// For the picture of the whole curve, right to a fraction of a pixel: more points where they have to be sorted.
const COARSE = { reach: 6, width: 1, ...legendre(11) };
const LIGHT = { reach: 6, width: 1.5, ...legendre(8) };

/** Points z and masses of the standard normal law: a quadrature panel between each two edges. */
function panelGrid(edges, { nodes, weights }) {
  const z = new Float64Array((edges.length - 1) * nodes.length);
  const mass = new Float64Array(z.length);
  let at = 0;
  for (let i = 1; i < edges.length; i++) {
    const half = (edges[i] - edges[i - 1]) / 2;
    const centre = edges[i - 1] + half;
    for (let j = 0; j < nodes.length; j++) {
      z[at] = centre + half * nodes[j];
      mass[at] = half * weights[j] * Math.exp(-0.5 * z[at] * z[at]) * 0.3989422804014327;
      at++;
    }
  }
  return { z, mass };
}

/** The panels of this precision, cut at the kinks too. */
function panelsFor(kinks, mean, std, precision) {
  const { reach, width } = precision;
  const inside = kinks.map((kink) => (kink - mean) / std).filter((z) => z > -reach && z < reach);
  const count = Math.ceil((2 * reach) / Math.min(width, (2 * width) / std));
  const edges = Array.from({ length: count + 1 }, (_, i) => -reach + (2 * reach * i) / count);
  return panelGrid(edges.concat(inside).sort((a, b) => a - b), precision);
}

/** Evenly spaced points z and masses of the standard normal law, as Python has them for the sorted coupling. */
function evenGrid(std) {
  const step = 1 / 256 / Math.max(1, std);
  const half = Math.ceil(8 / step);
  const z = Float64Array.from({ length: 2 * half + 1 }, (_, i) => (i - half) * step);
  const mass = z.map((value) => Math.exp(-0.5 * value * value));
  const total = mass.reduce((sum, value) => sum + value, 0);
  return { z, mass: mass.map((value) => value / total) };
}

/** The activation at mean + std z, over its largest magnitude, up to a constant that keeps all digits. */
function outputs([, f, , left, right], mean, std, z) {
  const g = (mean < 0 ? left : right) ?? f;
  const zero = g(mean);
  const y = z.map((value) => g(mean + std * value) - zero);
  const largest = y.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return largest > 0 ? y.map((value) => value / largest) : y;
}

/** Whether y both rises and falls. */
function turns(y) {
  let [up, down] = [false, false];
  for (let i = 1; i < y.length; i++) {
    if (y[i] > y[i - 1]) up = true;
    else if (y[i] < y[i - 1]) down = true;
  }
  return up && down;
}

/** 1 - sqrt(1 - r) for the covariance of z and y, the variance of y and what a regression on z leaves of it. */
function fromMoments(cov, variance, rest) {
  const r = cov / Math.sqrt(variance);
  return r < 0.5 ? r / (1 + Math.sqrt(Math.max(0, 1 - r))) : 1 - Math.sqrt(Math.max(0, rest / variance / (1 + r)));
}

/** The sum of f(i) over all points, weighted by their masses. */
const sum = (mass, f) => mass.reduce((total, m, i) => total + m * f(i), 0);

/** The score where the activation never turns: the pairs are sorted already, or all reversed. */
function pairedScore(y, z, mass) {
  const mean = sum(mass, (i) => y[i]);
  const cov = sum(mass, (i) => z[i] * (y[i] - mean));
  const rest = sum(mass, (i) => (y[i] - mean - cov * z[i]) ** 2);
  return fromMoments(Math.abs(cov), sum(mass, (i) => (y[i] - mean) ** 2), rest);
}

/** The score of the points y for the points z, both with these masses: the sorted coupling, exactly. */
function sortedScore(y, z, mass) {
  const ranks = Uint32Array.from(y.keys()).sort((a, b) => y[a] - y[b]);
  const total = sum(mass, () => 1);
  const mean = sum(mass, (i) => y[i]) / total;
  const meanZ = sum(mass, (i) => z[i]) / total;
  const variance = sum(mass, (i) => (y[i] - mean) ** 2);
  const varianceZ = sum(mass, (i) => (z[i] - meanZ) ** 2);
  let cov = 0;
  // Walk through [0, 1]; at each place the mass of z[i] that is left meets the mass of y[ranks[k]] that is left.
  let [i, left] = [0, mass[0]];
  for (let k = 0; k < y.length; k++) {
    const value = y[ranks[k]] - mean;
    let need = mass[ranks[k]];
    while (need > 0) {
      const piece = Math.min(need, left);
      cov += piece * value * z[i];
      need -= piece;
      left -= piece;
      if (left <= 0) {
        if (i === y.length - 1) break;
        left = mass[++i];
      }
    }
  }
  cov /= Math.sqrt(varianceZ);
  return fromMoments(cov, variance, Math.max(0, variance - cov * cov));
}

/** The score from quadrature panels, or from the points of `even` where the activation turns among them. */
function scoreOf(row, mean, std, panels, even) {
  const kinks = row[2];
  let y = outputs(row, mean, std, even.z);
  let score;
  if (turns(y)) {
    score = sortedScore(y, even.z, even.mass);
  } else {
    if (even !== panels) y = outputs(row, mean, std, panels.z);
    score = pairedScore(y, panels.z, panels.mass);
  }
  // An output with kinks is never quite constant for a normal input: the score is only too small to see.
  return Number.isNaN(score) && kinks.length ? 0 : score;
}

/**
 * The score of an activation for inputs from N(mean, std^2), as score_curve of laws.py gives it; NaN where the output
 * cannot be told from a constant.
 */
export function lawScore(name, mean, std) {
  const row = CATALOGUE[name];
  return scoreOf(row, mean, std, panelsFor(row[2], mean, std, FINE), evenGrid(std));
}

/** The scores for an array of means, for a picture: right to about 0.005. */
export function scoreCurve(name, means, std) {
  const row = CATALOGUE[name];
  return means.map((mean) => {
    const light = panelsFor(row[2], mean, std, LIGHT);
    const turning = turns(outputs(row, mean, std, light.z));
    const panels = turning ? panelsFor(row[2], mean, std, COARSE) : light;
    return scoreOf(row, mean, std, panels, panels);
  });
}

/** Mean and standard deviation of the output: the affine map is T(x) = mean + (sd / std) (x - mean of x). */
export function outputMoments(name, mean, std) {
  const [, f, kinks] = CATALOGUE[name];
  const { z, mass } = panelsFor(kinks, mean, std, COARSE);
  const zero = f(mean);
  const y = z.map((value) => f(mean + std * value) - zero);
  const first = sum(mass, (i) => y[i]);
  const second = sum(mass, (i) => y[i] * y[i]);
  return { mean: zero + first, sd: Math.sqrt(Math.max(0, second - first * first)) };
}

export const LIMIT = 10;
// The picture of the activation reaches beyond the means, so that the density of the input is seen.
const EDGE = 12;
const DOMAIN = Float64Array.from({ length: 241 }, (_, i) => -EDGE + (2 * EDGE * i) / 240);
const BELL = Float64Array.from({ length: 81 }, (_, i) => -4 + i / 10);
const MEANS = Float64Array.from({ length: 61 }, (_, i) => -LIMIT + (2 * LIMIT * i) / 60);

/** The score of a state. */
export function evaluate({ activation, mean, std }) {
  return { score: lawScore(activation, mean, std) };
}

/** Values outside the limits of a panel are left out. */
function within([low, high], ys) {
  return ys.map((y) => (y < low || y > high ? NaN : y));
}

/** Limits of the ordinate: the activation on [-4, 4], with room for the density below. */
function verticalLimits(f) {
  const ys = DOMAIN.filter((x) => Math.abs(x) <= 4).map(f);
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const pad = 0.12 * (high - low || 1);
  return [low - 3 * pad, high + pad];
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "ActivationExplorer", traits: ["activation", "mean", "std"],
    label: "Affinity score of any activation for a normal input",
  });
  figure.select({
    trait: "activation", label: "Activation", options: Object.entries(CATALOGUE).map(([name, row]) => [name, row[0]]),
  });
  figure.slider({ trait: "mean", label: "Mean of the input", min: -LIMIT, max: LIMIT, step: 0.1 });
  figure.slider({ trait: "std", label: "Standard deviation of the input", min: 0.05, max: 4, step: 0.05 });

  const left = figure.panel({
    label: "The activation, the density of the input, and the affine map that fits best", xlim: [-EDGE, EDGE],
    ylim: [0, 1], xlabel: "input", legend: [["curve", "output"], ["input-curve", "density"], ["image-line", "affine map"]],
    reads: { series: { curve: "output", "image-line": "affine map" } },
  });
  const band = left.band("input-band");
  const curve = left.line("curve");
  const density = left.line("input-curve");
  const image = left.line("image-line");
  const densities = left.notes(); // the picture has no axis for them
  const right = figure.scorePanel({
    label: "The affinity score against the mean of the input", xlabel: "mean of the input", limit: LIMIT, gaps: false,
  });

  // The curve is computed once for each activation and standard deviation, and drawn where the mean has been.
  let [drawn, scores] = ["", []];
  const trail = new Trail(MEANS);
  return figure.onDraw(({ activation: name, mean, std }) => {
    const [title, f] = CATALOGUE[name];
    const ylim = verticalLimits(f);
    left.setLimits([-EDGE, EDGE], ylim);
    curve(DOMAIN, within(ylim, DOMAIN.map(f)));
    band(Math.max(-EDGE, mean - 2 * std), Math.min(EDGE, mean + 2 * std));
    const height = 0.45 * (ylim[1] - ylim[0]);
    const near = BELL.map((z) => mean + std * z).map((x) => (Math.abs(x) > EDGE ? NaN : x));
    const heights = near.map((x) => ylim[0] + height * Math.exp(-0.5 * ((x - mean) / std) ** 2));
    density(near, heights);
    densities(near, heights, Array.from(near, (x) => `input ${format(x)}: density ${
      readout(Math.exp(-0.5 * ((x - mean) / std) ** 2) / (std * Math.sqrt(2 * Math.PI)))}`));
    const output = outputMoments(name, mean, std);
    image(near, within(ylim, near.map((x) => output.mean + (output.sd / std) * (x - mean))));

    if (drawn !== `${name} ${std}`) [drawn, scores] = [`${name} ${std}`, scoreCurve(name, MEANS, std)];
    right.curve(MEANS, scores, trail.visit(drawn, mean));
    const { score } = evaluate({ activation: name, mean, std });
    right.dot(mean, score);
    return {
      score,
      headline: score === 0 ? "Affinity score < 0.001" : undefined, // the score is never 0, only too small to compute
      text: `${title}, normal input with mean ${format(mean, 1)} and standard deviation ${format(std, 2)}`,
    };
  });
}

export default { render };
