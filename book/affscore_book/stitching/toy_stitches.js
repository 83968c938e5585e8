// Small networks, and the stitches between them in closed form. Python's side: toy.py.
import { assignment } from "../kit/assignment.js";

// A matrix is a list of rows; features are one row a point.
const SMALLEST_SCALE = 1e-6;

export const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));

function dot(u, v) {
  let sum = 0;
  for (let k = 0; k < u.length; k++) sum += u[k] * v[k];
  return sum;
}

/** a times the transpose of b. */
export const timesTransposed = (a, b) => a.map((row) => b.map((other) => dot(row, other)));
export const times = (a, b) => timesTransposed(a, transpose(b));

/** The features of points (n, 2) behind the hidden layer `cut`, or of features that enter at the layer `from`. */
export function features(network, points, cut, from = 0) {
  let h = points;
  for (let layer = from; layer < cut; layer++) {
    const bias = network.biases[layer];
    h = timesTransposed(h, network.weights[layer]).map((row) => row.map((value, k) => Math.max(value + bias[k], 0)));
    if (network.turn) h = timesTransposed(h, network.turn);
  }
  return h;
}

/** The outputs of a network that gets these features behind its hidden layer `cut`. */
export function outputs(network, values, cut) {
  const last = timesTransposed(features(network, values, 2, cut), network.weights[2]);
  return last.map(([value]) => value + network.biases[2][0]);
}

/** a = U diag(s) V^T by one-sided Jacobi rotations: the columns of U and V as lists, s falling. */
export function svd(a) {
  const n = a[0].length;
  const u = transpose(a);
  const v = u.map((_, i) => u.map((__, j) => Number(i === j)));
  for (let turned = true, sweep = 0; turned && sweep < 60; sweep++) {
    turned = false;
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        const [alpha, beta, gamma] = [dot(u[p], u[p]), dot(u[q], u[q]), dot(u[p], u[q])];
        if (Math.abs(gamma) <= 1e-15 * Math.sqrt(alpha * beta)) continue;
        turned = true;
        const zeta = (beta - alpha) / (2 * gamma);
        const tan = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
        const cos = 1 / Math.hypot(1, tan);
        for (const pair of [u, v]) {
          const [left, right] = [pair[p], pair[q]];
          pair[p] = left.map((value, k) => cos * (value - tan * right[k]));
          pair[q] = right.map((value, k) => cos * (value + tan * left[k]));
        }
      }
    }
  }
  const s = u.map((column) => Math.hypot(...column));
  const order = s.map((_, k) => k).sort((i, j) => s[j] - s[i]);
  return {
    u: order.map((k) => u[k].map((value) => (s[k] > 0 ? value / s[k] : 0))), s: order.map((k) => s[k]),
    v: order.map((k) => v[k]),
  };
}

/** yx times the pseudo-inverse of xx, cut to a rank. */
function leastSquares(xx, yx, rank) {
  const { u, s, v } = svd(xx);
  const kept = s.map((value) => (value > 1e-10 * s[0] ? 1 / value : 0));
  const inverse = times(transpose(v), u.map((column, k) => column.map((value) => value * kept[k])));
  const full = times(yx, inverse);
  if (!rank) return full;
  const leading = svd(times(times(full, xx), transpose(full))).u.slice(0, rank);
  return times(times(transpose(leading), leading), full);
}

/** The pairing of channels with the largest sum of correlations; partner[i] is the channel of x for channel i of y. */
function pairing(x, y, n) {
  const centred = (rows) => transpose(rows).map((column) => {
    const mean = column.reduce((sum, value) => sum + value, 0) / n;
    const rest = column.map((value) => value - mean);
    const size = Math.hypot(...rest);
    return rest.map((value) => (size > 0 ? value / size : 0));
  });
  const correlation = timesTransposed(centred(y), centred(x));
  return assignment(Float64Array.from(correlation.flat(), (value) => -value), correlation.length);
}

/** The best stitch of a kind that takes features x towards y, as toy_stitch in toy.py. */
export function stitchOf(kind, x, y) {
  const unit = x[0].map((_, i) => x[0].map((__, j) => Number(i === j)));
  if (kind === "none") return unit;
  const [xt, yt] = [transpose(x), transpose(y)];
  const [xx, yx] = [timesTransposed(xt, xt), timesTransposed(yt, xt)];
  if (kind === "permutation" || kind === "g_relu") {
    return Array.from(pairing(x, y, x.length), (j, i) => {
      const scale = kind === "permutation" ? 1 : Math.max(xx[j][j] > 0 ? yx[i][j] / xx[j][j] : 1, SMALLEST_SCALE);
      return unit[j].map((value) => value * scale);
    });
  }
  if (kind === "orthogonal") {
    const { u, v } = svd(yx);
    return times(transpose(u), v);
  }
  return leastSquares(xx, yx, kind === "full" ? 0 : Number(kind.slice("rank ".length)));
}

/** The share of y's variance that a stitch explains. */
export function explained(matrix, x, y) {
  const guess = timesTransposed(x, matrix);
  const mean = transpose(y).map((column) => column.reduce((sum, value) => sum + value, 0) / y.length);
  let [left, total] = [0, 0];
  y.forEach((row, i) => row.forEach((value, k) => {
    left += (value - guess[i][k]) ** 2;
    total += (value - mean[k]) ** 2;
  }));
  return 1 - left / total;
}
