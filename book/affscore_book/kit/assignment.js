// The assignment problem, for the widgets that match points in more than one dimension.

/**
 * The optimal assignment for an n x n cost matrix (row after row): partner[row] = column. Shortest augmenting paths
 * with dual prices, after Jonker and Volgenant (1987); at most of order n^3.
 */
export function assignment(cost, n) {
  const prices = new Float64Array(n);
  const partner = new Int32Array(n).fill(-1);
  const owner = new Int32Array(n).fill(-1);
  const distance = new Float64Array(n);
  const from = new Int32Array(n);
  const open = new Int32Array(n);
  for (let start = 0; start < n; start++) {
    // Dijkstra's algorithm over the columns, from the row `start` to the nearest column that nobody owns.
    for (let j = 0; j < n; j++) {
      distance[j] = cost[start * n + j] - prices[j];
      from[j] = start;
      open[j] = j;
    }
    let closed = 0;
    let nearest = -1;
    for (;;) {
      let at = closed;
      for (let k = closed + 1; k < n; k++) if (distance[open[k]] < distance[open[at]]) at = k;
      nearest = open[at];
      open[at] = open[closed];
      open[closed] = nearest;
      if (owner[nearest] < 0) break;
      closed++;
      const row = owner[nearest] * n;
      const base = distance[nearest] - (cost[row + nearest] - prices[nearest]);
      for (let k = closed; k < n; k++) {
        const j = open[k];
        const length = base + cost[row + j] - prices[j];
        if (length < distance[j]) {
          distance[j] = length;
          from[j] = owner[nearest];
        }
      }
    }
    for (let k = 0; k < closed; k++) prices[open[k]] += distance[open[k]] - distance[nearest];
    for (let column = nearest; ;) {
      const row = from[column];
      owner[column] = row;
      [partner[row], column] = [column, partner[row]];
      if (row === start) break;
    }
  }
  return partner;
}
