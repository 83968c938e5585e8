// The median score of many untrained networks by each pool, and the signature of one. Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { element } from "../kit/panel.js";

/** The network that a state shows: the selected one, else the first. */
export function chosen({ models, selected }) {
  return models.find(({ name }) => name === selected) ?? models[0];
}

/** A network's scores by a pool, NaN for a dead call. Where both pools are the same, only `spatial` is stored. */
export function scores(network, pool) {
  return ((pool === "trailing" && network?.trailing) || network?.spatial || []).map((value) => value ?? NaN);
}

/** Median of the numbers in a list; NaN if there is none. */
export function median(values) {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (!sorted.length) return NaN;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The score of a state: the median over the calls of the chosen network. */
export function evaluate(state) {
  return { score: median(scores(chosen(state), state.pool)) };
}

/** One line about the network that a state shows. */
export function describe(state) {
  const network = chosen(state);
  if (!network) return "There is no network to show.";
  const { length } = scores(network, state.pool);
  return `${network.name}, before training: the median of ${length} calls. `
    + `In its first call the ${state.pool} pool makes ${network.keeps[state.pool]} numbers of ${network.shape}.`;
}

/** The lower end of an axis that shows all these numbers, with room for the names of families below them. */
export function floor(values, room) {
  const lowest = Math.min(0.9, ...values.filter((value) => !Number.isNaN(value)));
  return (Math.floor(lowest * 10 + 1e-9) - room) / 10;
}

/** [[name, place], ...] of the families with three networks or more: the middle of each on the axis of networks. */
export function families(models) {
  const names = [...new Set(models.map(({ family }) => family))];
  const places = (family) => models.flatMap((each, i) => (each.family === family ? [i + 1] : []));
  return names.map((family) => [family, places(family)]).filter(([, at]) => at.length > 2)
    .map(([family, at]) => [family, (at[0] + at.at(-1)) / 2]);
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "PoolSwitch", traits: ["models", "pool", "selected"],
    label: "Scores of untrained networks by what is averaged",
  });
  const models = model.get("models");
  figure.select({
    trait: "pool", label: "Average over", options: [["spatial", "positions (spatial)"], ["trailing", "last axes (trailing)"]],
  });
  const network = figure.select({
    trait: "selected", label: "Network", options: models.map(({ name }) => [name, name]),
  });
  const pools = ["spatial", "trailing"];
  const medians = Object.fromEntries(
    pools.map((pool) => [pool, models.map((each) => median(scores(each, pool)))]));
  const left = figure.panel({
    label: "Median score of each network", xlim: [0, models.length + 1], height: 300,
    ylim: [floor(pools.flatMap((pool) => medians[pool]), 2), 1], xlabel: "network, in the paper's order",
    ylabel: "median score", reads: { x: "network", series: { "input-dot": "median score" } },
  });
  for (const [family, at] of families(models)) {
    const [x, y] = [left.x(at) + 4, left.box.bottom - 6];
    element(left.svg, "text", { class: "tick", x, y, transform: `rotate(-90 ${x} ${y})` }, family);
  }
  const places = models.map((_, i) => i + 1);
  const moved = left.line("image-line");
  const dots = left.dots("input-dot", 4);
  const ring = left.dots("score-dot", 6);
  const every = pools.flatMap((pool) => models.flatMap((each) => scores(each, pool)));
  const lowest = floor(every, 0);
  const right = figure.panel({
    label: "The signature of the chosen network", xlim: [0, 2], ylim: [lowest, 1], height: 300,
    xlabel: "activation call", ylabel: "affinity score",
  });
  const curve = right.line("score-curve");

  return figure.onDraw((state) => {
    const shown = chosen(state);
    network.value = shown?.name ?? "";
    const now = medians[state.pool];
    moved(places.flatMap((x) => [x, x, x]), places.flatMap((_, i) => [medians.spatial[i], now[i], NaN]));
    dots(places, now, models.map(({ name }) => name));
    const at = models.indexOf(shown);
    ring([at + 1], [now[at] ?? NaN]);
    const values = scores(shown, state.pool);
    right.setLimits([0, values.length + 1], [lowest, 1]);
    curve(values.map((_, i) => i + 1), values);
    return { score: evaluate(state).score, text: describe(state) };
  });
}

export default { render };
