// The calls of a network made affine one by one, in a chosen order, and its accuracy. Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { format } from "../kit/panel.js";

const chosen = ({ paths, order }) => paths.find((path) => path.order === order) ?? paths[0];

/** Accuracy with `count` calls made affine, all of them where the network has fewer; NaN if there is no network. */
export function evaluate({ paths, order, count }) {
  const accuracy = chosen({ paths, order })?.accuracy ?? [];
  return { score: accuracy[Math.min(count, accuracy.length - 1)] ?? NaN };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "CallsRemoved", traits: ["calls", "paths", "order", "count"],
    label: "A network whose activation calls are made affine one by one",
  });
  const [calls, paths] = [model.get("calls"), model.get("paths")];
  const orders = figure.select({
    trait: "order", label: "First to go", options: paths.map(({ order, title }) => [order, title]),
  });
  figure.slider({
    trait: "count", label: "Calls made affine", min: 0, max: Math.max(1, calls.length), step: 1,
    text: (value) => `${value} of ${calls.length}`,
  });
  const left = figure.panel({
    label: "Accuracy against the number of calls made affine", xlim: [0, Math.max(1, calls.length)], ylim: [0, 1],
    xlabel: "calls made affine", ylabel: "accuracy",
  });
  const curve = left.line("score-curve");
  const dot = left.dots("score-dot", 7);
  const right = figure.panel({
    label: "Which calls are left, and when each goes", xlim: [0, calls.length + 1], ylim: [0, calls.length + 1],
    xlabel: "call (blue: bent, orange: affine)", ylabel: "place in the order",
    reads: { series: { "input-dot": "bent, place in the order", "image-dot": "affine, place in the order" } },
  });
  const [kept, gone] = [right.dots("input-dot", 6), right.dots("image-dot", 6)];
  return figure.onDraw((state) => {
    const { score } = evaluate(state);
    const path = chosen(state);
    if (!path) return { score, headline: "No network", text: "There is no network to show." };
    orders.value = path.order;
    const count = Math.min(state.count, calls.length);
    const seen = path.accuracy.slice(0, count + 1);
    curve(seen.map((_, i) => i), seen);
    dot([count], [score]);
    const out = path.gone.slice(0, count);
    const places = calls.map((_, i) => i);
    const [stay, go] = [places.filter((i) => !out.includes(i)), places.filter((i) => out.includes(i))];
    kept(stay.map((i) => i + 1), stay.map((i) => path.gone.indexOf(i) + 1), stay.map((i) => calls[i]));
    gone(go.map((i) => i + 1), go.map((i) => path.gone.indexOf(i) + 1), go.map((i) => calls[i]));
    const last = count ? `last made affine: ${calls[out[count - 1]]}` : `nothing is made affine yet; first to go: ${path.title}`;
    return { score, headline: `Accuracy ${format(score, 3)}`, text: last };
  });
}

export default { render };
