// The scores of architectures by year: smallest, median and largest, and accuracy. Python's side: compare.py.
import { choosing, chosen, controls, describe, evaluate, fits, legend, looks, outline, summary } from "./choices.js";
import { Figure, element } from "../kit/figure.js";

/** Where each network stands on the axis of years: those of one year side by side within it, in their order. */
export function times(models) {
  const seen = new Map();
  const count = (year) => models.filter((network) => network.year === year).length;
  return models.map(({ year }) => {
    const k = seen.get(year) ?? 0;
    seen.set(year, k + 1);
    return year + (k + 0.5) / count(year) - 0.5;
  });
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "ScoreHistory", traits: ["models", "selected", "weights", "family"],
    label: "Affinity scores of network architectures by year",
  });
  const models = model.get("models");
  const state = () => Object.fromEntries(figure.traits.map((trait) => [trait, model.get(trait)]));
  const follow = controls(figure, models);
  const at = times(models);
  const sums = models.map(summary);
  const years = models.map((network) => network.year);
  const xlim = models.length ? [Math.min(...years) - 0.6, Math.max(...years) + 0.6] : [2011, 2023];
  const lowest = Math.min(1, ...sums.map(({ low }) => low).filter((value) => !Number.isNaN(value)));
  const left = figure.panel({
    label: "Smallest, median and largest score by year. The arrow keys go from network to network", xlim,
    ylim: [Math.min(0.9, Math.floor(lowest * 10 + 1e-9) / 10), 1], height: 300, xlabel: "year",
    ylabel: "affinity score",
  });
  const places = models.map((network, i) => [network, left.x(at[i]), left.y(sums[i].score)])
    .filter(([, , y]) => !Number.isNaN(y));
  const bars = places.map(([network, x]) => {
    const { low, high } = sums[models.indexOf(network)];
    return element(left.svg, "path", { d: `M${x} ${left.y(low)}L${x} ${left.y(high)}` });
  });
  const marks = places.map(([network, x, y]) => element(left.svg, "path", { d: outline(network.group, x, y, 3.5) }));
  const ring = element(left.svg, "path", { class: "ring" });
  choosing(figure, left, () => places.filter(([network]) => fits(network, state())));

  const known = models.filter((network) => network.accuracy !== null);
  const accuracies = known.map((network) => network.accuracy);
  const right = figure.panel({
    label: "ImageNet accuracy by year", xlim, height: 300, xlabel: "year", ylabel: "accuracy (%)",
    ylim: known.length ? [Math.floor(Math.min(...accuracies) / 10) * 10, Math.ceil(Math.max(...accuracies) / 10) * 10]
      : [0, 100],
  });
  const spots = known.map((network) => [network, right.x(at[models.indexOf(network)]), right.y(network.accuracy)]);
  const dots = spots.map(([network, x, y]) => element(right.svg, "path", { d: outline(network.group, x, y, 3.5) }));
  const second = element(right.svg, "path", { class: "ring" });
  choosing(figure, right, () => spots.filter(([network]) => fits(network, state())));
  if (models.length) legend(figure, models);

  const around = (path, list, network) => {
    const found = list.find(([each]) => each === network);
    path.setAttribute("d", found ? outline("Pre-residual", found[1], found[2], 9) : "");
  };
  return figure.onDraw(() => {
    const now = state();
    const network = chosen(now);
    follow(now);
    figure.chosenName = network?.name;
    places.forEach(([each], i) => {
      bars[i].setAttribute("class", `${looks(each, now, "bar")}${each === network ? " now" : ""}`);
      marks[i].setAttribute("class", looks(each, now, "mark"));
    });
    spots.forEach(([each], i) => dots[i].setAttribute("class", looks(each, now, "mark")));
    around(ring, places, network);
    around(second, spots, network);
    return { score: evaluate(now).score, text: describe(now) };
  });
}

export { evaluate };
export default { render };
