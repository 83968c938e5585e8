// A random network as an image: its weights rescaled and shifted, its spectrum and the scores of its layers.
// Python's side: widget.py.
import { activation, centreColumn, largest } from "../kit/affinity1d.js";
import { assignment } from "../kit/assignment.js";
import { Figure, element, format } from "../kit/figure.js";
import { uniforms } from "../kit/uniforms.js";

export const WIDTH = 24;
export const DEPTHS = [1, 4];
export const SCALES = [0.5, 6];
export const SHIFT = 0.15;
export const GRID = 32;
export const SCORE_GRID = 10;
const FLOOR = -6;
export const OPTIONS = [
  ["relu", "ReLU"],
  ["leaky_relu", "Leaky ReLU"],
  ["silu", "SiLU"],
  ["tanh", "tanh"],
  ["gaussian", "Gaussian"],
  ["sine", "sine"],
];

/**
 * The layers of a state, the output layer last: weight = scale * (a * unit + shift), row after row. All states share one
 * draw of units in (-1, 1); the output layer has the first stream, whatever the depth.
 */
export function layers({ depth, scale, shift }) {
  return Array.from({ length: depth + 1 }, (_, l) => {
    const stream = l === depth ? 0 : 2 * (l + 1);
    const [fanIn, fanOut] = [l === 0 ? 2 : WIDTH, l === depth ? 1 : WIDTH];
    const a = Math.sqrt(6 / (fanIn + fanOut));
    const weight = uniforms(stream, fanIn * fanOut).map((u) => scale * (a * u + shift));
    return { weight, bias: uniforms(stream + 1, fanOut), fanIn, fanOut };
  });
}

/** n * n points on [-1, 1]^2 as rows of two numbers, in the order of affscore_book.redshift.networks.grid_points. */
export function gridPoints(n) {
  const points = new Float64Array(2 * n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) points.set([-1 + (2 * i) / (n - 1), -1 + (2 * j) / (n - 1)], 2 * (i * n + j));
  }
  return points;
}

function affine(values, { weight, bias, fanIn, fanOut }) {
  const rows = values.length / fanIn;
  const out = new Float64Array(rows * fanOut);
  for (let r = 0; r < rows; r++) {
    const from = r * fanIn;
    for (let o = 0; o < fanOut; o++) {
      let sum = bias[o];
      for (let k = 0; k < fanIn; k++) sum += weight[o * fanIn + k] * values[from + k];
      out[r * fanOut + o] = sum;
    }
  }
  return out;
}

/** The network on points: { output, calls }, where calls holds [inputs, outputs] of every hidden activation. */
export function forward(network, points, sigma) {
  const calls = [];
  let values = points;
  for (const layer of network.slice(0, -1)) {
    const before = affine(values, layer);
    values = before.map((value) => sigma(value));
    calls.push([before, values]);
  }
  return { output: affine(values, network.at(-1)), calls };
}

// Matrices are d x d, row after row.

function times(a, b, d) {
  const c = new Float64Array(d * d);
  for (let i = 0; i < d; i++) {
    for (let k = 0; k < d; k++) {
      const factor = a[i * d + k];
      if (factor !== 0) for (let j = 0; j < d; j++) c[i * d + j] += factor * b[k * d + j];
    }
  }
  return c;
}

function transpose(a, d) {
  return a.map((_, k) => a[(k % d) * d + Math.floor(k / d)]);
}

/** The inverse, by Gauss and Jordan with row pivots. */
function inverse(matrix, d) {
  const a = Float64Array.from(matrix);
  const b = new Float64Array(d * d);
  for (let i = 0; i < d; i++) b[i * d + i] = 1;
  for (let c = 0; c < d; c++) {
    let pivot = c;
    for (let r = c + 1; r < d; r++) if (Math.abs(a[r * d + c]) > Math.abs(a[pivot * d + c])) pivot = r;
    if (pivot !== c) {
      for (const m of [a, b]) {
        const row = m.slice(c * d, c * d + d);
        m.copyWithin(c * d, pivot * d, pivot * d + d);
        m.set(row, pivot * d);
      }
    }
    const scale = 1 / a[c * d + c];
    for (let j = c; j < d; j++) a[c * d + j] *= scale;
    for (let j = 0; j < d; j++) b[c * d + j] *= scale;
    for (let r = 0; r < d; r++) {
      const factor = a[r * d + c];
      if (r === c || factor === 0) continue;
      for (let j = c; j < d; j++) a[r * d + j] -= factor * a[c * d + j];
      for (let j = 0; j < d; j++) b[r * d + j] -= factor * b[c * d + j];
    }
  }
  return b;
}

const frobenius = (a) => Math.sqrt(a.reduce((sum, value) => sum + value * value, 0));

/** The orthogonal factor of a regular matrix: Newton's iteration, scaled as Higham (1986) does. */
function polar(matrix, d) {
  let x = matrix;
  for (let step = 0; step < 60; step++) {
    const y = transpose(inverse(x, d), d);
    const gamma = Math.sqrt(frobenius(y) / frobenius(x));
    const next = x.map((value, k) => (gamma * value + y[k] / gamma) / 2);
    const change = frobenius(next.map((value, k) => value - x[k]));
    x = next;
    if (change < 1e-12 * Math.sqrt(d)) break;
  }
  return x;
}

/** Samples less their mean, of magnitude about 1; a channel that varies by rounding only becomes exactly 0. */
function centre(values, d) {
  const out = new Float64Array(values.length);
  for (let c = 0; c < d; c++) {
    centreColumn(values.filter((_, k) => k % d === c)).centred.forEach((value, r) => { out[r * d + c] = value; });
  }
  const most = largest(out);
  return most > 0 ? out.map((value) => value / most) : out;
}

/** R, upper triangular, with R^T R = the covariance of centred samples, shrunk as Ledoit and Wolf (2004) do. */
function root(samples, d) {
  const n = samples.length / d;
  const s = new Float64Array(d * d);
  let quartic = 0;
  for (let r = 0; r < n; r++) {
    let norm = 0;
    for (let i = 0; i < d; i++) {
      const value = samples[r * d + i];
      norm += value * value;
      if (value !== 0) for (let j = i; j < d; j++) s[i * d + j] += (value * samples[r * d + j]) / n;
    }
    quartic += norm * norm;
  }
  let [square, trace] = [0, 0];
  for (let i = 0; i < d; i++) {
    trace += s[i * d + i];
    for (let j = i; j < d; j++) square += (i === j ? 1 : 2) * s[i * d + j] ** 2;
  }
  const delta = Math.max(0, square - (trace * trace) / d);
  const beta = Math.max(0, (quartic / n - square) / n);
  const share = delta > 0 ? Math.min(beta, delta) / delta : 0;
  // Cholesky's factor, in place.
  for (let i = 0; i < d; i++) for (let j = i; j < d; j++) s[i * d + j] *= 1 - share;
  for (let i = 0; i < d; i++) s[i * d + i] += (share * trace) / d;
  for (let i = 0; i < d; i++) {
    const pivot = Math.sqrt(s[i * d + i]);
    for (let j = i; j < d; j++) s[i * d + j] /= pivot;
    for (let k = i + 1; k < d; k++) {
      const factor = s[i * d + k];
      for (let j = k; j < d; j++) s[k * d + j] -= factor * s[i * d + j];
    }
  }
  return s;
}

/** affscore.affinity_score(x, y) with Ledoit-Wolf covariances, for samples of d > 1 channels, row after row. */
export function affinityScore(x, y, d) {
  const n = x.length / d;
  const [u, v] = [centre(x, d), centre(y, d)];
  const spread = v.reduce((sum, value) => sum + value * value, 0);
  if (!(spread > 0)) return NaN;
  const [rootX, rootY] = [root(u, d), root(v, d)];
  // With R_Y R_X^T = W H, W orthogonal: A = R_Y^T W R_X^-T solves A S_X A = S_Y and is symmetric and positive.
  const backX = transpose(inverse(rootX, d), d);
  const map = times(transpose(rootY, d), times(polar(times(rootY, transpose(rootX, d), d), d), backX, d), d);
  const image = affine(u, { weight: map, bias: new Float64Array(d), fanIn: d, fanOut: d });
  const cost = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += (image[i * d + k] - v[j * d + k]) ** 2;
      cost[i * n + j] = sum;
    }
  }
  const total = assignment(cost, n).reduce((sum, j, i) => sum + cost[i * n + j], 0);
  return 1 - Math.sqrt(total / (2 * spread));
}

const COSINES = Float64Array.from({ length: GRID * GRID }, (_, at) => {
  const [k, i] = [Math.floor(at / GRID), at % GRID];
  return Math.sqrt((k ? 2 : 1) / GRID) * Math.cos((Math.PI * k * (i + 0.5)) / GRID);
});

/** Power of the orthonormal DCT-II by whole radii, without the mean, as shares; and the mean radius. */
export function spectrum(image) {
  const mean = image.reduce((sum, value) => sum + value, 0) / image.length;
  const pixels = image.map((value) => value - mean);
  const coefficients = times(times(COSINES, pixels, GRID), transpose(COSINES, GRID), GRID);
  const radii = coefficients.map((_, at) => Math.hypot(Math.floor(at / GRID), at % GRID));
  const shares = new Float64Array(GRID);
  let [total, moment] = [0, 0];
  coefficients.forEach((value, at) => {
    if (at === 0) return;
    total += value * value;
    moment += value * value * radii[at];
    if (Math.round(radii[at]) < GRID) shares[Math.round(radii[at])] += value * value;
  });
  return { shares: shares.map((share) => share / total), frequency: moment / total };
}

/** All that the page shows for a state; the score is the mean over the layers. */
export function evaluate({ activation: name, depth, scale, shift }) {
  const network = layers({ depth, scale, shift });
  const sigma = activation(name);
  const scores = forward(network, gridPoints(SCORE_GRID), sigma).calls.map(([x, y]) => affinityScore(x, y, WIDTH));
  const image = forward(network, gridPoints(GRID), sigma).output;
  const score = scores.reduce((sum, value) => sum + value, 0) / depth;
  return { score, scores, image, ...spectrum(image) };
}

const GREYS = Array.from({ length: 64 }, (_, k) => `rgb(${Array(3).fill(Math.round((255 * k) / 63)).join(",")})`);

/** What stands below the score; widget.py writes the same. */
function summary(name, { scores, frequency }) {
  const label = OPTIONS.find(([value]) => value === name)[1];
  const list = scores.map((score) => format(score, 2)).join(", ");
  return `${label}: layers ${list}; mean frequency ${format(frequency, 2)}`;
}

function render({ model, el }) {
  const traits = ["activation", "depth", "scale", "shift"];
  const figure = new Figure({
    model, el, name: "RedshiftImage", traits, label: "The image of a random network, its spectrum and its scores",
  });
  figure.select({ trait: "activation", label: "Activation", options: OPTIONS });
  figure.slider({
    trait: "scale", label: "Scale of the weights", min: SCALES[0], max: SCALES[1], step: 0.1,
    text: (value) => format(value, 1),
  });
  figure.slider({ trait: "shift", label: "Shift of the weights", min: -SHIFT, max: SHIFT, step: 0.01 });
  figure.slider({
    trait: "depth", label: "Hidden layers", min: DEPTHS[0], max: DEPTHS[1], step: 1, text: (value) => format(value, 0),
  });

  const left = figure.panel({
    label: "The output of the network over its two inputs, dark for low and bright for high", xlim: [-1, 1],
    ylim: [-1, 1], xlabel: "first input (vertical: second input)", height: 356,
  });
  const size = (left.box.right - left.box.left) / GRID;
  const pixels = Array.from({ length: GRID * GRID }, (_, at) => element(left.svg, "rect", {
    x: left.box.left + size * Math.floor(at / GRID), y: left.box.bottom - size * ((at % GRID) + 1),
    width: size, height: size, "shape-rendering": "crispEdges",
  }));
  const right = figure.panel({
    label: "Its spectrum: the share of power at each frequency, and the mean frequency", xlim: [0, GRID],
    ylim: [FLOOR, 0], xlabel: "frequency (half periods an image)", ylabel: "log\u2081\u2080 power",
    legend: [["image-line", "mean"]], height: 356,
  });
  const meanLine = right.line("image-line");
  const powers = right.line("input-curve");

  const axis = Array.from({ length: GRID - 1 }, (_, k) => k + 1);
  return figure.onDraw(() => {
    const state = Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
    const result = evaluate(state);
    const low = Math.min(...result.image);
    const span = Math.max(...result.image) - low;
    pixels.forEach((pixel, at) => {
      const level = span > 0 ? Math.round((GREYS.length - 1) * (result.image[at] - low) / span) : GREYS.length >> 1;
      pixel.setAttribute("fill", GREYS[level]);
    });
    powers(axis, axis.map((k) => Math.max(FLOOR, Math.log10(result.shares[k]))));
    meanLine([result.frequency, result.frequency], [FLOOR, 0]);
    return { score: result.score, text: summary(state.activation, result) };
  });
}

export default { render };
