// The bend of a sentence in every layer, and of each of its tokens in one. Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { element, format } from "../kit/panel.js";

const ORDERS = ["as written", "shuffled", "reversed"];

const shownOf = ({ sentences, selected, order }) =>
  (sentences.find(({ name }) => name === selected) ?? sentences[0])?.[order];
const layerOf = (shown, layer) => Math.min(layer, shown.bends.length) - 1;
const together = (row) => Math.sqrt(row.reduce((sum, value) => sum + value * value, 0) / row.length);

/** Tenths above every bend. */
function most(sentences) {
  const every = sentences.flatMap((each) => ORDERS.flatMap((order) => each[order].bends.flat()));
  return Math.ceil((every.length ? Math.max(...every) : 1) * 10 - 1e-9) / 10;
}

/** The root mean square of the tokens' bends in the chosen layer; NaN if there is no sentence. */
export function evaluate(state) {
  const shown = shownOf(state);
  return { score: shown ? together(shown.bends[layerOf(shown, state.layer)]) : NaN };
}

/** One line about a layer. */
function describe(shown, at) {
  const row = shown.bends[at];
  const [high, low] = [row.indexOf(Math.max(...row)), row.indexOf(Math.min(...row))];
  const told = (i) => `${shown.tokens[i]} (${format(row[i], 3)})`;
  return `most: ${told(high)}, least: ${told(low)}`;
}

/** Returns draw(tokens, layer), which writes the tokens below the line at 0, turned. */
function names(panel) {
  const group = element(panel.svg, "g");
  return (tokens) => {
    group.replaceChildren();
    tokens.forEach((token, i) => {
      const [x, y] = [panel.x(i + 1) + 4, panel.y(0) + 6];
      element(group, "text", { class: "label", x, y, "text-anchor": "end", transform: `rotate(-90 ${x} ${y})` }, token);
    });
  };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "TokenBends", traits: ["sentences", "levels", "selected", "order", "layer"],
    label: "Which tokens of a sentence bend, in which layer",
  });
  const [sentences, levels] = [model.get("sentences"), model.get("levels")];
  const sentence = figure.select({
    trait: "selected", label: "Sentence", options: sentences.map(({ name }) => [name, name]),
  });
  figure.select({ trait: "order", label: "Words", options: ORDERS.map((order) => [order, order]) });
  figure.slider({ trait: "layer", label: "Layer", min: 1, max: Math.max(1, levels.length), step: 1 });
  const high = most(sentences);
  const legend = [["bound-curve", "other texts"]];
  const left = figure.panel({
    label: "The bend of the sentence in each layer", xlim: [0, levels.length + 1], ylim: [0, high], xlabel: "layer", ylabel: "bend",
    height: 320, legend: [["score-curve", "sentence"], ...legend],
    reads: { series: { "score-curve": "bend of the sentence", "bound-curve": "bend of other texts" } },
  });
  const [level, curve, dot] = [left.line("bound-curve"), left.line("score-curve"), left.dots("score-dot", 6)];
  const right = figure.panel({
    label: "The bend of each token in the chosen layer", xlim: [0, 2], ylim: [-0.45 * high, high], xlabel: "token", ylabel: "bend",
    height: 320, legend, reads: { series: { "input-dot": "bend" } },
  });
  const [flat, stems, heads, write] = [
    right.line("bound-curve"), right.line("input-curve"), right.dots("input-dot", 4), names(right)];

  return figure.onDraw((state) => {
    const shown = shownOf(state);
    if (!shown) return { score: NaN, text: "There is no sentence to show.", headline: "There is no bend." };
    sentence.value = sentences.some(({ name }) => name === state.selected) ? state.selected : sentences[0].name;
    const at = layerOf(shown, state.layer);
    const { score } = evaluate(state);
    const numbers = shown.bends.map((_, i) => i + 1);
    level(numbers, levels.slice(0, numbers.length));
    curve(numbers, shown.bends.map(together));
    dot([at + 1], [score]);
    const row = shown.bends[at];
    right.setLimits([0, row.length + 1], [-0.45 * high, high]);
    flat([0, row.length + 1], [levels[at], levels[at]]);
    stems(row.flatMap((_, i) => [i + 1, i + 1, NaN]), row.flatMap((bend) => [0, bend, NaN]));
    heads(row.map((_, i) => i + 1), row, shown.tokens);
    write(shown.tokens);
    return { score, text: describe(shown, at), headline: `Bend ${format(score, 3)} in layer ${at + 1}` };
  });
}

export default { render };
