// The affinity score of samples with many channels, as affscore.affinity_score computes it, and the matrices it needs.
// Arrays hold rows of numbers one after the other.
import { centreColumn, largest } from "../kit/affinity1d.js";
import { assignment } from "../kit/assignment.js";

/** Every row of values times the weights, plus the bias: four rows at a time, which is twice as fast as one. */
export function affine(values, { weight, bias, fanIn, fanOut }) {
  const out = new Float64Array((values.length / fanIn) * fanOut);
  // Beyond the last row there is nothing to read, and what is written there is dropped.
  for (let a = 0, to = 0; a < values.length; a += 4 * fanIn, to += 4 * fanOut) {
    const [b, c, d] = [a + fanIn, a + 2 * fanIn, a + 3 * fanIn];
    for (let o = 0; o < fanOut; o++) {
      let [one, two, three, four] = [bias[o], bias[o], bias[o], bias[o]];
      for (let k = 0; k < fanIn; k++) {
        const factor = weight[o * fanIn + k];
        one += factor * values[a + k];
        two += factor * values[b + k];
        three += factor * values[c + k];
        four += factor * values[d + k];
      }
      out[to + o] = one;
      out[to + fanOut + o] = two;
      out[to + 2 * fanOut + o] = three;
      out[to + 3 * fanOut + o] = four;
    }
  }
  return out;
}

// Matrices are d x d.

export function times(a, b, d) {
  const c = new Float64Array(d * d);
  for (let i = 0; i < d; i++) {
    for (let k = 0; k < d; k++) {
      const factor = a[i * d + k];
      if (factor !== 0) for (let j = 0; j < d; j++) c[i * d + j] += factor * b[k * d + j];
    }
  }
  return c;
}

export function transpose(a, d) {
  const b = new Float64Array(d * d);
  for (let i = 0; i < d; i++) for (let j = 0; j < d; j++) b[i * d + j] = a[j * d + i];
  return b;
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

function frobenius(a) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * a[k];
  return Math.sqrt(sum);
}

/** The orthogonal factor of a regular matrix: Newton's iteration, scaled as Higham (1986) does. */
function polar(matrix, d) {
  let x = matrix;
  for (let step = 0; step < 60; step++) {
    const y = transpose(inverse(x, d), d);
    const gamma = Math.sqrt(frobenius(y) / frobenius(x));
    const change = new Float64Array(d * d);
    for (let k = 0; k < y.length; k++) {
      y[k] = (gamma * x[k] + y[k] / gamma) / 2;
      change[k] = y[k] - x[k];
    }
    x = y;
    if (frobenius(change) < 1e-12 * Math.sqrt(d)) break;
  }
  return x;
}

/** Samples less their mean, of magnitude about 1; a channel that varies by rounding only becomes exactly 0. */
function centre(values, d) {
  const out = new Float64Array(values.length);
  const column = new Float64Array(values.length / d);
  for (let c = 0; c < d; c++) {
    for (let r = 0; r < column.length; r++) column[r] = values[r * d + c];
    const { centred } = centreColumn(column);
    for (let r = 0; r < column.length; r++) out[r * d + c] = centred[r];
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
      for (let k = 0; k < d; k++) {
        const gap = image[i * d + k] - v[j * d + k];
        sum += gap * gap;
      }
      cost[i * n + j] = sum;
    }
  }
  const total = assignment(cost, n).reduce((sum, j, i) => sum + cost[i * n + j], 0);
  return 1 - Math.sqrt(total / (2 * spread));
}
