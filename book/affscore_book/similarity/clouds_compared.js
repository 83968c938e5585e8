// Two clouds of two channels, and five similarities of them, each beside what it gives for nothing.
// Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { element, format } from "../kit/panel.js";
import { uniforms } from "../kit/uniforms.js";

export const IMAGES = [12, 48];
export const SHUFFLES = 101; // so that the values of ranks 5 and 95 are the 5 % and the 95 % point
export const MEASURES = [
  ["relu", "Procrustes, G_ReLU"],
  ["relu_uncentred", "Procrustes, not centred"],
  ["orthogonal", "Procrustes, orthogonal"],
  ["max", "CKA, max (G_ReLU)"],
  ["linear", "CKA, linear"],
];
export const ORDERS = [["kept", "kept"], ["swapped", "swapped"]];

const range = (count) => Array.from({ length: count }, (_, k) => k);
const inner = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);

// A cloud is a pair of channels [values of the first, values of the second].

/** Two correlated channels after a ReLU; other streams are unrelated clouds of the same kind. */
function features(stream) {
  const [a, b] = [0, 1].map((channel) => {
    const draws = range(3).map((k) => uniforms(stream + 3 * channel + k, IMAGES[1]));
    return draws[0].map((value, i) => value + draws[1][i] + draws[2][i]);
  });
  return [a.map((value) => Math.max(value + 1, 0)), a.map((value, i) => Math.max(0.7 * (value + b[i]) + 1, 0))];
}

const FIRST = features(1);
const UNRELATED = features(7);

/** The two clouds of a state. */
export function clouds({ angle, images, noise, order, stretch }) {
  const x = FIRST.map((channel) => channel.slice(0, images));
  const factor = 2 ** (stretch / 4);
  const mixed = x.map((channel, c) => channel.map((value, i) => (1 - noise) * value + noise * UNRELATED[c][i]));
  const scaled = [mixed[0].map((value) => factor * value), mixed[1]];
  const [u, v] = order === "kept" ? scaled : scaled.reverse();
  const [cos, sin] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  return { x, y: [u.map((value, i) => cos * value - sin * v[i]), u.map((value, i) => sin * value + cos * v[i])] };
}

const ORDERS_OF_IMAGES = new Map();

/** The images as they are, and in SHUFFLES fixed random orders. */
function shuffles(images) {
  if (!ORDERS_OF_IMAGES.has(images)) {
    const shuffled = range(SHUFFLES).map((k) => {
      const keys = uniforms(20 + k, images);
      return range(images).sort((i, j) => keys[i] - keys[j]);
    });
    ORDERS_OF_IMAGES.set(images, [range(images), ...shuffled]);
  }
  return ORDERS_OF_IMAGES.get(images);
}

// -------------------------------------------------------------------------------------------- the measures
// Each prepares two clouds and returns a function of the order of the second one's images.

function centred(channel) {
  const mean = channel.reduce((sum, value) => sum + value, 0) / channel.length;
  return channel.map((value) => value - mean);
}

/** Every channel divided by its norm. */
const unitChannels = (cloud) => cloud.map((channel) => {
  const size = Math.sqrt(inner(channel, channel));
  return channel.map((value) => value / size);
});

/** Both channels divided by their norm together. */
function unitMatrix(cloud) {
  const size = Math.sqrt(inner(cloud[0], cloud[0]) + inner(cloud[1], cloud[1]));
  return cloud.map((channel) => channel.map((value) => value / size));
}

/** 1 - delta / 2 for matrices of norm 1; best() is the largest trace that the group reaches. */
function procrustes(a, b, best) {
  const size = a.concat(b).reduce((sum, channel) => sum + inner(channel, channel), 0);
  return (order) => {
    const cross = a.map((u) => b.map((v) => order.reduce((sum, from, i) => sum + u[i] * v[from], 0)));
    return 1 - Math.sqrt(Math.max(0, (2 * (size - 2 * best(cross))) / size)) / 2;
  };
}

/** Two channels have two matchings. */
const matching = ([[p, q], [r, s]]) => Math.max(p + s, q + r);

/** The sum of the singular values. */
const nuclear = ([[p, q], [r, s]]) => Math.sqrt(p * p + q * q + r * r + s * s + 2 * Math.abs(p * s - q * r));

/** A table of products, 0 on its diagonal, without what is common to a row or a column. */
function table(cloud, kernel) {
  const n = cloud[0].length;
  const [u, v] = cloud;
  const result = range(n).map((i) => Float64Array.from(range(n), (j) => (
    i === j ? 0 : kernel(u[i] * u[j], v[i] * v[j]))));
  const margin = result.map((row) => row.reduce((sum, value) => sum + value, 0) / (n - 2));
  const common = margin.reduce((sum, value) => sum + value, 0) / (n - 1);
  return result.map((row, i) => row.map((value, j) => (i === j ? 0 : value - margin[i] - margin[j] + common)));
}

function cka(a, b, kernel) {
  const [k, l] = [table(a, kernel), table(b, kernel)];
  const norm = Math.sqrt([k, l].reduce((product, t) => product * t.reduce((sum, row) => sum + inner(row, row), 0), 1));
  return (order) => {
    let sum = 0;
    for (let i = 0; i < order.length; i++) {
      const [row, other] = [k[i], l[order[i]]];
      for (let j = 0; j < i; j++) sum += row[j] * other[order[j]];
    }
    return (2 * sum) / norm;
  };
}

const COMPARE = {
  relu: (x, y) => procrustes(unitChannels(x.map(centred)), unitChannels(y.map(centred)), matching),
  relu_uncentred: (x, y) => procrustes(unitChannels(x), unitChannels(y), matching),
  orthogonal: (x, y) => procrustes(unitMatrix(x.map(centred)), unitMatrix(y.map(centred)), nuclear),
  max: (x, y) => cka(unitChannels(x.map(centred)), unitChannels(y.map(centred)), Math.max),
  linear: (x, y) => cka(unitMatrix(x.map(centred)), unitMatrix(y.map(centred)), (p, q) => p + q),
};

/** The score of a state, its clouds, and for every measure { value, mean, low, high }: the last three are the null's. */
export function evaluate(state) {
  const { x, y } = clouds(state);
  const [given, ...shuffled] = shuffles(state.images);
  const found = MEASURES.map(([name]) => {
    const compare = COMPARE[name](x, y);
    const null_ = shuffled.map(compare).sort((a, b) => a - b);
    const mean = null_.reduce((sum, value) => sum + value, 0) / SHUFFLES;
    return { value: compare(given), mean, low: null_[5], high: null_[95] };
  });
  const chosen = found[MEASURES.findIndex(([name]) => name === state.measure)];
  return { score: chosen.value, x, y, found, chosen };
}

// ---------------------------------------------------------------------------------------------- the picture

/** Three digits; a number that is not 0 is not written as 0. */
export function digits(value) {
  if (Math.abs(value) >= 0.0005 || Math.abs(value) < 1e-9) return format(value, 3);
  return value > 0 ? "< 0.001" : "> \u22120.001";
}

/** Limits of both axes that hold all values and seldom change: multiples of 2. */
function frame(columns) {
  const values = columns.flatMap((column) => Array.from(column));
  const low = 2 * Math.floor(Math.min(...values, 0) / 2 + 1e-9);
  return [low, Math.max(low + 4, 2 * Math.ceil(Math.max(...values) / 2 - 1e-9))];
}

/** A measure and its null, in words. */
const nullOf = ({ mean, low, high }) => `null: mean ${digits(mean)}, 5 to 95 %: ${digits(low)} to ${digits(high)}`;

/** Where the middle of a row of the right panel is. */
const middleOf = (k) => MEASURES.length - k - 0.68;

/** One row of the right panel: the measure's name, its null as a bar with the mean, its value as a dot and a number. */
function addRow(panel, k, [, name]) {
  const middle = middleOf(k);
  const y = panel.y(middle);
  element(panel.svg, "text", { class: "label", x: panel.box.left - 32, y: y - 16 }, name);
  const number = element(panel.svg, "text", { class: "label", x: panel.box.right - 2, y: y - 16, "text-anchor": "end" });
  const bar = panel.line("dead-key");
  const mean = panel.line("curve");
  const dot = element(panel.svg, "circle", { cy: y, r: 6 });
  return ({ value, ...rest }, chosen) => {
    bar([rest.low, rest.high], [middle, middle]);
    mean([rest.mean, rest.mean], [middle - 0.16, middle + 0.16]);
    dot.setAttribute("cx", panel.x(value));
    dot.setAttribute("class", chosen ? "score-dot" : "input-dot");
    number.textContent = digits(value);
  };
}

function render({ model, el }) {
  const traits = ["angle", "images", "measure", "noise", "order", "stretch"];
  const figure = new Figure({
    model, el, name: "CloudsCompared", traits, label: "Two clouds, and five similarities of them beside their nulls",
  });
  figure.select({ trait: "measure", label: "Measure", options: MEASURES });
  figure.select({ trait: "order", label: "Channels", options: ORDERS });
  figure.slider({
    trait: "angle", label: "Rotation", min: -180, max: 180, step: 5, text: (value) => `${format(value, 0)}\u00b0`,
  });
  figure.slider({
    trait: "stretch", label: "Scale of channel 1", min: -6, max: 6, step: 1,
    text: (value) => `\u00d7${format(2 ** (value / 4), 2)}`,
  });
  figure.slider({
    trait: "noise", label: "Share of an unrelated cloud", min: 0, max: 1, step: 0.05,
    text: (value) => `${format(100 * value, 0)} %`,
  });
  figure.slider({
    trait: "images", label: "Images", min: IMAGES[0], max: IMAGES[1], step: 1, text: (value) => format(value, 0),
  });

  const left = figure.panel({
    label: "The two clouds, a line from each image of the first to the same image of the second", xlim: [0, 4],
    ylim: [0, 4], xlabel: "channel 1 (vertical: channel 2)", height: 346,
    reads: { series: { "input-dots": "first cloud", "image-line": "second cloud" } },
  });
  element(left.svg, "circle", { class: "input-dot", cx: 12, cy: 12, r: 4 });
  element(left.svg, "text", { class: "label", x: 22, y: 16 }, "first cloud");
  element(left.svg, "path", { class: "image-line", d: "M108 8L116 16M108 16L116 8" });
  element(left.svg, "text", { class: "label", x: 122, y: 16 }, "second cloud");
  const links = left.line("curve link");
  const first = left.specks("input-dots");
  const second = left.crosses("image-line", 3.5);
  const right = figure.panel({
    label: "Five similarities, each beside its null", xlim: [-0.4, 1], ylim: [0, MEASURES.length],
    xlabel: "similarity", legend: [["dead-key", "null: mean, 5 to 95 %"]], height: 346,
    reads: { series: {} },
  });
  // The rows have names, not numbers.
  for (const tick of right.axes.querySelectorAll("text[text-anchor=end]")) tick.remove();
  const rows = MEASURES.map((measure, k) => addRow(right, k, measure));
  const notes = right.notes(1);

  return figure.onDraw(() => {
    const state = Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
    const { score, x, y, found, chosen } = evaluate(state);
    const limits = frame([...x, ...y]);
    left.setLimits(limits, limits);
    links(...[0, 1].map((c) => Array.from(x[c]).flatMap((value, i) => [value, y[c][i], NaN])));
    const images = Array.from(x[0], (_, i) => `image ${i + 1}`);
    first(...x, images);
    second(...y, images);
    rows.forEach((row, k) => row(found[k], found[k] === chosen));
    notes(found.map(({ value }) => value), found.map((_, k) => middleOf(k)),
      found.map((each, k) => `${MEASURES[k][1]}: ${digits(each.value)}; ${nullOf(each)}`));
    const name = MEASURES.find(([value]) => value === state.measure)[1];
    return {
      score, headline: `${name}: ${digits(score)}`,
      text: nullOf(chosen),
    };
  });
}

export default { render };
