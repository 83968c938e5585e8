// A few points that a reader drags: the map T moves them, and a crossed coupling with the outputs is uncrossed, one
// exchange at a time. Python's side: widget.py.
import { affinity2d } from "../kit/affinity2d.js";
import { Figure } from "../kit/figure.js";
import { element, format, readout } from "../kit/panel.js";

export const EXCHANGES = 24;
export const FRAME = [-3.2, 3.2];
const STEP = 0.1;
const MAPS = [
  ["relu", "ReLU"], ["square", "x\u00b2"], ["stretch", "stretch"], ["turn", "quarter turn"], ["shear", "shear"],
];
const RULES = {
  relu: (a, b) => [Math.max(a, 0), Math.max(b, 0)],
  square: (a, b) => [a * a, b * b],
  stretch: (a, b) => [0.8 * a + 0.7 * b, 0.7 * a + 1.4 * b],
  turn: (a, b) => [-b, a],
  shear: (a, b) => [a + b, b],
};

/** The points as two columns, from their coordinates [x1, y1, x2, y2, ...]. */
function columns(points) {
  return [0, 1].map((k) => Float64Array.from({ length: points.length / 2 }, (_, i) => points[2 * i + k]));
}

/** A coupling after so many exchanges of two partners, each the one that shortens most; fewer if none shortens. */
export function exchanged(image, y, exchanges) {
  const n = image[0].length;
  const cost = (i, j) => (image[0][i] - y[0][j]) ** 2 + (image[1][i] - y[1][j]) ** 2;
  const partner = Array.from({ length: n }, (_, i) => (i + Math.floor(n / 2)) % n);
  for (let k = 0; k < exchanges; k++) {
    let [best, gain] = [null, 1e-9];
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) {
        const [p, q] = [partner[i], partner[j]];
        const won = cost(i, p) + cost(j, q) - cost(i, q) - cost(j, p);
        if (won > gain + 1e-9) [best, gain] = [[i, j], won];
      }
    }
    if (!best) return { partner, done: k, ended: true, length: length(cost, partner) };
    const [i, j] = best;
    [partner[i], partner[j]] = [partner[j], partner[i]];
  }
  return { partner, done: exchanges, ended: false, length: length(cost, partner) };
}

const length = (cost, partner) => Math.sqrt(partner.reduce((sum, j, i) => sum + cost(i, j), 0) / partner.length);

/** The score of a state, with its clouds and the coupling after the exchanges. */
export function evaluate({ map, points, exchanges }) {
  const x = columns(points);
  const pairs = Array.from(x[0], (a, i) => RULES[map](a, x[1][i]));
  const y = [0, 1].map((k) => Float64Array.from(pairs, (pair) => pair[k]));
  const result = affinity2d(x, y);
  return { ...result, coupling: exchanged(result.image, y, exchanges) };
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "MoveTheCloud", traits: ["exchanges", "map", "moved", "points"],
    label: "Points that you can drag, moved by T and coupled with their outputs",
  });
  figure.select({ trait: "map", label: "Map", options: MAPS });
  figure.slider({
    trait: "moved", label: "T moves the points", min: 0, max: 1, step: 0.05, text: (value) => `${format(100 * value, 0)} %`,
  });
  figure.slider({ trait: "exchanges", label: "Exchanges of two partners", min: 0, max: EXCHANGES, step: 1 });
  const size = { width: 340, height: 346 };
  const left = figure.panel({
    label: "The points, and T on its way to their affine image", xlim: FRAME, ylim: FRAME,
    xlabel: "drag the points", ...size,
    reads: { keys: false, x: "first coordinate", y: "second coordinate", series: { "input-dot": "", "image-cross": "T" } },
  });
  const right = figure.panel({
    label: "The outputs, the affine image, and a coupling that is uncrossed", xlim: FRAME, ylim: FRAME,
    xlabel: "outputs and affine image", ...size,
    reads: { x: "first coordinate", y: "second coordinate", series: { "output-squares": "output", "image-cross": "affine image" } },
  });
  left.svg.setAttribute("role", "group"); // not a picture: its points can be reached
  legend(left, [["circle", "point"], ["cross", "T(point)"]]);
  legend(right, [["square", "output"], ["cross", "affine image"], ["line", "coupling"]]);
  const paths = left.line("link");
  const inputs = left.dots("input-dot", 8);
  const moving = left.crosses("image-cross", 5);
  const links = right.line("link");
  const outputs = right.specks("output-squares");
  const image = right.crosses("image-cross", 5);

  // The points: by the mouse or a finger, or by the keyboard (Space chooses the next, arrows move it).
  let chosen = 0;
  const handle = element(left.svg, "g", {
    tabindex: 0, role: "application", "data-lm-suppress-shortcuts": "true", class: "drag-handle",
    "aria-label": "The points. Space chooses the next one, the arrow keys move it.",
  });
  const ring = element(handle, "circle", { r: 12, class: "drag-ring" });
  const bounded = (value) => Math.round(Math.min(Math.max(value, FRAME[0] + 0.2), FRAME[1] - 0.2) * 100) / 100;
  const move = (i, a, b) => {
    const points = [...model.get("points")];
    [points[2 * i], points[2 * i + 1]] = [bounded(a), bounded(b)];
    figure.set("points", points);
  };
  const at = (event) => {
    const box = left.svg.getBoundingClientRect();
    const scale = size.width / box.width;
    const { left: l, right: r, top: t, bottom: b } = left.box;
    const [u, v] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const width = FRAME[1] - FRAME[0];
    return [FRAME[0] + ((u - l) / (r - l)) * width, FRAME[0] + ((b - v) / (b - t)) * width];
  };
  // Only the points take a finger, so that the page scrolls from everywhere else.
  const hits = model.get("points").slice(1).filter((_, i) => i % 2 === 0).map((_, i) => {
    const hit = element(handle, "circle", { r: 15, class: "drag-hit" });
    hit.addEventListener("pointerdown", (event) => {
      chosen = i;
      hit.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      figure.redraw();
      event.preventDefault();
    });
    hit.addEventListener("pointermove", (event) => {
      if (hit.hasPointerCapture(event.pointerId)) move(i, ...at(event));
    });
    return hit;
  });
  handle.addEventListener("focus", () => left.reader.showPoint("input-dot", chosen));
  handle.addEventListener("blur", () => left.reader.hide());
  handle.addEventListener("keydown", (event) => {
    const points = model.get("points");
    const steps = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (event.key === " ") {
      chosen = (chosen + 1) % (points.length / 2);
      figure.redraw();
    } else if (steps[event.key]) {
      move(chosen, points[2 * chosen] + steps[event.key][0], points[2 * chosen + 1] + steps[event.key][1]);
    } else return;
    event.preventDefault();
  });

  return figure.onDraw((state) => {
    const result = evaluate(state);
    const [x, y, T, { partner, done, ended, length: mean }] = [result.x, result.y, result.image, result.coupling];
    const way = [0, 1].map((k) => x[k].map((value, i) => (1 - state.moved) * value + state.moved * T[k][i]));
    const between = (from, to, order) => [0, 1].map((k) => Array.from(from[k]).flatMap((v, i) => [v, to[k][order(i)], NaN]));
    paths(...between(x, way, (i) => i));
    const names = Array.from(x[0], (_, i) => `point ${i + 1}`);
    inputs(...x, names);
    moving(...way, names);
    if (document.activeElement === handle) left.reader.showPoint("input-dot", chosen);
    const reach = Math.max(FRAME[1], 1.1 * Math.max(...[...y[0], ...y[1], ...T[0], ...T[1]].map(Math.abs)));
    const limits = [-reach, reach].map((value) => Math.round(value * 10) / 10);
    right.setLimits(limits, limits);
    links(...between(T, y, (i) => partner[i]));
    outputs(...y, names);
    image(...T, names);
    handle.setAttribute("aria-label", `Point ${chosen + 1} of ${x[0].length}, at ${format(x[0][chosen])} and `
      + `${format(x[1][chosen])}. Space chooses the next one, the arrow keys move it.`);
    for (const [node, i] of [[ring, chosen], ...hits.map((hit, i) => [hit, i])]) {
      node.setAttribute("cx", left.x(x[0][i]));
      node.setAttribute("cy", left.y(x[1][i]));
    }
    const name = MAPS.find(([value]) => value === state.map)[1];
    const stop = ended ? "; no further exchange of two shortens it" : "";
    return {
      score: result.score,
      text: `${name}: after ${done} exchanges the lines have length ${readout(mean)}, at best ${readout(result.w2)}${stop}`,
    };
  });
}

function legend(panel, entries) {
  let x = 6;
  for (const [shape, text] of entries) {
    if (shape === "circle") element(panel.svg, "circle", { class: "input-dot", cx: x + 6, cy: 12, r: 5 });
    if (shape === "square") element(panel.svg, "rect", { class: "ink-square", x: x + 1, y: 7, width: 10, height: 10 });
    if (shape === "cross") element(panel.svg, "path", { class: "image-cross", d: `M${x + 2} 8l8 8M${x + 10} 8l-8 8` });
    if (shape === "line") element(panel.svg, "path", { class: "link", d: `M${x} 12l16 0` });
    element(panel.svg, "text", { class: "label", x: x + 20, y: 16 }, text);
    x += 36 + 7 * text.length;
  }
}

export default { render };
