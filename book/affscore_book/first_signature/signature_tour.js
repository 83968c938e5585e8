// A signature call by call: where the inputs of each call lie, and what the activation does to them. Python's side: tour.py.
import { Figure } from "../kit/figure.js";
import { element, format } from "../kit/panel.js";

/** The score of the chosen call; NaN if there is none. */
export function evaluate({ calls, call }) {
  return { score: calls[call - 1]?.score ?? NaN };
}

/** The outline of bars: heights over [low, high], scaled so that 1 reaches `top` of the panel's axis. */
function outline(panel, heights, [low, high], top) {
  const at = (i) => panel.x(low + ((high - low) * i) / heights.length);
  const bars = heights.map((height, i) => `L${at(i)} ${panel.y(top * height)}L${at(i + 1)} ${panel.y(top * height)}`);
  return `M${at(0)} ${panel.y(0)}${bars.join("")}L${at(heights.length)} ${panel.y(0)}Z`;
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "SignatureTour", traits: ["calls", "call"],
    label: "The signature of a trained network, call by call",
  });
  const calls = model.get("calls");
  figure.slider({
    trait: "call", label: "Activation call", min: 1, max: Math.max(1, calls.length), step: 1,
    text: (value) => `${value} of ${calls.length}`,
  });
  const left = figure.panel({
    label: "The signature: the score of every call", xlim: [0, calls.length + 1], ylim: [0.6, 1],
    xlabel: "activation call", legend: [["score-curve", "affinity score"], ["twin-curve", "linear twin"]],
  });
  const numbers = calls.map((_, i) => i + 1);
  left.line("twin-curve")(numbers, calls.map(({ twin }) => twin));
  const scores = calls.map(({ score }) => score);
  left.line("score-curve")(numbers, scores, [numbers, scores], calls.map(({ name }) => name));
  const dot = left.dots("score-dot", 7);
  const right = figure.panel({
    label: "The inputs of the chosen call and the activation", xlim: [-6, 9], ylim: [0, 7],
    xlabel: "input (shaded: how often)", legend: [["curve", "output of ReLU6"]],
    reads: { series: {} },
  });
  const cut = element(right.svg, "path", { class: "dead-band" });
  const kept = element(right.svg, "path", { class: "input-band" });
  right.line("curve")([-6, 0, 6, 9], [0, 0, 6, 6]);
  const bars = right.notes();
  return figure.onDraw(({ call }) => {
    const chosen = calls[call - 1];
    if (!chosen) return { score: NaN, text: "There is no call to show." };
    dot([call], [chosen.score]);
    const inside = chosen.heights.map((_, i) => i >= 20 && i < 40);
    cut.setAttribute("d", outline(right, chosen.heights.map((height, i) => (inside[i] ? 0 : height / 100)), [-6, 9], 6.5));
    kept.setAttribute("d", outline(right, chosen.heights.map((height, i) => (inside[i] ? height / 100 : 0)), [-6, 9], 6.5));
    const total = chosen.heights.reduce((sum, height) => sum + height, 0);
    const edge = (i) => -6 + (15 * i) / chosen.heights.length;
    bars(chosen.heights.map((_, i) => edge(i + 0.5)), chosen.heights.map((height) => 0.065 * height), chosen.heights.map(
      (height, i) => `inputs from ${format(edge(i))} to ${format(edge(i + 1))}: ${format((100 * height) / total, 1)} % of those shown`));
    return {
      score: chosen.score,
      text: `${chosen.name}: ${format(chosen.below, 0)} % of the inputs become 0, ${chosen.above < 0.1 ? "less than 0.1" : format(chosen.above, 1)} % become 6`,
    };
  });
}

export default { render };
