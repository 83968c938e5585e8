// The map of the zoo: how low the score of each activation gets, and over how wide a range of means it is non-linear.
// Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { element, format } from "../kit/panel.js";

/** The mark of each family: where its outline begins beside its place, and how it goes on. */
export const SHAPES = {
  squashing: [[-4, 0], "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z"],
  rectifier: [[-4, -4], "h8v8h-8Z"],
  exponential: [[0, -5], "l5 5l-5 5l-5 -5Z"],
  "smooth rectifier": [[0, -5], "l5 9h-10Z"],
  shrinkage: [[0, 5], "l5 -9h-10Z"],
  "bump or wave": [[-2, -5], "h4v3h3v4h-3v3h-4v-3h-3v-4h3Z"],
  power: [[-4, -4], "l8 8m0 -8l-8 8"],
};
const FAMILIES = Object.keys(SHAPES);

const outline = (family, x, y) => {
  const [[dx, dy], rest] = SHAPES[family];
  return `M${Math.round(10 * (x + dx)) / 10} ${Math.round(10 * (y + dy)) / 10}${rest}`;
};

const chosen = ({ activations, selected }) => activations.find(({ name }) => name === selected) ?? activations[0];

/** The lowest score of the chosen activation; NaN if there is none. */
export function evaluate(state) {
  return { score: chosen(state)?.lowest ?? NaN };
}

/** The distance of neighbouring means (laws.py): a width is so often this. */
const STEP = 0.2;

/** A score to three digits. None is 0, only too small to be told from it. */
const low = (score) => (score < 0.0005 ? "< 0.001" : format(score, 3));

/** The places of the map, with all that is said of each: several activations may share one. */
export function places(activations) {
  const found = new Map();
  for (const each of activations) {
    const key = `${each.width} ${each.lowest}`;
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(each);
  }
  return [...found.values()].map((some) => ({
    width: some[0].width, lowest: some[0].lowest,
    text: `${some.map(({ title, family }) => `${title} (${family})`).join(", ")}: width ${
      format(some[0].width, 1)}, lowest score ${low(some[0].lowest)}`,
  }));
}

/** One line about an activation. */
export function describe({ family, width, at, dead }) {
  const [bent, still] = [width, dead].map((length) => Math.round(length / STEP));
  const out = still > 0 ? `; dead at ${still}` : "";
  return `${family}; lowest at a mean of ${format(at, 1)}; non-linear at ${bent} of 201 means from \u221220 to 20${out}`;
}

/** The marks of the families and their names, in two columns. */
function familyPanel(parent) {
  const svg = element(parent, "svg", {
    viewBox: "0 0 340 96", width: 340, height: 96, role: "img", class: "affscore-panel families",
    "aria-label": `Marks of the families: ${FAMILIES.join(", ")}`,
  });
  element(svg, "rect", { class: "paper", width: 340, height: 96, rx: 4 });
  FAMILIES.forEach((family, i) => {
    const [x, y] = [40 + 150 * (i % 2), 14 + 22 * Math.floor(i / 2)];
    element(svg, "path", { class: `zoo family-${i}`, d: outline(family, x, y) });
    element(svg, "text", { class: "label", x: x + 14, y: y + 5 }, family);
  });
}

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "ZooMap", traits: ["activations", "named", "selected"],
    label: "A map of all activations: lowest score and width of the non-linear range",
  });
  const activations = model.get("activations");
  const list = figure.select({
    trait: "selected", label: "Activation", options: activations.map(({ name, title }) => [name, title]),
  });
  const panel = figure.panel({
    label: "Lowest score of each activation against the width of its non-linear range", xlim: [-1, 49], ylim: [-0.06, 1.08],
    xlabel: "width of the non-linear range", ylabel: "lowest score", height: 300, reads: { series: {} },
  });
  FAMILIES.forEach((family, i) => {
    const marks = activations.filter((each) => each.family === family);
    element(panel.svg, "path", {
      class: `zoo family-${i}`,
      d: marks.map(({ width, lowest }) => outline(family, panel.x(width), panel.y(lowest))).join(""),
    });
  });
  for (const { title, width, lowest } of activations.filter(({ name }) => model.get("named").includes(name))) {
    element(panel.svg, "text", { class: "label", x: panel.x(width) + 8, y: panel.y(lowest) - 4 }, title);
  }
  const ring = element(panel.svg, "circle", { class: "zoo-ring", r: 9 });
  const title = element(panel.svg, "text", { class: "label zoo-title" });
  const shared = places(activations);
  panel.notes()(shared.map(({ width }) => width), shared.map(({ lowest }) => lowest), shared.map(({ text }) => text));
  familyPanel(figure.panels);
  return figure.onDraw((state) => {
    const now = chosen(state);
    for (const node of [ring, title]) node.setAttribute("visibility", now ? "visible" : "hidden");
    if (!now) return { score: NaN, headline: "There is no score.", text: "There is no activation to show." };
    list.value = now.name;
    ring.setAttribute("cx", panel.x(now.width));
    ring.setAttribute("cy", panel.y(now.lowest));
    const side = now.width > 25 ? -1 : 1; // to the inside of the picture
    title.setAttribute("x", panel.x(now.width) + 12 * side);
    title.setAttribute("y", panel.y(now.lowest) + 16);
    title.setAttribute("text-anchor", side > 0 ? "start" : "end");
    title.textContent = state.named.includes(now.name) ? "" : now.title;
    return { score: now.lowest, headline: `${now.title}: lowest score ${low(now.lowest)}`, text: describe(now) };
  });
}

export default { render };
