/** Gauss-Legendre nodes and weights on [-1, 1], by Newton's method on the Legendre polynomial. */
export function legendre(count) {
  const nodes = [];
  const weights = [];
  for (let i = 0; i < count; i++) {
    let x = Math.cos((Math.PI * (i + 0.75)) / (count + 0.5));
    let slope = 1;
    for (let step = 0; step < 100; step++) {
      let [before, value] = [1, x];
      for (let k = 2; k <= count; k++) [before, value] = [value, ((2 * k - 1) * x * value - (k - 1) * before) / k];
      slope = (count * (x * value - before)) / (x * x - 1);
      const change = value / slope;
      x -= change;
      if (Math.abs(change) < 1e-15) break;
    }
    nodes.unshift(x);
    weights.unshift(2 / ((1 - x * x) * slope * slope));
  }
  return { nodes, weights };
}
