// A network's signature while it is trained. Python's side: widget.py.
import { Figure, format } from "../kit/figure.js";

const chosenOf = ({ networks, selected }) => networks.find(({ name }) => name === selected) ?? networks[0];
const momentOf = (network, moment) => Math.min(moment, network.steps.length - 1);

/** Mean of the scores without dead calls; NaN if all are dead. */
function mean(scores) {
  const alive = scores.filter((value) => value !== null);
  return alive.length ? alive.reduce((sum, value) => sum + value, 0) / alive.length : NaN;
}

/** The mean score of the chosen network at the chosen moment; NaN if there is none. */
export function evaluate(state) {
  const chosen = chosenOf(state);
  const { moment } = state;
  return { score: chosen ? mean(chosen.scores[momentOf(chosen, moment)]) : NaN };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "TrainingCourse", traits: ["networks", "selected", "moment"],
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
  const left = figure.panel({
    label: "The signature at this step, at the start and at the end", xlim: [0, 2], ylim: [0.3, 1],
    xlabel: "activation call", ylabel: "affinity score",
    legend: [["w2-curve", "start"], ["image-line", "end"], ["score-curve", "now"]],
  });
  const [start, end, now] = ["w2-curve", "image-line", "score-curve"].map((look) => left.line(look));
  const right = figure.panel({
    label: "Accuracy and mean score along the training", xlim: [0, 4], ylim: [0, 1], xlabel: "step + 1, powers of 10",
    legend: [["input-curve", "accuracy"], ["score-curve", "mean score"]],
  });
  const [accuracy, level] = [right.line("input-curve"), right.line("score-curve")];
  const [seen, scored] = [right.dots("input-dot", 6), right.dots("score-dot", 6)];
  return figure.onDraw(() => {
    const chosen = chosenNow();
    if (!chosen) return { score: NaN, text: "There is no network to show.", headline: "There is no score." };
    const at = momentOf(chosen, model.get("moment"));
    const numbers = chosen.scores[0].map((_, i) => i + 1);
    left.setLimits([0, numbers.length + 1], [0.3, 1]);
    [[start, 0], [end, chosen.scores.length - 1], [now, at]].forEach(([line, row]) =>
      line(numbers, chosen.scores[row].map((value) => value ?? NaN)));
    const steps = chosen.steps.map((step) => Math.log10(step + 1));
    const means = chosen.scores.map(mean);
    accuracy(steps, chosen.accuracy);
    level(steps, means);
    seen([steps[at]], [chosen.accuracy[at]]);
    scored([steps[at]], [means[at]]);
    return {
      score: means[at], headline: `Mean score ${format(means[at], 3)}`,
      text: `${chosen.name} after ${chosen.steps[at]} steps, ${format(100 * chosen.accuracy[at], 0)} % right`,
    };
  });
}

export default { render };
