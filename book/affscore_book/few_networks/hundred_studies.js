// A hundred studies of a few networks each, and whose interval holds the truth. Python's side: widget.py.
import { Figure, Trail } from "../kit/figure.js";
import { format } from "../kit/panel.js";
import { uniforms } from "../kit/uniforms.js";

export const STUDIES = 100;
export const MOST = 12; // networks in a study
export const TRUTH = 1;
export const ERROR = 0.2; // of one network's value, from the pictures of its test set
export const NORMAL = 1.959963984540054;
/** Student's 97.5 % point for 1, 2, ... degrees of freedom. */
export const STUDENT = [
  12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
  2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205,
  2.228138851986274, 2.200985160091639,
];
const COUNTS = Array.from({ length: MOST - 1 }, (_, i) => i + 2);
const FRAME = [-3, 5];
const WAYS = [
  ["pictures", "from the test pictures"], ["normal", "from the networks, with 1.96"],
  ["student", "from the networks, Student\u2019s"],
];

/** The value that each network of each study has: around the truth, with a standard deviation of 1. */
export function values() {
  const unit = uniforms(1, 2 * STUDIES * MOST);
  return Array.from({ length: STUDIES }, (_, i) => Array.from({ length: MOST }, (_, j) => {
    const [first, second] = [0, 1].map((k) => (unit[2 * (MOST * i + j) + k] + 1) / 2);
    return TRUTH + Math.sqrt(-2 * Math.log(first)) * Math.cos(2 * Math.PI * second);
  }));
}

const VALUES = values();

/** The interval [low, high] of every study, and the share of those that hold the truth. */
export function evaluate({ networks, way }) {
  const intervals = VALUES.map((all) => {
    const some = all.slice(0, networks);
    const mean = some.reduce((sum, value) => sum + value, 0) / networks;
    const spread = Math.sqrt(some.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (networks - 1));
    const half = { pictures: NORMAL * ERROR, normal: NORMAL * spread, student: STUDENT[networks - 2] * spread }[way];
    return [mean - half / Math.sqrt(networks), mean + half / Math.sqrt(networks)];
  });
  const held = intervals.map(([low, high]) => low <= TRUTH && TRUTH <= high);
  return { score: held.filter(Boolean).length / STUDIES, intervals, held };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "HundredStudies", traits: ["networks", "way"],
    label: "A hundred studies of a few networks each, and whose interval holds the truth",
  });
  figure.slider({ trait: "networks", label: "Networks in a study", min: 2, max: MOST, step: 1 });
  figure.select({ trait: "way", label: "Interval", options: WAYS });
  const left = figure.panel({
    label: "The interval of each of a hundred studies, and the truth", xlim: [0, STUDIES + 1], ylim: FRAME,
    xlabel: "study (vertical: gap in points)",
    legend: [["curve", "holds"], ["image-line", "misses"], ["score-curve", "the truth"]], reads: { series: {} },
  });
  const lines = [left.line("curve interval"), left.line("image-line interval")];
  const truth = left.line("score-curve");
  const notes = left.notes();
  const right = figure.panel({
    label: "The share of intervals that hold the truth, against the number of networks", xlim: [1, MOST + 1],
    ylim: [0, 1.05], xlabel: "networks in a study", legend: [["score-curve", "share that holds it"]],
  });
  const curve = right.line("score-curve");
  const dot = right.dots("score-dot", 6);
  const inside = (value) => Math.min(Math.max(value, FRAME[0]), FRAME[1]);

  const trail = new Trail(COUNTS);
  return figure.onDraw(({ networks, way }) => {
    const { score, intervals, held } = evaluate({ networks, way });
    lines.forEach((draw, misses) => {
      const chosen = intervals.flatMap((ends, i) => (held[i] !== Boolean(misses) ? [[i + 1, ...ends.map(inside)]] : []));
      draw(chosen.flatMap(([x]) => [x, x, NaN]), chosen.flatMap(([, low, high]) => [low, high, NaN]));
    });
    notes(intervals.map((_, i) => i + 1), intervals.map((ends) => inside((ends[0] + ends[1]) / 2)), intervals.map(
      (ends, i) => `study ${i + 1}: from ${format(ends[0])} to ${format(ends[1])}, ${
        held[i] ? "holds" : "misses"} the truth, which is ${format(TRUTH, 0)}`));
    truth([0, STUDIES + 1], [TRUTH, TRUTH]);
    const seen = trail.visit(way, networks);
    curve(COUNTS, COUNTS.map((count, i) => (seen[i] ? evaluate({ networks: count, way }).score : NaN)));
    dot([networks], [score]);
    return {
      score, headline: `${format(100 * score, 0)} of the 100 intervals contain the truth`,
      text: "A good method misses about five, give or take a few.",
    };
  });
}

export default { render };
