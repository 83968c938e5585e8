// ReLU and its relatives on a range whose ends move. Python's side: widget.py; the formulas: exact.py.
import { Figure } from "../kit/figure.js";
import { format, readout } from "../kit/panel.js";
import { legendre } from "../kit/legendre.js";

export const LIMIT = 5; // the ends of the range stay in [-LIMIT, LIMIT],
export const LEAST = 0.2; // and at least this far apart
const STEP = 0.05;
const SWEEP = 121; // points of the curves

// y = slope x + (1 - slope) clip(x, low, high)
export const ACTIVATIONS = {
  relu: { name: "ReLU", slope: 0, low: 0, high: Infinity, ylim: [-2, 5.5] },
  leaky_relu: { name: "LeakyReLU, slope 0.1", slope: 0.1, low: 0, high: Infinity, ylim: [-2, 5.5] },
  hardtanh: { name: "hardtanh", slope: 0, low: -1, high: 1, ylim: [-1.9, 1.9] },
};
export const LAWS = [["uniform", "uniform on the range"], ["gaussian", "Gaussian, mean \u00b1 2 std = range"]];

const clip = (x, low, high) => Math.min(Math.max(x, low), high);

function output(name, x) {
  const { slope, low, high } = ACTIVATIONS[name];
  return slope * x + (1 - slope) * clip(x, low, high);
}

/** The score from the regression of clip(x) on x: unit * (along, across), in units of the standard deviation of x. */
function assemble(stdX, slope, scale, along, across) {
  const unit = (1 - slope) * Math.max(scale, 1e-290);
  const rest = unit * across;
  const length = Math.hypot(slope + unit * along, rest);
  if (length === 0) return { score: NaN, deficit: NaN, r: NaN, w2: 0, bound: 0 };
  const r = Math.min(slope / length + (unit / length) * along, 1);
  const deficit = rest / (length * Math.sqrt(1 + r));
  const score = deficit < 0.5 ? 1 - deficit : r / (1 + deficit);
  const factor = Math.SQRT2 * stdX;
  return { score, deficit, r, w2: (factor * rest) / Math.sqrt(1 + r), bound: factor * length };
}

/** Score, deficit = 1 - score, correlation r, w2 and bound for an input that is uniform on [a, b]. */
export function uniformInput(a, b, name) {
  const { slope, low, high } = ACTIVATIONS[name];
  const width = b - a;
  const below = clip((low - a) / width, 0, 1);
  const above = clip((b - high) / width, 0, 1);
  const within = Math.max(Math.min(b, high) - Math.max(a, low), 0) / width;
  const outside = below + above;
  const along = 6 * below * above + within * (3 * outside + within);
  const square = ((below - above) ** 2 + below * above) * (within * outside + 3 * below * above);
  return assemble(width / Math.sqrt(12), slope, within, along, 2 * Math.sqrt(square));
}

const { nodes, weights } = legendre(40);
/** Gauss-Legendre quadrature on [0, 1]: [node, weight] pairs. */
const QUADRATURE = nodes.map((x, i) => [(1 + x) / 2, weights[i] / 2]);

/** The integrals of v^k exp(-start v - v^2 / 2) over [0, width] for k = 0, 1, 2. */
function integrals(start, width) {
  const end = Math.min(width, 80 / (Math.sqrt(start * start + 80) + start));
  const result = [0, 0, 0];
  for (const [node, weight] of QUADRATURE) {
    const v = end * node;
    const term = weight * end * Math.exp(-v * (start + v / 2));
    result[0] += term;
    result[1] += v * term;
    result[2] += v * v * term;
  }
  return result;
}

/** P(0 < v < width), E v, E v^2 of v = clip(z - start, 0, width), over the normal density at scaleAt. */
function moments(start, width, scaleAt = start) {
  if (!(width > 0)) return [0, 0, 0];
  const inside = integrals(start, width);
  const top = width < 100 ? Math.exp(-width * (start + width / 2)) * integrals(start + width, Infinity)[0] : 0;
  const unscale = Math.exp(((scaleAt - start) * (scaleAt + start)) / 2);
  const tail = top > 0 ? [0, width * top, width * width * top] : [0, 0, 0];
  return inside.map((value, k) => unscale * (value + tail[k]));
}

const rootDensity = (z) => Math.exp((-z * z) / 4) / (2 * Math.PI) ** 0.25;

/** The same for an input from N(mean, std^2). */
export function gaussianInput(mean, std, name) {
  const { slope, ...ends } = ACTIVATIONS[name];
  const [low, high, width] = [(ends.low - mean) / std, (ends.high - mean) / std, (ends.high - ends.low) / std];
  const residual = (root, [up, down], sign) => Math.sqrt(Math.max(0,
    up[2] + down[2] - root * root * ((up[1] - down[1]) ** 2 + (up[0] + sign * down[0]) ** 2)));
  const near = clip(Math.max(low, -high), 0, 1e3);
  const kept = [moments(near, Math.min(width, high)), moments(near, Math.min(width, -low))];
  const root = rootDensity(near);
  const along = kept[0][0] + kept[1][0];
  let across;
  if (root * root * along > 0.5) {
    const start = clip(Math.min(-low, high), 0, 1e3);
    const cut = [high, -low].map((end) => moments(clip(end, 0, 1e3), Infinity, start));
    across = (rootDensity(start) * residual(rootDensity(start), cut, 1)) / root;
  } else {
    across = residual(root, kept, 1);
  }
  return assemble(std, slope, root, root * along, across);
}

function exact(activation, law, low, high) {
  return law === "uniform"
    ? uniformInput(low, high, activation) : gaussianInput((low + high) / 2, (high - low) / 4, activation);
}

export function evaluate({ activation, law, low, high }) {
  return exact(activation, law, low, high);
}

/** The ends after one of them was changed: it pushes the other; with `together` it takes the other along. */
export function settle({ low, high }, changed, together = null) {
  if (together !== null) {
    const start = clip(low, -LIMIT, LIMIT - together);
    return { low: tidy(start), high: tidy(start + together) };
  }
  const [a, b] = [clip(low, -LIMIT, LIMIT - LEAST), clip(high, LEAST - LIMIT, LIMIT)];
  if (changed === "high") return { low: tidy(Math.min(a, b - LEAST)), high: b };
  return { low: a, high: tidy(Math.max(b, a + LEAST)) };
}

/** Without the noise of adding decimal fractions. */
function tidy(value) {
  return Math.round(value * 1e6) / 1e6;
}

/** E max(x - end, 0). */
function excess(law, low, high, end) {
  if (end === Infinity) return 0;
  const middle = (low + high) / 2;
  if (law === "uniform") return end < low ? middle - end : Math.max(high - end, 0) ** 2 / (2 * (high - low));
  const std = (high - low) / 4;
  const z = (middle - end) / std;
  return std * (Math.max(z, 0) + rootDensity(z) ** 2 * moments(Math.abs(z), Infinity)[1]);
}

/** The affine image T(x) at both ends of the range. */
export function image({ activation, law, low, high }, { bound }) {
  const { slope, ...ends } = ACTIVATIONS[activation];
  const half = (high - low) / 2;
  const clipped = ends.low + excess(law, low, high, ends.low) - excess(law, low, high, ends.high);
  const mean = slope * (low + half) + (1 - slope) * clipped;
  const rise = bound / Math.SQRT2 * (law === "uniform" ? Math.sqrt(3) : 2);
  return [mean - rise, mean + rise];
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "ReluRange", traits: ["activation", "law", "low", "high"],
    label: "Affinity score of ReLU, LeakyReLU and hardtanh for a range of inputs",
  });
  const options = Object.entries(ACTIVATIONS).map(([value, { name }]) => [value, name]);
  figure.select({ trait: "activation", label: "Activation", options });
  figure.select({ trait: "law", label: "Input", options: LAWS });
  figure.slider({ trait: "low", label: "Lower end", min: -LIMIT, max: LIMIT - LEAST, step: STEP });
  figure.slider({ trait: "high", label: "Upper end", min: LEAST - LIMIT, max: LIMIT, step: STEP });
  const both = figure.slider({
    trait: "low", label: "Both ends together", min: -LIMIT, max: LIMIT - LEAST, step: STEP,
    text: () => `${format(model.get("low"))} to ${format(model.get("high"))}`,
  });

  const left = figure.panel({
    label: "The activation, the range of its inputs, and the affine image", xlim: [-LIMIT, LIMIT], ylim: [-2, 5.5],
    xlabel: "input", legend: [["input-curve", "output"], ["image-line", "affine image"]],
    reads: { series: { curve: "output", "input-curve": "output", "image-line": "affine image" } },
  });
  const inputBand = left.band("input-band");
  const curve = left.line("curve");
  const inputCurve = left.line("input-curve");
  const imageLine = left.line("image-line");

  const parts = figure.panel({
    label: "The transport distance W2 and its bound against the middle of the range", xlim: [-LIMIT, LIMIT],
    ylim: [0, 1], xlabel: "middle of the range", legend: [["w2-curve", "W2"], ["bound-curve", "bound \u221a(2 Var Y)"]],
    reads: { series: { "w2-curve": "W2", "bound-curve": "bound" } },
  });
  const boundCurve = parts.line("bound-curve");
  const w2Curve = parts.line("w2-curve");
  const boundDot = parts.dots("bound-dot", 6);
  const w2Dot = parts.dots("w2-dot", 6);

  const right = figure.scorePanel({
    label: "The affinity score against the middle of the range", xlabel: "middle of the range", limit: LIMIT, gaps: true,
  });

  // Both ends change before the picture is drawn, once.
  let [together, busy] = [null, false];
  both.addEventListener("input", () => { together = model.get("high") - model.get("low"); }, { capture: true });
  both.addEventListener("input", () => { together = null; });
  for (const changed of ["low", "high"]) {
    model.on(`change:${changed}`, () => {
      if (busy) return;
      busy = true;
      const settled = settle({ low: model.get("low"), high: model.get("high") }, changed, together);
      for (const [trait, value] of Object.entries(settled)) model.set(trait, value);
      busy = false;
    });
  }
  figure.redraw = () => { if (!busy) figure.draw(); };

  const middles = Float64Array.from({ length: SWEEP }, (_, i) => -LIMIT + (2 * LIMIT * i) / (SWEEP - 1));
  return figure.onDraw((state) => {
    const { activation, law, low, high } = state;
    const width = high - low;
    const middle = (low + high) / 2;
    const sweep = Array.from(middles, (m) => exact(activation, law, m - width / 2, m + width / 2));
    const bounds = sweep.map(({ bound }) => bound);
    // The bound is largest in the middle or at the right end.
    parts.setLimits([-LIMIT, LIMIT], [0, 1.08 * Math.max(...bounds)]);
    w2Curve(middles, sweep.map(({ w2 }) => w2));
    boundCurve(middles, bounds);
    right.curve(middles, sweep.map(({ score }) => score));
    const result = exact(activation, law, low, high);
    w2Dot([middle], [result.w2]);
    boundDot([middle], [result.bound]);
    right.dot(middle, result.score);

    left.setLimits([-LIMIT, LIMIT], ACTIVATIONS[activation].ylim);
    inputBand(low, high);
    const places = Array.from(middles, (x) => tidy(x)); // among them every kink
    curve(places, places.map((x) => output(activation, x)));
    const inside = [low, ...places.filter((x) => x > low && x < high), high];
    inputCurve(inside, inside.map((x) => output(activation, x)));
    const [from, to] = image(state, result);
    imageLine(inside, inside.map((x) => from + ((to - from) * (x - low)) / width));

    const numbers = `W2 ${readout(result.w2)}, bound ${readout(result.bound)}`;
    const input = law === "uniform" ? `uniform on [${format(low)}, ${format(high)}]`
      : `N(mean ${format(middle)}, std ${format(width / 4)})`;
    return { score: result.score, text: `${ACTIVATIONS[activation].name}, input ${input}. ${numbers}` };
  });
}

export default { render };
