// The map of architectures: every network a mark, near each other where signatures are alike. Python: compare.py.
import { choosing, chosen, controls, describe, evaluate, fits, legend, looks, outline, summary } from "./choices.js";
import { Figure, element } from "../kit/figure.js";

/** Equal limits of both axes, so that distances on the map are what they are. */
export function square(models) {
  const ends = (key) => [Math.min(...models.map((m) => m[key])), Math.max(...models.map((m) => m[key]))];
  if (!models.length) return [[-1, 1], [-1, 1]];
  const [x, y] = [ends("x"), ends("y")];
  const half = 0.58 * Math.max(x[1] - x[0], y[1] - y[0], 1e-6);
  return [x, y].map(([low, high]) => [(low + high) / 2 - half, (low + high) / 2 + half]);
}

/** The lower end of the axis of scores. */
export function floor(models) {
  const lowest = Math.min(1, ...models.map((network) => summary(network).low).filter((value) => !Number.isNaN(value)));
  return Math.min(0.9, Math.floor(lowest * 10 + 1e-9) / 10);
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "ArchitectureMap", traits: ["models", "selected", "weights", "family"],
    label: "Map of network architectures by their non-linearity signatures",
  });
  const models = model.get("models");
  const state = () => Object.fromEntries(figure.traits.map((trait) => [trait, model.get(trait)]));
  const follow = controls(figure, models);
  const [xlim, ylim] = square(models);
  const left = figure.panel({
    label: "The map. The arrow keys go from network to network", xlim, ylim, height: 356,
    xlabel: "alike signatures are near each other",
  });
  const places = models.map((network) => [network, left.x(network.x), left.y(network.y)]);
  const marks = places.map(([network, x, y]) => element(left.svg, "path", { d: outline(network.group, x, y, 6) }));
  const ring = element(left.svg, "path", { class: "ring" });
  choosing(figure, left, () => places.filter(([network]) => fits(network, state())));

  const low = floor(models);
  const right = figure.panel({
    label: "The signature of the chosen network", xlim: [0, 2], ylim: [low, 1], height: 356,
    xlabel: "activation call", ylabel: "affinity score",
  });
  const curve = right.line("score-curve");
  const dots = right.dots("score-dot", 4);
  if (models.length) legend(figure, models);

  return figure.onDraw(() => {
    const now = state();
    const network = chosen(now);
    follow(now);
    figure.chosenName = network?.name;
    models.forEach((each, i) => marks[i].setAttribute("class", looks(each, now, "mark")));
    if (network) {
      const [, x, y] = places[models.indexOf(network)];
      ring.setAttribute("d", outline("Pre-residual", x, y, 12));
      const scores = network.scores.map((value) => value ?? NaN);
      const calls = scores.map((_, i) => i + 1);
      right.setLimits([0, scores.length + 1], [low, 1]);
      curve(calls, scores);
      dots(scores.length > 60 ? [] : calls, scores);
    }
    return { score: evaluate(now).score, text: describe(now) };
  });
}

export { evaluate };
export default { render };
