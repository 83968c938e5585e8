// A random network as an image: its weights rescaled and shifted, its spectrum and the scores of its layers.
// Python's side: widget.py.
import { activation } from "../kit/affinity1d.js";
import { Figure } from "../kit/figure.js";
import { element, format } from "../kit/panel.js";
import { uniforms } from "../kit/uniforms.js";
import { affine, affinityScore, times, transpose } from "./affinity.js";

export const WIDTH = 24;
export const DEPTHS = [1, 5];
export const SCALES = [0.5, 6];
export const SHIFT = 0.15;
export const SEEDS = [0, 99];
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

const UNITS = new Map();

/** uniforms(stream, count), drawn once for each seed. */
function units(stream, count) {
  const key = `${stream} ${count}`;
  if (UNITS.size > 100) UNITS.clear();
  if (!UNITS.has(key)) UNITS.set(key, uniforms(stream, count));
  return UNITS.get(key);
}

/**
 * The layers of a state, the output layer last: weight = scale * (a * unit + shift), row after row. All states of a seed
 * share one draw of units in (-1, 1); the output layer has the seed's first stream, whatever the depth.
 */
export function layers({ depth, scale, shift, seed }) {
  return Array.from({ length: depth + 1 }, (_, l) => {
    const stream = 2 * ((DEPTHS[1] + 1) * seed + (l === depth ? 0 : l + 1));
    const [fanIn, fanOut] = [l === 0 ? 2 : WIDTH, l === depth ? 1 : WIDTH];
    const a = Math.sqrt(6 / (fanIn + fanOut));
    const weight = units(stream, fanIn * fanOut).map((u) => scale * (a * u + shift));
    return { weight, bias: units(stream + 1, fanOut), fanIn, fanOut };
  });
}

/** n * n points on [-1, 1]^2 as rows of two numbers, in the order of affscore_book.redshift.networks.grid_points. */
export function gridPoints(n) {
  const points = new Float64Array(2 * n * n);
  for (let at = 0; at < n * n; at++) {
    points[2 * at] = -1 + (2 * Math.floor(at / n)) / (n - 1);
    points[2 * at + 1] = -1 + (2 * (at % n)) / (n - 1);
  }
  return points;
}

const POINTS = gridPoints(GRID);
const [ACROSS, UP] = [0, 1].map((k) => POINTS.filter((_, i) => i % 2 === k));
const SCORE_POINTS = gridPoints(SCORE_GRID);

/** The network on points: { output, calls }, where calls holds [inputs, outputs] of every hidden activation. */
export function forward(network, points, sigma) {
  const calls = [];
  let values = points;
  for (const layer of network.slice(0, -1)) {
    const before = affine(values, layer);
    values = new Float64Array(before.length);
    for (let at = 0; at < values.length; at++) values[at] = sigma(before[at]);
    calls.push([before, values]);
  }
  return { output: affine(values, network.at(-1)), calls };
}

const COSINES = Float64Array.from({ length: GRID * GRID }, (_, at) => {
  const [k, i] = [Math.floor(at / GRID), at % GRID];
  return Math.sqrt((k ? 2 : 1) / GRID) * Math.cos((Math.PI * k * (i + 0.5)) / GRID);
});
const WAVES = transpose(COSINES, GRID);
const RADII = COSINES.map((_, at) => Math.hypot(Math.floor(at / GRID), at % GRID));

/** Power of the orthonormal DCT-II by whole radii, without the mean, as shares; and the mean radius. */
export function spectrum(image) {
  const mean = image.reduce((sum, value) => sum + value, 0) / image.length;
  const coefficients = times(times(COSINES, image.map((value) => value - mean), GRID), WAVES, GRID);
  const shares = new Float64Array(GRID);
  let [total, moment] = [0, 0];
  for (let at = 1; at < coefficients.length; at++) {
    const power = coefficients[at] * coefficients[at];
    total += power;
    moment += power * RADII[at];
    const radius = Math.round(RADII[at]);
    if (radius < GRID) shares[radius] += power;
  }
  return { shares: shares.map((share) => share / total), frequency: moment / total };
}

/** All that the page shows for a state; the score is the mean over the layers. */
export function evaluate({ activation: name, ...state }) {
  const network = layers(state);
  const sigma = activation(name);
  const scores = forward(network, SCORE_POINTS, sigma).calls.map(([x, y]) => affinityScore(x, y, WIDTH));
  const image = forward(network, POINTS, sigma).output;
  const score = scores.reduce((sum, value) => sum + value, 0) / scores.length;
  return { score, scores, image, ...spectrum(image) };
}

/** The head of a bitmap file of GRID x GRID pixels with 256 greys: 54 bytes of numbers and the greys. */
const HEAD = (() => {
  const head = new DataView(new ArrayBuffer(54 + 4 * 256));
  head.setUint16(0, 0x424d); // "BM"
  const numbers = [
    [2, head.byteLength + GRID * GRID], [10, head.byteLength], [14, 40], [18, GRID], [22, GRID], [26, 1 + (8 << 16)],
    [46, 256],
  ];
  for (const [at, number] of numbers) head.setUint32(at, number, true);
  for (let grey = 0; grey < 256; grey++) head.setUint32(54 + 4 * grey, grey * 0x010101, true);
  return new Uint8Array(head.buffer);
})();

/** The image as the address of a bitmap, from black at its lowest value to white at its highest. */
export function bitmap(image) {
  const low = image.reduce((least, value) => Math.min(least, value), Infinity);
  const span = image.reduce((most, value) => Math.max(most, value), -Infinity) - low;
  const bytes = new Uint8Array(HEAD.length + GRID * GRID);
  bytes.set(HEAD);
  for (let at = 0; at < GRID * GRID; at++) {
    // A bitmap has its lowest row first; the image has its left column first.
    const value = image[(at % GRID) * GRID + Math.floor(at / GRID)];
    bytes[HEAD.length + at] = span > 0 ? Math.round((255 * (value - low)) / span) : 128;
  }
  return `data:image/bmp;base64,${btoa(String.fromCharCode(...bytes))}`;
}

/** What stands below the score; widget.py writes the same. */
function summary(name, { scores, frequency }) {
  const label = OPTIONS.find(([value]) => value === name)[1];
  const list = scores.map((score) => format(score, 2)).join(", ");
  return `${label}: layers ${list}; mean frequency ${format(frequency, 2)}`;
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "RedshiftImage", traits: ["activation", "depth", "scale", "shift", "seed"],
    label: "The image of a random network, its spectrum and its scores",
  });
  figure.select({ trait: "activation", label: "Activation", options: OPTIONS });
  figure.slider({ trait: "scale", label: "Scale of the weights", min: SCALES[0], max: SCALES[1], step: 0.1 });
  figure.slider({ trait: "shift", label: "Shift of the weights", min: -SHIFT, max: SHIFT, step: 0.01 });
  figure.slider({ trait: "depth", label: "Hidden layers", min: DEPTHS[0], max: DEPTHS[1], step: 1 });
  figure.slider({ trait: "seed", label: "Draw", min: SEEDS[0], max: SEEDS[1], step: 1 });

  const left = figure.panel({
    label: "The output of the network over its two inputs, dark for low and bright for high", xlim: [-1, 1],
    ylim: [-1, 1], xlabel: "first input (vertical: second input)", height: 356,
  });
  const picture = element(left.svg, "image", {
    x: left.box.left, y: left.box.top, width: left.box.right - left.box.left, height: left.box.bottom - left.box.top,
    preserveAspectRatio: "none",
  });
  const pixels = left.notes(GRID);
  const right = figure.panel({
    label: "Its spectrum: the share of power at each frequency, and the mean frequency", xlim: [0, GRID],
    ylim: [FLOOR, 0], xlabel: "frequency (half periods an image)", ylabel: "log\u2081\u2080 power",
    legend: [["image-line", "mean"]], height: 356,
    reads: { series: { "input-curve": "log\u2081\u2080 power" } },
  });
  const meanLine = right.line("image-line");
  const meanNote = right.notes();
  const powers = right.line("input-curve");

  const axis = Array.from({ length: GRID - 1 }, (_, k) => k + 1);
  return figure.onDraw((state) => {
    const result = evaluate(state);
    picture.setAttribute("href", bitmap(result.image));
    pixels(ACROSS, UP, Array.from(result.image, (value, k) => `first input ${format(ACROSS[k])}, second input ${
      format(UP[k])}: output ${format(value, 3)}`));
    powers(axis, axis.map((k) => Math.max(FLOOR, Math.log10(result.shares[k]))));
    meanLine([result.frequency, result.frequency], [FLOOR, 0]);
    meanNote([result.frequency], [FLOOR / 2], [`mean frequency ${format(result.frequency, 2)}`]);
    return { score: result.score, text: summary(state.activation, result) };
  });
}

export { affinityScore };
export default { render };
