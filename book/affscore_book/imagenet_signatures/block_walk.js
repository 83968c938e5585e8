// A walk through the blocks of a residual network: what is after the addition, and what is inside a block. Python's
// side: widget.py.
import { Figure, Trail } from "../kit/figure.js";
import { format } from "../kit/panel.js";

const WAYS = [["trained", "trained"], ["start", "before training"]];

/** How many blocks the scores hold: one call in front of them, then `size` calls a block. */
export function blocks({ trained, size }) {
  return Math.max(0, Math.floor((trained.length - 1) / size));
}

/** The scores of the calls of one block by the weights that are shown; block 0 is the call in front of the blocks. */
export function calls({ trained, start, weights, block, size }) {
  const scores = weights === "trained" ? trained : start;
  const at = Math.min(block, blocks({ trained, size }));
  return at === 0 ? scores.slice(0, 1) : scores.slice(1 + (at - 1) * size, 1 + at * size);
}

/** The score of a state: that of the last call of the block, after the addition. */
export function evaluate(state) {
  return { score: calls(state).at(-1) ?? NaN };
}

/** How many of the blocks passed, from block 1 to the present one, have their highest score after the addition. */
export function highest(state) {
  const at = Math.min(state.block, blocks(state));
  return Array.from({ length: at }, (_, i) => calls({ ...state, block: i + 1 }))
    .filter((all) => all.slice(0, -1).every((score) => score < all.at(-1))).length;
}

/** Two lines about a state. */
export function describe(state) {
  const at = Math.min(state.block, blocks(state));
  if (!state.trained.length) return "There is no network to show.";
  if (at === 0) return "The first call, in front of all blocks. Move the slider into the network.";
  const inside = calls(state).slice(0, -1).map((score) => format(score, 2)).join(" and ");
  return `Block ${at}: inside ${inside}, after the addition ${format(calls(state).at(-1), 2)}. `
    + `Up to here the highest of its block in ${highest(state)} of ${at}.`;
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "BlockWalk", traits: ["block", "size", "start", "trained", "weights"],
    label: "The scores of a residual network, block by block",
  });
  const first = figure.state;
  const count = blocks(first);
  figure.select({ trait: "weights", label: "Weights", options: WAYS });
  figure.slider({
    trait: "block", label: "Block", min: 0, max: Math.max(count, 1), step: 1, text: (value) => `${value} of ${count}`,
  });
  const left = figure.panel({
    label: "The scores of the calls up to this block", xlim: [0, first.trained.length + 1], ylim: [0.3, 1], height: 300,
    xlabel: "activation call", legend: [["image-line", "inside a block"], ["input-curve", "after the addition"]],
    reads: { series: { "image-line inside": "inside a block", "input-dot": "after the addition", "score-dot": "now" } },
  });
  const marks = [left.crosses("image-line inside", 3), left.dots("input-dot", 4), left.dots("score-dot", 6)];
  const right = figure.panel({
    label: "The calls of this block", xlim: [0, first.size + 1], ylim: [0.3, 1], height: 300,
    xlabel: "call in the block", ylabel: "score",
    reads: { series: { "image-line inside": "inside, score", "score-dot": "last of the block, score" } },
  });
  const line = right.line("curve");
  const near = [right.crosses("image-line inside", 5), right.dots("score-dot", 7)];
  const trail = new Trail(Array.from({ length: Math.max(count, 1) + 1 }, (_, i) => i));
  return figure.onDraw((state) => {
    const seen = trail.visit(state.weights, state.block);
    const shown = seen.flatMap((passed, block) => {
      if (!passed || block > count) return [];
      const place = block === 0 ? 1 : 2 + (block - 1) * state.size;
      const all = calls({ ...state, block });
      return all.map((score, i) => ({ x: place + i, y: score, last: block > 0 && i === all.length - 1 }));
    });
    const draw = (mark, points) => mark(points.map(({ x }) => x), points.map(({ y }) => y));
    draw(marks[0], shown.filter(({ last }) => !last));
    draw(marks[1], shown.filter(({ last }) => last));
    const all = calls(state);
    const end = state.block === 0 ? 1 : 1 + Math.min(state.block, count) * state.size;
    marks[2]([end], [all.at(-1) ?? NaN]);
    const places = all.map((_, i) => i + 1);
    line(places, all);
    near[0](places.slice(0, -1), all.slice(0, -1));
    near[1](places.slice(-1), all.slice(-1));
    return { score: evaluate(state).score, text: describe(state) };
  });
}

export default { render };
