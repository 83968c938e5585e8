// The first half of one small network, a stitch, the second half of another. Python's side: widget.py and toy.py.
import { Figure } from "../kit/figure.js";
import { element, format } from "../kit/panel.js";
import { explained, features, outputs, stitchOf, timesTransposed } from "./toy_stitches.js";

export const PAIRS = {
  seed: ["a", "b", "A, then B (another seed)"],
  twin: ["a", "twin", "A, then a twin of A"],
  turned: ["a", "turned", "A, then A turned behind ReLU"],
  untrained_second: ["a", "untrained", "A, then an untrained one"],
  untrained_first: ["untrained", "b", "an untrained one, then B"],
};
export const CUTS = [["first", "hidden layer 1"], ["second", "hidden layer 2"]];
export const STITCHES = [
  ["none", "none"], ["permutation", "permutation"], ["g_relu", "permutation and scales"],
  ["orthogonal", "orthogonal"], ["rank 1", "rank 1"], ["rank 2", "rank 2"], ["full", "full"],
  ["learned", "full, learned on the classes"],
];
export const FRAME = [[-2.2, 2.2], [-1.4, 1.4]];
export const CELLS = [56, 36];

const coordinates = (points) => points.map(([x, y]) => [x, y]);

/** The share of points [x, y, class] whose output is on its side. */
function accuracy(values, points) {
  return values.filter((value, i) => value > 0 === points[i][2] > 0).length / points.length;
}

/** All that the page shows of a state: score is the accuracy of the stitched network, penalty is in points. */
export function evaluate({ toys, pair, cut: name, stitch }) {
  if (!toys.networks) return { score: NaN };
  const cut = name === "first" ? 1 : 2;
  const [first, second] = PAIRS[pair].map((key) => toys.networks[key]);
  const [x, y] = [first, second].map((network) => features(network, coordinates(toys.fit), cut));
  const matrix = stitch === "learned" ? toys.learned[pair][cut - 1] : stitchOf(stitch, x, y);
  const stitched = (points) => outputs(second, timesTransposed(features(first, points, cut), matrix), cut);
  const test = coordinates(toys.test);
  const score = accuracy(stitched(test), toys.test);
  const alone = [first, second].map((network) => accuracy(outputs(network, test, 0), toys.test));
  return {
    score, matrix, alone, stitched, second: (points) => outputs(second, points, 0),
    penalty: 50 * (alone[0] + alone[1]) - 100 * score, share: explained(matrix, x, y),
  };
}

const [[LEFT, RIGHT], [BOTTOM, TOP]] = FRAME;
const [ACROSS, UP] = [(RIGHT - LEFT) / CELLS[0], (TOP - BOTTOM) / CELLS[1]];
const CORNERS = Array.from({ length: (CELLS[0] + 1) * (CELLS[1] + 1) }, (_, k) => [
  LEFT + ACROSS * (k % (CELLS[0] + 1)), BOTTOM + UP * Math.floor(k / (CELLS[0] + 1)),
]);
const CENTRES = Array.from({ length: CELLS[0] * CELLS[1] }, (_, k) => [
  LEFT + ACROSS * ((k % CELLS[0]) + 0.5), BOTTOM + UP * (Math.floor(k / CELLS[0]) + 0.5),
]);

/** The outline of the cells whose value is above 0, one box a run. */
function region(panel, values) {
  let text = "";
  for (let row = 0; row < CELLS[1]; row++) {
    const [low, high] = [panel.y(BOTTOM + UP * row), panel.y(BOTTOM + UP * (row + 1))];
    for (let k = 0; k < CELLS[0]; k++) {
      const start = k;
      while (k < CELLS[0] && values[row * CELLS[0] + k] > 0) k++;
      const [from, to] = [start, k].map((cell) => panel.x(LEFT + ACROSS * cell));
      if (k > start) text += `M${from} ${low}H${to}V${high}H${from}Z`;
    }
  }
  return text;
}

/** The line where values at the corners change their sign, as pieces within cells. */
function border(panel, values) {
  let text = "";
  for (let k = 0; k < (CELLS[0] + 1) * CELLS[1]; k++) {
    if (k % (CELLS[0] + 1) === CELLS[0]) continue;
    const around = [k, k + 1, k + CELLS[0] + 2, k + CELLS[0] + 1, k];
    let pen = "M";
    for (let edge = 0; edge < 4; edge++) {
      const [i, j] = [around[edge], around[edge + 1]];
      if (values[i] > 0 === values[j] > 0) continue;
      const share = values[i] / (values[i] - values[j]);
      const [x, y] = [0, 1].map((axis) => CORNERS[i][axis] + share * (CORNERS[j][axis] - CORNERS[i][axis]));
      text += `${pen}${panel.x(x)} ${panel.y(y)}`;
      pen = pen === "M" ? "L" : "M";
    }
  }
  return text;
}

/** Squares of an area that grows with the entries, [positive, negative]: column j of row i around (j + 1, i + 1). */
function squares(panel, matrix) {
  const largest = Math.max(...matrix.flat().map(Math.abs));
  const text = ["", ""];
  matrix.forEach((row, i) => row.forEach((value, j) => {
    const half = 10 * Math.sqrt(Math.abs(value) / largest);
    if (!(half > 0.5)) return;
    const corner = [panel.x(j + 1) - half, panel.y(i + 1) - half, 2 * half];
    const [x, y, side] = corner.map((each) => Math.round(10 * each) / 10);
    text[value > 0 ? 0 : 1] += `M${x} ${y}h${side}v${side}h${-side}Z`;
  }));
  return text;
}

function render({ model, el }) {
  const traits = ["cut", "pair", "stitch", "toys"];
  const figure = new Figure({
    model, el, name: "TwoNetworks", traits,
    label: "The first half of one small network stitched to the second half of another",
  });
  figure.select({
    trait: "pair", label: "Networks", options: Object.entries(PAIRS).map(([value, parts]) => [value, parts[2]]),
  });
  figure.select({ trait: "cut", label: "Cut behind", options: CUTS });
  figure.select({ trait: "stitch", label: "Stitch", options: STITCHES });
  const { test } = model.get("toys");
  const left = figure.panel({
    label: "The points, and the two classes of the stitched network", xlim: FRAME[0], ylim: FRAME[1], xlabel: "input",
    legend: [["region-key", "stitched says 1"], ["curve", "edge, second alone"]], reads: { series: {} },
  });
  const points = left.notes();
  const shade = element(left.svg, "path", { class: "region" });
  const line = element(left.svg, "path", { class: "curve" });
  let [dots, crosses] = ["", ""];
  for (const [px, py, label] of test ?? []) {
    const [x, y] = [left.x(px), left.y(py)];
    if (label) dots += `M${x} ${y}h0`;
    else crosses += `M${x - 2} ${y - 2}l4 4M${x - 2} ${y + 2}l4 -4`;
  }
  element(left.svg, "path", { class: "moon-dots", d: dots });
  element(left.svg, "path", { class: "moon-crosses", d: crosses });
  const right = figure.panel({
    label: "The matrix of the stitch", xlim: [0.4, 8.6], ylim: [0.4, 8.6],
    xlabel: "channel of the first (vertical: of the second)", reads: { series: {} },
  });
  const entries = right.notes(8);
  const drawn = ["positive", "negative"].map((name) => element(right.svg, "path", { class: name }));
  [["positive", "M12 7h10v10h-10Z", "positive entry"], ["negative", "M152 7h10v10h-10Z", "negative entry"]].forEach(
    ([name, d, text], k) => {
      element(right.svg, "path", { class: name, d });
      element(right.svg, "text", { class: "label", x: 28 + 140 * k, y: 16 }, text);
    },
  );
  let drawnPair = "";
  return figure.onDraw(() => {
    const result = evaluate(Object.fromEntries(traits.map((trait) => [trait, model.get(trait)])));
    if (!result.matrix) return { score: NaN, text: "", headline: "There are no networks to show." };
    shade.setAttribute("d", region(left, result.stitched(CENTRES)));
    if (drawnPair !== model.get("pair")) line.setAttribute("d", border(left, result.second(CORNERS)));
    drawnPair = model.get("pair");
    const says = result.stitched(coordinates(test));
    points(test.map(([x]) => x), test.map(([, y]) => y), test.map(([x, y, label], i) =>
      `class ${label}, at ${format(x)} and ${format(y)}: the stitched network says ${Number(says[i] > 0)}`));
    const places = result.matrix.flatMap((row, j) => row.map((_, i) => [j, i]));
    entries(places.map(([j]) => j + 1), places.map(([, i]) => i + 1), places.map(([j, i]) =>
      `from channel ${j + 1} of the first to channel ${i + 1} of the second: ${format(result.matrix[i][j], 3)}`));
    squares(right, result.matrix).forEach((d, k) => drawn[k].setAttribute("d", d));
    const [one, other] = result.alone.map((value) => format(value, 3));
    const share = result.share < 0 ? "less than their mean" : `${format(100 * result.share, 0)} %`;
    return {
      score: result.score,
      headline: `Stitched accuracy ${format(result.score, 3)}, penalty ${format(result.penalty, 2)} points`,
      text: `alone: first ${one}, second ${other}; explained of the second's features: ${share}`,
    };
  });
}

export default { render };
