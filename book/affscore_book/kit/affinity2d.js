// The affinity score of clouds in the plane, for the widgets that draw one. Python's side: affscore.affinity_score.
import { centreColumn } from "./affinity1d.js";
import { assignment } from "./assignment.js";

export const POINTS = 56;

// A cloud is a pair of columns [first coordinates, second coordinates].

// A sunflower spiral whose radii are quantiles of |N(0, I)|: an even standard normal cloud without random numbers.
export const SPIRAL = Array.from({ length: POINTS }, (_, i) => {
  const radius = Math.sqrt(-2 * Math.log(1 - (i + 0.5) / POINTS));
  const turn = i * Math.PI * (3 - Math.sqrt(5));
  return [radius * Math.cos(turn), radius * Math.sin(turn)];
});

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
 * The affinity score of two clouds in the plane with empirical covariances, as affscore.affinity_score gives it, the
 * paired score, and what goes into them: the affine image of x, and partner[i], the point of y that image point i is
 * coupled with.
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
  const own = partner.reduce((sum, _, i) => sum + cost[i * n + i], 0);
  const [score, paired] = [residual, own].map((cost) => (spread > 0 ? 1 - Math.sqrt(cost / (2 * spread)) : NaN));
  const image = [image1.map((value) => value + v[0].mean), image2.map((value) => value + v[1].mean)];
  return { score, paired, x, y, image, partner, w2: Math.sqrt(residual / n), bound: Math.sqrt((2 * spread) / n) };
}

