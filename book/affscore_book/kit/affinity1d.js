// The mathematics that every one-dimensional widget shares. Its Python twin is affinity1d.py.
//
// Laws are grids of n equally likely points (quantiles at (i + 1/2) / n). The score of such a grid is the exact
// empirical affinity score, affscore.affinity_score(x, y, covariance="empirical"): tests/kit compares the two.

const TERMS = Array.from({ length: 13 }, (_, k) => Math.exp(-0.25 * k * k));

/** erfc(x) to about 1e-15 relative. */
export function erfc(x) {
  if (x < 0) return 2 - erfc(-x);
  if (x < 0.5) return 1 - erf(x);
  // The trapezoidal rule with step h = 1/2 for erfc(x) = (x e^(-x^2) / pi) Int e^(-t^2) / (t^2 + x^2) dt. The pole
  // at t = ix adds the last term; the rest of the error is of order e^(-pi^2 / h^2) = 1e-17.
  const square = x * x;
  let sum = 0.5 / square;
  for (let k = 1; k < TERMS.length; k++) sum += TERMS[k] / (0.25 * k * k + square);
  const integral = (x / Math.PI) * gaussian(x) * sum;
  return x < 6 ? integral - 2 / Math.expm1(4 * Math.PI * x) : integral;
}

/** erf(x) to about 1e-15 relative. */
export function erf(x) {
  if (x < -0.5) return erfc(-x) - 1;
  if (x > 0.5) return 1 - erfc(x);
  // erf(x) = 2 / sqrt(pi) e^(-x^2) sum_k 2^k x^(2k + 1) / (1 * 3 * ... * (2k + 1)): no term changes sign.
  let term = x;
  let sum = x;
  for (let k = 1; k < 20; k++) {
    term *= (2 * x * x) / (2 * k + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** e^(-x^2). The square is split into two exact parts, or its rounding would show in the tails. */
function gaussian(x) {
  if (x * x > 750) return 0; // it is below the smallest number, and 0 * Infinity would be NaN
  const head = Math.round(x * 16) / 16;
  return Math.exp(-head * head) * Math.exp(-(x - head) * (x + head));
}

/** The distribution function of N(0, 1), accurate in both tails. */
export function normalCdf(x) {
  return 0.5 * erfc(-x / Math.SQRT2);
}

/** n equally likely points that stand for the uniform law on [a, b]. */
export function uniformGrid(a, b, n) {
  return Float64Array.from({ length: n }, (_, i) => a + ((b - a) * (i + 0.5)) / n);
}

export const sigmoid = (x) => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));

/** What widgets choose from, by the names of the catalogue of activation functions. */
export const ACTIVATIONS = {
  identity: (x) => x,
  relu: (x) => Math.max(x, 0),
  leaky_relu: (x) => (x < 0 ? 0.01 * x : x),
  hardtanh: (x) => Math.min(Math.max(x, -1), 1),
  tanh: Math.tanh,
  sigmoid,
  gelu: (x) => x * normalCdf(x),
  silu: (x) => x * sigmoid(x),
  gaussian: (x) => Math.exp(-x * x),
  sine: Math.sin,
};

/** What a reader chooses from in the widgets of clouds and ranges: [value, shown text]. */
export const CHOICES = [
  ["relu", "ReLU"],
  ["leaky_relu", "Leaky ReLU"],
  ["gelu", "GELU"],
  ["tanh", "tanh"],
  ["sigmoid", "sigmoid"],
  ["hardtanh", "hardtanh"],
];

/** The activation of that name; an error that names those there are where it is unknown. */
export function activation(name) {
  if (!Object.hasOwn(ACTIVATIONS, name)) {
    throw new Error(`The activation is "${name}"; it should be one of ${Object.keys(ACTIVATIONS).join(", ")}.`);
  }
  return ACTIVATIONS[name];
}

const sorted = (values) => Float64Array.from(values).sort();

export const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Mean of a column and its centred values, exactly 0 where it varies by rounding only. */
export function centreColumn(values) {
  const n = values.length;
  const first = values.reduce((sum, value) => sum + value, 0) / n;
  // The first mean of values far from 0 is itself rounded; the second pass removes what that leaves.
  const rest = values.reduce((sum, value) => sum + (value - first), 0) / n;
  const centred = values.map((value) => value - first - rest);
  if (largest(centred) <= 4 * Number.EPSILON * largest(values)) centred.fill(0);
  return { mean: first + rest, centred };
}

/** Mean, standard deviation (1/n) and standardised values. sd is 0 where the values vary by rounding only. */
function standardise(values) {
  // Work at magnitude 1: squares of very small or very large values would leave the range of a double. A power of 2
  // takes nothing from the digits.
  const size = largest(values);
  const scale = size > 0 ? 2 ** Math.floor(Math.log2(size)) : 1;
  const { mean, centred } = centreColumn(values.map((value) => value / scale));
  const spread = largest(centred);
  if (spread === 0) return { mean: mean * scale, sd: 0, standard: centred };
  const square = centred.reduce((sum, value) => sum + (value / spread) ** 2, 0);
  const sd = Math.sqrt(square / values.length);
  return { mean: mean * scale, sd: sd * spread * scale, standard: centred.map((value) => value / spread / sd) };
}

/**
 * The affinity score of the outputs y for the inputs x, both of length n (NaN where y does not vary), and the affine
 * transport map of the inputs, map(x).
 *
 * In one dimension optimal transport pairs sorted with sorted, whatever the activation.
 */
export function affinity(x, y) {
  const n = x.length;
  if (n < 2 || y.length !== n) {
    throw new Error(`x has ${n} points and y has ${y.length}; both should have the same number, at least 2.`);
  }
  const u = standardise(sorted(x));
  const v = standardise(sorted(y));
  let r = 0;
  let oneMinusR = 0;
  for (let i = 0; i < n; i++) {
    r += u.standard[i] * v.standard[i];
    oneMinusR += (u.standard[i] - v.standard[i]) ** 2;
  }
  r /= n;
  oneMinusR /= 2 * n;
  // A constant input has the constant image mean(y): then 1 - r stands for W2^2 / (2 Var y) = 1/2.
  if (u.sd === 0) r = oneMinusR = 0.5;
  const distance = Math.sqrt(oneMinusR);
  let score = NaN;
  if (v.sd > 0) score = r < 0.5 ? r / (1 + distance) : 1 - distance;
  const slope = u.sd > 0 ? v.sd / u.sd : 0;
  return { score, map: (value) => v.mean + slope * (value - u.mean) };
}
