// A network's signature while it is trained, and its accuracy or the clouds of one call. Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { element, format } from "../kit/panel.js";

const chosenOf = ({ networks, selected }) => networks.find(({ name }) => name === selected) ?? networks[0];
const momentOf = (network, moment) => Math.min(moment, network.steps.length - 1);
const numbers = (scores) => scores.map((value) => value ?? NaN);

/** Mean of the scores without dead calls; NaN if all are dead. */
function mean(scores) {
  const alive = scores.filter((value) => value !== null);
  return alive.length ? alive.reduce((sum, value) => sum + value, 0) / alive.length : NaN;
}

/** Halves that hold the clouds of all moments. */
function frame(network) {
  const every = network.clouds.flatMap(({ outputs, image }) => [...outputs, ...image]);
  return [Math.floor(Math.min(...every) / 500) / 2, Math.ceil(Math.max(...every) / 500) / 2];
}

/** The mean score of the chosen network at the chosen moment; NaN if there is none. */
export function evaluate(state) {
  const chosen = chosenOf(state);
  return { score: chosen ? mean(chosen.scores[momentOf(chosen, state.moment)]) : NaN };
}

/** One line about the network at a moment. */
function describe(network, at, beside) {
  const text = `${network.name} after ${network.steps[at]} steps, ${format(100 * network.accuracy[at], 0)} % right`;
  if (beside === "accuracy") return text;
  const value = network.scores[at][network.call];
  return `${text}; call ${network.call + 1}: ${value === null ? "dead" : format(value, 3)}`;
}

function cloudPanel(figure) {
  const panel = figure.panel({
    label: "Outputs of one call and the affine image of its inputs", xlim: [-1, 1], ylim: [-1, 1],
    xlabel: "widest direction (vertical: second)", height: 300,
    reads: { series: { "input-dots": "output", "image-line": "affine image" } },
  });
  element(panel.svg, "circle", { class: "input-dot", cx: 12, cy: 12, r: 4 });
  element(panel.svg, "text", { class: "label", x: 22, y: 16 }, "output");
  element(panel.svg, "path", { class: "image-line", d: "M88 8L96 16M88 16L96 8" });
  element(panel.svg, "text", { class: "label", x: 102, y: 16 }, "affine image of the input");
  const [output, image] = [panel.specks("input-dots"), panel.crosses("image-line", 4)];
  const column = (points, k) => points.filter((_, i) => i % 2 === k).map((value) => value / 1000);
  return { svg: panel.svg, draw(network, at) {
    const limits = frame(network);
    panel.setLimits(limits, limits);
    const clouds = network.clouds[at];
    output(column(clouds.outputs, 0), column(clouds.outputs, 1));
    image(column(clouds.image, 0), column(clouds.image, 1));
  } };
}

function progressPanel(figure) {
  const panel = figure.panel({
    label: "Accuracy and mean score along the training", xlim: [0, 4], ylim: [0, 1], height: 300,
    xlabel: "step + 1, powers of 10", legend: [["input-curve", "accuracy"], ["score-curve", "mean score"]],
    reads: { x: "step", textX: (value) => format(10 ** value - 1, 0) },
  });
  const [accuracy, level] = [panel.line("input-curve"), panel.line("score-curve")];
  const [seen, scored] = [panel.dots("input-dot", 6), panel.dots("score-dot", 6)];
  return { svg: panel.svg, draw(network, at) {
    const steps = network.steps.map((step) => Math.log10(step + 1));
    const means = network.scores.map(mean);
    accuracy(steps, network.accuracy);
    level(steps, means);
    seen([steps[at]], [network.accuracy[at]]);
    scored([steps[at]], [means[at]]);
  } };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "TrainingCourse", traits: ["networks", "selected", "moment", "beside"],
    label: "The signature of a network along its training",
  });
  const networks = model.get("networks");
  const chosenNow = () => chosenOf({ networks, selected: model.get("selected") });
  figure.select({ trait: "selected", label: "Network", options: networks.map(({ name }) => [name, name]) });
  const most = Math.max(1, ...networks.map(({ steps }) => steps.length));
  figure.slider({
    trait: "moment", label: "Moment of the training", min: 0, max: most - 1, step: 1,
    text: (value) => {
      const chosen = chosenNow();
      return chosen ? `step ${chosen.steps[momentOf(chosen, value)]}` : "";
    },
  });
  figure.select({
    trait: "beside", label: "Beside it", options: [["accuracy", "accuracy"], ["clouds", "clouds of one call"]],
  });
  const left = figure.panel({
    label: "The signature at this step, at the start and at the end", xlim: [0, 2], ylim: [0.3, 1], height: 300,
    xlabel: "activation call", ylabel: "affinity score",
    legend: [["w2-curve", "start"], ["bound-curve", "end"], ["score-curve", "now"]],
  });
  const [start, end, now] = ["w2-curve", "bound-curve", "score-curve"].map((look) => left.line(look));
  const mark = left.dots("score-dot", 6);
  const panels = { accuracy: progressPanel(figure), clouds: cloudPanel(figure) };
  return figure.onDraw(({ beside, moment }) => {
    for (const [name, { svg }] of Object.entries(panels)) svg.style.display = name === beside ? "" : "none";
    const chosen = chosenNow();
    if (!chosen) return { score: NaN, text: "There is no network to show.", headline: "There is no score." };
    const at = momentOf(chosen, moment);
    const places = chosen.scores[0].map((_, i) => i + 1);
    left.setLimits([0, places.length + 1], [0.3, 1]);
    [[start, 0], [end, chosen.scores.length - 1], [now, at]].forEach(([line, row]) =>
      line(places, numbers(chosen.scores[row])));
    mark([chosen.call + 1], [beside === "clouds" ? chosen.scores[at][chosen.call] ?? NaN : NaN]);
    panels[beside].draw(chosen, at);
    const score = mean(chosen.scores[at]);
    return { score, headline: Number.isNaN(score) ? "There is no score." : `Mean score ${format(score, 3)}`,
      text: describe(chosen, at, beside) };
  });
}

export default { render };
