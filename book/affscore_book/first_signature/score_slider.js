// One activation, one slider, one picture of the affinity score. Python's side: widget.py.
import { CHOICES, activation, affinity, uniformGrid } from "../kit/affinity1d.js";
import { Figure, Trail } from "../kit/figure.js";
import { format } from "../kit/panel.js";

export const POINTS = 400;
export const HALF_WIDTH = 2;
export const LIMIT = 4;
const STEP = 0.1;

/** The score for inputs uniform on [centre - 2, centre + 2], with the map and the distance; see affinity(). */
export function evaluate({ activation: name, centre }) {
  const x = uniformGrid(centre - HALF_WIDTH, centre + HALF_WIDTH, POINTS);
  return affinity(x, x.map(activation(name)));
}

/** The score for every centre on the slider, with the activation and the limits of its picture. */
function sweep(name) {
  const end = LIMIT + HALF_WIDTH;
  const x = uniformGrid(-end, end, 1200);
  const y = x.map(activation(name));
  const centres = Float64Array.from({ length: Math.round((2 * LIMIT) / STEP) + 1 }, (_, i) => -LIMIT + i * STEP);
  const results = Array.from(centres, (centre) => evaluate({ activation: name, centre }));
  const ends = results.flatMap((result, i) => [
    result.map(centres[i] - HALF_WIDTH), result.map(centres[i] + HALF_WIDTH)]);
  const low = Math.min(...y, ...ends);
  const high = Math.max(...y, ...ends);
  const pad = 0.05 * (high - low);
  return { x, y, centres, scores: results.map((result) => result.score), ylim: [low - pad, high + pad] };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "ScoreSlider", traits: ["activation", "centre"],
    label: "Affinity score of one activation in one dimension",
  });
  figure.select({ trait: "activation", label: "Activation", options: CHOICES });
  figure.slider({ trait: "centre", label: "Centre of the inputs", min: -LIMIT, max: LIMIT, step: STEP });

  const end = LIMIT + HALF_WIDTH;
  const left = figure.panel({
    label: "The activation, the range of its inputs, and the affine image", xlim: [-end, end], ylim: [0, 1],
    xlabel: "input", legend: [["input-curve", "output"], ["image-line", "affine image"]],
    reads: { series: { curve: "output", "input-curve": "output", "image-line": "affine image" } },
  });
  const inputBand = left.band("input-band");
  const curve = left.line("curve");
  const inputCurve = left.line("input-curve");
  const imageLine = left.line("image-line");

  const right = figure.scorePanel({
    label: "The affinity score against the centre of the inputs", xlabel: "centre of the inputs", limit: LIMIT, gaps: true,
  });

  const sweeps = new Map();
  let trail = null;
  return figure.onDraw(({ activation: name, centre }) => {
    if (!sweeps.has(name)) sweeps.set(name, sweep(name));
    const { x, y, centres, scores, ylim } = sweeps.get(name);
    const result = evaluate({ activation: name, centre });
    const [from, to] = [centre - HALF_WIDTH, centre + HALF_WIDTH];

    left.setLimits([-end, end], ylim);
    inputBand(from, to);
    curve(x.filter((_, i) => i % 10 === 0), y.filter((_, i) => i % 10 === 0));
    const inside = uniformGrid(from, to, 80);
    inputCurve(inside, inside.map(activation(name)));
    imageLine(inside, inside.map(result.map));

    trail ??= new Trail(centres);
    right.curve(centres, scores, trail.visit(name, centre));
    right.dot(centre, result.score);

    const label = CHOICES.find(([value]) => value === name)[1];
    return { score: result.score, text: `${label}, inputs from ${format(from, 1)} to ${format(to, 1)}` };
  });
}

export default { render };
