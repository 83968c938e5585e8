// A small network whose hidden units become linear one after the other: its graph, its paths and its function.
// Python's side: widget.py.
import { Figure } from "../kit/figure.js";
import { element, format, steadyLimits } from "../kit/panel.js";
import { uniforms } from "../kit/uniforms.js";

export const DEPTH = 4;
export const WIDTH = 4;
export const REACH = 3;
export const SEEDS = [98, 14, 42, 108, 116, 157, 60, 118];
const GRID = 61; // points of the input at which the layers are standardised
export const OPTIONS = [
  ["plain", "none"],
  ["skip_each", "a skip over each layer"],
  ["skip_all", "one skip over all layers"],
  ["concatenate", "concatenation"],
];

const range = (count) => Array.from({ length: count }, (_, k) => k);
const grid = Float64Array.from({ length: GRID }, (_, k) => -REACH + (2 * REACH * k) / (GRID - 1));

// ------------------------------------------------------------------------------------------ the network

/**
 * The network on the numbers x: { before, output }, each unit's values and their derivatives in x. before[l][i] has
 * the inputs of unit i of hidden layer l. linear[l][i] says whether the unit is linear.
 */
export function forward({ layers, connections }, linear, x) {
  const input = { value: Float64Array.from(x), slope: new Float64Array(x.length).fill(1) };
  const [before, seen] = [[], [input]];
  let values = seen;
  for (const [l, { weight, bias }] of layers.entries()) {
    const sums = weight.map((row, i) => {
      const sum = { value: new Float64Array(x.length).fill(bias[i]), slope: new Float64Array(x.length) };
      row.forEach((w, j) => {
        for (let k = 0; k < x.length; k++) {
          sum.value[k] += w * values[j].value[k];
          sum.slope[k] += w * values[j].slope[k];
        }
      });
      return sum;
    });
    if (l === DEPTH) {
      const output = connections === "skip_all" ? add(sums[0], input) : sums[0];
      return { before, output };
    }
    before.push(sums);
    const after = sums.map((sum, i) => (linear[l][i] ? sum : relu(sum)));
    seen.push(...after);
    if (connections === "concatenate") values = [...seen];
    else values = connections === "skip_each" && l > 0 ? after.map((unit, i) => add(unit, values[i])) : after;
  }
  return { before, output: null };
}

function relu({ value, slope }) {
  return { value: value.map((v) => Math.max(v, 0)), slope: slope.map((s, k) => (value[k] > 0 ? s : 0)) };
}

function add(one, other) {
  return { value: one.value.map((v, k) => v + other.value[k]), slope: one.slope.map((s, k) => s + other.slope[k]) };
}

const ALL_RELU = range(DEPTH).map(() => Array(WIDTH).fill(false));
const NETWORKS = new Map();

/**
 * A network of one draw: { layers, connections, order }. While all units are ReLUs, every unit's input has mean 0 and
 * standard deviation 1 over [-REACH, REACH], and then its bias is moved by at most 0.5. order[l] lists the units of
 * layer l in the order in which they become linear.
 */
export function network(connections, draw) {
  const key = `${connections} ${draw}`;
  if (NETWORKS.has(key)) return NETWORKS.get(key);
  const made = { layers: [], connections, order: [] };
  for (let l = 0; l <= DEPTH; l++) {
    const stream = 64 + 16 * SEEDS[draw - 1] + 3 * l;
    const outputs = l === DEPTH ? 1 : WIDTH;
    const inputs = connections === "concatenate" ? 1 + WIDTH * l : l === 0 ? 1 : WIDTH;
    const drawn = uniforms(stream, inputs * outputs).map((u) => Math.sign(u) * (0.3 + 0.7 * Math.abs(u)));
    const shift = uniforms(stream + 1, outputs).map((u) => (l === DEPTH ? 0 : 0.5 * u));
    const weight = range(outputs).map((i) => Array.from(drawn.slice(i * inputs, (i + 1) * inputs)));
    made.layers.push({ weight, bias: Array(outputs).fill(0) });
    // The sums of the new layer: its own output where it is the last one.
    const rest = l === DEPTH ? { ...made, connections: connections === "skip_all" ? "plain" : connections } : made;
    const run = forward(rest, ALL_RELU, grid);
    const sums = l === DEPTH ? [run.output] : run.before[l];
    sums.forEach(({ value }, i) => {
      const mean = value.reduce((sum, v) => sum + v, 0) / GRID;
      const deviation = Math.sqrt(value.reduce((sum, v) => sum + (v - mean) ** 2, 0) / GRID);
      made.layers[l].weight[i] = weight[i].map((w) => w / deviation);
      made.layers[l].bias[i] = shift[i] - mean / deviation;
    });
    const turn = uniforms(stream + 2, WIDTH);
    if (l < DEPTH) made.order.push(range(WIDTH).sort((i, j) => turn[i] - turn[j]));
  }
  NETWORKS.set(key, made);
  return made;
}

/** linear[l][i]: whether unit i of hidden layer l is linear, in a state. */
export function linearUnits(state) {
  const { order } = network(state.connections, state.draw);
  return order.map((units, l) => range(WIDTH).map((i) => units.indexOf(i) < state[`layer${l + 1}`]));
}

/**
 * The function on [-REACH, REACH], exactly: it is linear between the points x, which are its ends and all zeros of the
 * inputs of non-linear units. kinks: those among x where the slope changes.
 */
export function pieces(net, linear) {
  let x = [-REACH, REACH];
  for (let l = 0; l < DEPTH; l++) {
    const { before } = forward(net, linear, x);
    const found = [];
    before[l].forEach(({ value }, i) => {
      if (linear[l][i]) return;
      for (let k = 0; k + 1 < x.length; k++) {
        if (value[k] * value[k + 1] < 0) {
          found.push(x[k] + (value[k] / (value[k] - value[k + 1])) * (x[k + 1] - x[k]));
        }
      }
    });
    x = [...x, ...found].sort((a, b) => a - b);
  }
  const y = Array.from(forward(net, linear, x).output.value);
  const { slope } = forward(net, linear, x.slice(1).map((end, k) => (x[k] + end) / 2)).output;
  const steepest = slope.reduce((most, s) => Math.max(most, Math.abs(s)), 0);
  const kinks = range(x.length).filter((k) => k > 0 && Math.abs(slope[k] - slope[k - 1]) > 1e-9 * steepest);
  return { x, y, kinks: kinks.map((k) => x[k]), heights: kinks.map((k) => y[k]) };
}

// -------------------------------------------------------------------------------------------- the paths
// A bundle holds the paths that lead to one place: count[k] of them meet k non-linear units, and weight[k] is their
// weight where every addition chooses a summand, and then a unit, each with equal chances.

/** The bundle of a sum of groups of units. */
function merge(groups) {
  const total = { count: Array(DEPTH + 1).fill(0), weight: Array(DEPTH + 1).fill(0) };
  for (const group of groups) {
    for (const { count, weight } of group) {
      count.forEach((paths, k) => { total.count[k] += paths; });
      weight.forEach((share, k) => { total.weight[k] += share / group.length / groups.length; });
    }
  }
  return total;
}

const meet = ({ count, weight }) => ({ count: [0, ...count.slice(0, -1)], weight: [0, ...weight.slice(0, -1)] });

/** All paths from input to output: { paths, apl, napl, count, weight }. */
export function pathLengths(connections, linear) {
  const input = { count: [1, 0, 0, 0, 0], weight: [1, 0, 0, 0, 0] };
  let units = [input];
  for (let l = 0; l < DEPTH; l++) {
    const sum = merge([units]);
    const after = range(WIDTH).map((i) => (linear[l][i] ? sum : meet(sum)));
    if (connections === "concatenate") units = [...units, ...after];
    else units = connections === "skip_each" && l > 0 ? after.map((unit, i) => merge([[unit], [units[i]]])) : after;
  }
  const { count, weight } = merge(connections === "skip_all" ? [units, [input]] : [units]);
  const paths = count.reduce((sum, c) => sum + c, 0);
  const mean = (shares) => shares.reduce((sum, share, k) => sum + k * share, 0);
  return { paths, apl: mean(count) / paths, napl: mean(weight), count, weight };
}

/** All that the page shows; the number of a state is its NAPL. */
export function evaluate(state) {
  const linear = linearUnits(state);
  const lengths = pathLengths(state.connections, linear);
  return { score: lengths.napl, ...lengths, linear, ...pieces(network(state.connections, state.draw), linear) };
}

// --------------------------------------------------------------------------------------------- the page

const COLUMNS = [18, 75, 137, 199, 261, 324]; // of the input, the hidden layers and the output
const ROWS = [68, 102, 136, 170];
const MIDDLE = 119;

/** Where the graph's lines run: { edges, skips }, two path texts, and the places of the plus signs. */
export function lines(connections) {
  const plus = [];
  const places = COLUMNS.map((x, l) => {
    if (l === 0) return [[x + 6, MIDDLE]];
    if (l > DEPTH) return [[x - 6, MIDDLE]];
    return ROWS.map((y) => (connections === "skip_each" && l > 1 ? [x + 25, y] : [x + 10, y]));
  });
  let [edges, skips] = ["", ""];
  for (let l = 1; l < COLUMNS.length; l++) {
    const ends = l > DEPTH ? [[connections === "skip_all" ? COLUMNS[l] - 26 : COLUMNS[l] - 6, MIDDLE]]
      : ROWS.map((y) => [COLUMNS[l] - 10, y]);
    for (const [x, y] of places[l - 1]) for (const [u, v] of ends) edges += `M${x} ${y}L${u} ${v}`;
  }
  if (connections === "skip_each") {
    for (let l = 2; l <= DEPTH; l++) {
      ROWS.forEach((y, i) => {
        const x = COLUMNS[l] + 19;
        plus.push([x, y]);
        edges += `M${COLUMNS[l] + 10} ${y}L${x - 6} ${y}`;
        skips += `M${places[l - 1][i][0]} ${y}C${COLUMNS[l] - 20} ${y - 22} ${x} ${y - 22} ${x} ${y - 6}`;
      });
    }
  }
  if (connections === "skip_all") {
    const x = COLUMNS[DEPTH + 1] - 20;
    plus.push([x, MIDDLE]);
    edges += `M${x + 6} ${MIDDLE}L${x + 14} ${MIDDLE}`;
    skips += `M18 ${MIDDLE - 6}C18 2 ${x} 2 ${x} ${MIDDLE - 6}`;
  }
  if (connections === "concatenate") {
    for (let from = 0; from < COLUMNS.length; from++) {
      for (let to = from + 2; to < COLUMNS.length; to++) {
        const [x, y] = [COLUMNS[from], from === 0 ? MIDDLE - 6 : ROWS[0] - 10];
        const [u, v] = [COLUMNS[to], to > DEPTH ? MIDDLE - 6 : ROWS[0] - 10];
        const top = ROWS[0] - 10 - 14 * (to - from);
        skips += `M${x} ${y}C${x} ${top} ${u} ${top} ${u} ${v}`;
      }
    }
  }
  return { edges, skips, plus };
}

/** A unit's circle: filled with the picture of a ReLU, or hollow with that of a line. Returns draw(linear). */
function unitAt(parent, x, y) {
  const circle = element(parent, "circle", { cx: x, cy: y, r: 10 });
  const mark = element(parent, "polyline", {});
  let drawn = null;
  return (linear) => {
    if (drawn === linear) return;
    drawn = linear;
    circle.setAttribute("class", linear ? "hollow" : "input-dot");
    mark.setAttribute("class", linear ? "mark" : "mark on");
    mark.setAttribute("points", (linear ? [[-5, 4], [5, -4]] : [[-6, 3], [0, 3], [5, -4]])
      .map(([a, b]) => `${x + a},${y + b}`).join(" "));
  };
}

/** The graph. Returns draw(connections, linear). */
function graphPanel(parent) {
  const [width, height] = [340, 250];
  const svg = element(parent, "svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "affscore-panel graph",
  });
  element(svg, "rect", { class: "paper", width, height, rx: 4 });
  const edges = element(svg, "path", { class: "edges" });
  const skips = element(svg, "path", { class: "image-line" });
  const sums = element(svg, "g");
  for (const x of [COLUMNS[0], COLUMNS.at(-1)]) element(svg, "circle", { class: "end", cx: x, cy: MIDDLE, r: 6 });
  element(svg, "text", { class: "label", x: COLUMNS[0], y: MIDDLE + 24, "text-anchor": "middle" }, "x");
  element(svg, "text", { class: "label", x: COLUMNS.at(-1), y: MIDDLE + 24, "text-anchor": "middle" }, "f(x)");
  const units = range(DEPTH).map((l) => ROWS.map((y) => unitAt(svg, COLUMNS[l + 1], y)));
  const shares = range(DEPTH).map((l) => {
    const at = { x: COLUMNS[l + 1], "text-anchor": "middle" };
    element(svg, "text", { class: "tick", ...at, y: 198 }, `layer ${l + 1}`);
    return element(svg, "text", { class: "label", ...at, y: 214 });
  });
  unitAt(svg, 18, 236)(false);
  unitAt(svg, 94, 236)(true);
  for (const [x, text] of [[34, "ReLU"], [110, "linear"], [170, "p: share of ReLUs"]]) {
    element(svg, "text", { class: "label", x, y: 240 }, text);
  }
  let drawn = null;
  return (connections, linear) => {
    if (drawn !== connections) {
      drawn = connections;
      const texts = lines(connections);
      edges.setAttribute("d", texts.edges);
      skips.setAttribute("d", texts.skips);
      sums.replaceChildren();
      for (const [x, y] of texts.plus) {
        element(sums, "circle", { class: "hollow", cx: x, cy: y, r: 6 });
        element(sums, "polyline", { class: "mark", points: `${x - 3},${y} ${x + 3},${y}` });
        element(sums, "polyline", { class: "mark", points: `${x},${y - 3} ${x},${y + 3}` });
      }
    }
    const counts = linear.map((layer) => layer.filter((yes) => !yes).length);
    linear.forEach((layer, l) => {
      layer.forEach((yes, i) => units[l][i](yes));
      shares[l].textContent = `p = ${counts[l] / WIDTH}`;
    });
    svg.setAttribute("aria-label", graphLabel(connections, counts));
  };
}

export function graphLabel(connections, counts) {
  const how = OPTIONS.find(([value]) => value === connections)[1];
  return `The network: ${DEPTH} hidden layers of ${WIDTH} units, extra connections: ${how}. ReLUs by layer: `
    + counts.join(", ");
}

/** Upright lines at places, as the abscissae and ordinates of one line with gaps. */
function upright(places, heights) {
  return [places.flatMap((x) => [x, x, x]), heights.flatMap((y) => (y > 0 ? [0, y, NaN] : [NaN, NaN, NaN]))];
}

function render({ model, el }) {
  const layers = range(DEPTH).map((l) => `layer${l + 1}`);
  const figure = new Figure({
    model, el, name: "LinearizedNetwork", traits: ["connections", "draw", ...layers],
    label: "A small network whose units become linear: path lengths and the function that it computes",
  });
  figure.select({ trait: "connections", label: "Extra connections", options: OPTIONS });
  figure.slider({ trait: "draw", label: "Draw of weights", min: 1, max: SEEDS.length, step: 1 });
  const sum = () => layers.reduce((total, trait) => total + model.get(trait), 0);
  const all = figure.slider({
    trait: "layer1", label: "Linear in all layers", min: 0, max: WIDTH, step: 1,
    text: () => `${sum()} of ${DEPTH * WIDTH}`,
  });
  figure.followers.push(() => { all.value = Math.round(sum() / DEPTH); });
  for (const [l, trait] of layers.entries()) {
    figure.slider({
      trait, label: `Layer ${l + 1}`, min: 0, max: WIDTH, step: 1, text: (value) => `${value} of ${WIDTH}`,
    });
  }
  // All layers change before the picture is drawn, once.
  let busy = false;
  figure.redraw = () => { if (!busy) figure.draw(); };
  all.addEventListener("input", () => {
    busy = true;
    for (const trait of layers.slice(1)) model.set(trait, Number(all.value));
  }, { capture: true });
  all.addEventListener("input", () => {
    busy = false;
    figure.draw();
  });

  const graph = graphPanel(figure.panels);
  const right = figure.panel({
    label: "The function that the network computes", xlim: [-REACH, REACH], ylim: [-1, 1], xlabel: "input x",
    ylabel: "f(x)", legend: [["input-curve", "now"], ["curve", "all ReLU"]],
    reads: { series: { "input-curve": "f(x)", "bound-dot": "kink, f(x)", curve: "f(x) with all ReLUs" } },
  });
  element(right.svg, "circle", { class: "bound-dot", cx: 228, cy: 12, r: 4 });
  element(right.svg, "text", { class: "label", x: 238, y: 16 }, "kink");
  const curve = right.line("input-curve");
  const reference = right.line("curve");
  const kinks = right.dots("bound-dot", 4);
  const bars = figure.panel({
    label: "The weight of the paths by the number of ReLUs on them", xlim: [-0.5, DEPTH + 0.9],
    ylim: [0, 1.3], xlabel: "ReLUs on a path", ylabel: "weight of the paths",
    legend: [["input-curve", "APL"], ["image-line", "NAPL"]], height: 200, reads: { series: {} },
  });
  const counted = bars.line("input-curve");
  const chosen = bars.line("image-line");
  const notes = [bars.notes(), bars.notes()];
  const means = [bars.dots("input-dot", 6), bars.dots("image-dot", 6)];
  const names = [bars.text("label"), bars.text("label")];

  let full = {};
  return figure.onDraw((state) => {
    const result = evaluate(state);
    if (full.key !== `${state.connections} ${state.draw}`) {
      const { x, y, kinks: all } = pieces(network(state.connections, state.draw), ALL_RELU);
      full = { key: `${state.connections} ${state.draw}`, x, y, count: all.length + 1 };
    }
    graph(state.connections, result.linear);
    right.setLimits([-REACH, REACH], steadyLimits([...full.y, ...result.y]));
    reference(full.x, full.y);
    curve(result.x, result.y);
    kinks(result.kinks, result.heights);
    counted(...upright(range(DEPTH + 1).map((k) => k - 0.1), result.count.map((count) => count / result.paths)));
    chosen(...upright(range(DEPTH + 1).map((k) => k + 0.1), result.weight));
    const numbers = range(DEPTH + 1);
    const paths = (k) => `${k} ${k === 1 ? "ReLU" : "ReLUs"} on a path`;
    notes[0](numbers.map((k) => k - 0.1), result.count.map((count) => count / result.paths),
      numbers.map((k) => `${paths(k)}: ${result.count[k]} of ${result.paths} paths`));
    notes[1](numbers.map((k) => k + 0.1), result.weight,
      numbers.map((k) => `${paths(k)}: ${format(100 * result.weight[k], 1)} % of the weight`));
    [result.apl, result.napl].forEach((mean, which) => {
      const height = which ? 1.1 : 1.22;
      means[which]([mean], [height]);
      names[which](mean + 0.15, height - 0.035, which ? "NAPL" : "APL");
    });
    const active = DEPTH * WIDTH - sum();
    return {
      score: result.score, headline: `APL ${format(result.apl, 3)}, NAPL ${format(result.napl, 3)}`,
      text: `${result.paths} paths; ${active} of ${DEPTH * WIDTH} units are ReLUs; linear pieces: `
        + `${result.kinks.length + 1}, with ReLU everywhere ${full.count}`,
    };
  });
}

export { steadyLimits };
export default { render };
