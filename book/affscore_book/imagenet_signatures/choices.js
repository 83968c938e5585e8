// What the map of architectures and the history plot share: filters, the chosen network, marks, pointing.
// Python's side: compare.py.
import { element, format } from "../kit/figure.js";

export const GROUPS = ["Pre-residual", "Residual", "NAS-based", "ViT", "Post-ViT", "other"];

/** Whether a network passes the filters of a state. */
export function fits(network, { family, weights }) {
  return (family === "all" || network.family === family) && (weights === "all" || network.weights === weights);
}

/** The network that a state shows: the selected one if it passes the filters, else the first that does, else any. */
export function chosen(state) {
  const passing = state.models.filter((network) => fits(network, state));
  const selected = (list) => list.find((network) => network.name === state.selected);
  return selected(passing) ?? passing[0] ?? selected(state.models) ?? state.models[0];
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** { score, low, high, calls, dead } of a network: median, smallest and largest score of its live calls. */
export function summary(network) {
  const alive = (network?.scores ?? []).filter((value) => value !== null);
  const dead = (network?.scores.length ?? 0) - alive.length;
  if (!alive.length) return { score: NaN, low: NaN, high: NaN, calls: 0, dead };
  return { score: median(alive), low: Math.min(...alive), high: Math.max(...alive), calls: alive.length, dead };
}

/** The score of a state: the median of the chosen network; see summary(). */
export function evaluate(state) {
  return summary(chosen(state));
}

/** One line about the network that a state shows. */
export function describe(state) {
  const network = chosen(state);
  if (!network) return "There is no network to show.";
  const { low, high, calls, dead } = summary(network);
  const parts = [`${network.name}: median of ${calls} calls, from ${format(low)} to ${format(high)}`];
  if (dead) parts[0] += `, ${dead} dead`;
  parts.push([network.family, network.year].filter((part) => part !== null && part !== "other").join(", "));
  parts.push({ random: "random weights", unknown: "weights not recorded" }[network.weights] ?? "trained weights");
  if (network.accuracy !== null) {
    const whose = network.weights === "pretrained" ? "" : " of the published weights";
    parts.push(`ImageNet top-1 accuracy${whose} ${format(network.accuracy, 1)} %`);
  }
  const first = fits(network, state) ? "" : "No network passes both filters. ";
  return first + parts.filter(Boolean).join("; ");
}

/** The outline of a group's mark around (x, y), as the d of a path. */
export function outline(group, x, y, r) {
  const at = (dx, dy) => `${Math.round((x + dx * r) * 10) / 10} ${Math.round((y + dy * r) * 10) / 10}`;
  const polygon = (...points) => `M${points.map(([dx, dy]) => at(dx, dy)).join("L")}Z`;
  switch (GROUPS.indexOf(group)) {
    case 0: return `M${at(-1, 0)}A${r} ${r} 0 1 1 ${at(1, 0)}A${r} ${r} 0 1 1 ${at(-1, 0)}Z`;
    case 1: return polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]);
    case 2: return polygon([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]);
    case 3: return polygon([0, -1.2], [1.1, 0.8], [-1.1, 0.8]);
    case 4: return polygon([0, 1.2], [1.1, -0.8], [-1.1, -0.8]);
    default: return polygon([-1, -0.4], [-0.4, -0.4], [-0.4, -1], [0.4, -1], [0.4, -0.4], [1, -0.4], [1, 0.4],
      [0.4, 0.4], [0.4, 1], [-0.4, 1], [-0.4, 0.4], [-1, 0.4]);
  }
}

/** The classes of what belongs to a network in a state. */
export function looks(network, state, kind) {
  const group = `g${Math.max(GROUPS.indexOf(network.group), network.group === "other" ? 5 : 0)}`;
  const hollow = network.weights === "pretrained" ? "" : " hollow";
  return `${kind} ${group}${hollow}${fits(network, state) ? "" : " dim"}`;
}

/** The drop-down lists: the network, and a filter where there is a choice. Returns a function of the state. */
export function controls(figure, models) {
  const network = figure.select({
    trait: "selected", label: "Network", options: models.map(({ name }) => [name, name]),
  });
  const filter = (trait, label, words = {}) => {
    const values = [...new Set(models.map((each) => each[trait]))];
    const options = [["all", "all"], ...values.map((value) => [value, words[value] ?? value])];
    if (values.length > 1) figure.select({ trait, label, options });
  };
  filter("weights", "Weights", { pretrained: "trained", unknown: "not recorded" });
  filter("family", "Family");
  return (state) => {
    network.value = chosen(state)?.name ?? "";
    [...network.options].forEach((option, i) => {
      option.hidden = option.disabled = option.value !== network.value && !fits(models[i], state);
    });
  };
}

/** The lines of the legend of shapes under the panels. */
export function legend(figure, models) {
  const groups = GROUPS.filter((group) => models.some((network) => network.group === group));
  const kinds = new Set(models.map((network) => network.weights));
  const line = element(figure.root, "p", { class: "affscore-key" });
  const entry = (group, extra, text) => {
    const span = element(line, "span");
    const svg = element(span, "svg", { viewBox: "0 0 18 18", width: 18, height: 18, "aria-hidden": "true" });
    element(svg, "path", { class: `mark ${extra}`, d: outline(group, 9, 9, 5.5) });
    element(span, "b", {}, text);
  };
  for (const group of groups) entry(group, `g${GROUPS.indexOf(group)}`, group);
  if (kinds.has("random")) entry("Pre-residual", "g5 hollow", "hollow: random weights");
  if (kinds.has("unknown")) entry("Pre-residual", "g5 hollow", "hollow: weights not recorded");
}

/**
 * Let the pointer and the arrow keys choose among the networks of a panel. places(): [[network, x, y], ...] in the
 * panel's own units, those that may be chosen.
 */
export function choosing(figure, panel, places) {
  const { svg } = panel;
  svg.setAttribute("role", "group");
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("data-lm-suppress-shortcuts", "true");
  const near = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const distance = ([, px, py]) => Math.hypot(px - x, py - y);
    const best = places().reduce((a, b) => (a && distance(a) <= distance(b) ? a : b), null);
    if (best && distance(best) < 26) figure.set("selected", best[0].name);
  };
  svg.addEventListener("pointermove", near);
  svg.addEventListener("click", near);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = places();
    const here = all.find(([network]) => network.name === figure.chosenName) ?? all[0];
    if (!here) return;
    // The nearest one in the direction of the key; what lies to the side counts double.
    const cost = ([, x, y]) => {
      const [dx, dy] = [x - here[1], y - here[2]];
      const along = dx * step[0] + dy * step[1];
      return along > 0.01 ? along + 2 * Math.abs(dx * step[1] - dy * step[0]) : Infinity;
    };
    const best = all.reduce((a, b) => (cost(b) < cost(a) ? b : a));
    if (cost(best) < Infinity) figure.set("selected", best[0].name);
  });
}
