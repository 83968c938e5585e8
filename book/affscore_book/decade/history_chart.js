// A statistic of the signatures of many networks, by year and by accuracy. Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { format } from "../kit/panel.js";

const TURN = 2020;
const STATISTICS = ["mean", "median", "min", "max", "range", "std"];
const VIEWS = [
  ["trained", "trained, spatial pool"], ["trained, trailing", "trained, trailing pool"],
  ["start", "before training, norm set, spatial pool"], ["raw start", "before training, raw, spatial pool"],
  ["start, trailing", "before training, norm set, trailing pool"],
];

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Ranks from 1; equal values share the mean of theirs. */
function ranks(values) {
  return values.map((value) => {
    const below = values.filter((other) => other < value).length;
    return below + (values.filter((other) => other === value).length + 1) / 2;
  });
}

/** Rank correlation; NaN where it is not defined. */
export function rank(one, other) {
  if (one.length < 2) return NaN;
  const [a, b] = [ranks(one), ranks(other)].map((column) => {
    const middle = mean(column);
    return column.map((value) => value - middle);
  });
  const dot = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);
  const norm = Math.sqrt(dot(a, a) * dot(b, b));
  return norm > 0 ? dot(a, b) / norm : NaN;
}

/** Tenths around all values. */
function limits(values) {
  const every = values.length ? values : [0, 1];
  const [low, high] = [Math.floor(Math.min(...every) * 10 + 1e-9), Math.ceil(Math.max(...every) * 10 - 1e-9)];
  return [low / 10, Math.max(low + 1, high) / 10];
}

/** The years, networks of one year beside each other. */
function places(networks) {
  const years = networks.map(({ year }) => year);
  return years.map((year, i) => {
    const all = years.filter((other) => other === year).length;
    const before = years.slice(0, i).filter((other) => other === year).length;
    return year + (0.8 * (before - (all - 1) / 2)) / Math.max(4, all);
  });
}

/** Rank correlation of year and statistic over the networks before 2020. */
export function evaluate({ networks, statistic, view }) {
  const early = networks.filter(({ year }) => year < TURN);
  const level = early.map(({ values }) => mean(values[view][statistic]));
  return { score: rank(early.map(({ year }) => year), level) };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "HistoryChart", traits: ["networks", "selected", "statistic", "view"],
    label: "A decade of networks by a statistic of their signatures",
  });
  const networks = model.get("networks");
  figure.select({ trait: "statistic", label: "Statistic", options: STATISTICS.map((name) => [name, name]) });
  figure.select({ trait: "view", label: "Of", options: VIEWS });
  const names = figure.select({
    trait: "selected", label: "Network", options: networks.map(({ name }) => [name, name]),
  });
  const years = places(networks);
  const accuracies = networks.map(({ accuracy }) => accuracy);
  const left = figure.panel({
    label: "The statistic of each network, by year", xlim: [2011, 2023], ylim: [0, 1], height: 300,
    xlabel: "year", ylabel: "statistic of the scores",
    reads: { series: { "input-dot": "mean" }, textX: (value) => String(Math.round(value)) }, // beside each other in a year
  });
  const right = figure.panel({
    label: "The statistic of each network, by accuracy", xlim: limits(accuracies), ylim: [0, 1], height: 300,
    xlabel: "accuracy on test pictures", reads: { series: { "input-dot": "mean" } },
  });
  const layers = [[left, years], [right, accuracies]].map(([panel, xs]) => ({
    panel, xs, spread: panel.line("curve"), dots: panel.dots("input-dot", 5), mark: panel.dots("score-dot", 7),
  }));
  return figure.onDraw((state) => {
    const { score } = evaluate(state);
    const shown = Number.isNaN(score) ? "is not defined" : format(score, 3);
    const headline = `Rank correlation with the year ${shown}, to 2019`;
    if (!networks.length) return { score, headline, text: "There is no network to show." };
    const values = networks.map((network) => network.values[state.view][state.statistic]);
    const means = values.map(mean);
    const ylim = limits(values.flat());
    const at = Math.max(0, networks.findIndex(({ name }) => name === state.selected));
    names.value = networks[at].name;
    for (const { panel, xs, spread, dots, mark } of layers) {
      panel.setLimits(panel.xlim, ylim);
      spread(xs.flatMap((x) => [x, x, x]), values.flatMap((row) => [Math.min(...row), Math.max(...row), NaN]));
      dots(xs, means, networks.map(({ name }) => name));
      mark([xs[at]], [means[at]], [networks[at].name]);
    }
    const seeds = values[at].map((value) => format(value, 3)).join(", ");
    return { score, headline, text: `${networks[at].name}, ${networks[at].year}: ${seeds} (a number for each seed)` };
  });
}

export default { render };
