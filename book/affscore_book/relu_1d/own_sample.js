// The reader's own numbers, through an activation. Python's side: widget.py; its twin of readNumbers: sample.py.
import { CHOICES, activation, affinity, centreColumn, largest } from "../kit/affinity1d.js";
import { Figure } from "../kit/figure.js";
import { element, format, readout } from "../kit/panel.js";

export const MOST = 5000; // numbers,
export const LARGEST = 1e100; // none larger than this
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;
const SPACE = "[ \\t\\r\\n\\u00a0]";
const BETWEEN = new RegExp(`${SPACE}*[,;]${SPACE}*|${SPACE}+`);
const AROUND = new RegExp(`^${SPACE}+|(${SPACE}|[,;])+$`, "g");
const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

function ordinal(count) {
  const ending = Math.floor(count / 10) % 10 === 1 ? "th" : ["th", "st", "nd", "rd"][count % 10] ?? "th";
  return ORDINALS[count - 1] ?? `${count}${ending}`;
}

/** The numbers in a text; an error whose message says what is wrong where they are no sample. */
export function readNumbers(text) {
  const inner = text.replaceAll("\u2212", "-").replace(AROUND, "");
  const entries = inner ? inner.split(BETWEEN) : [];
  if (entries.length > MOST) throw new Error(`There are ${entries.length} entries; at most ${MOST} are taken.`);
  const numbers = Float64Array.from(entries, (entry, i) => {
    const which = `The ${ordinal(i + 1)} entry`;
    const letters = Array.from(entry);
    const shown = letters.length > 20 ? `${letters.slice(0, 20).join("")}\u2026` : entry;
    if (!entry) throw new Error(`${which} is empty.`);
    if (!NUMBER.test(entry)) throw new Error(`${which}, '${shown}', is not a number.`);
    if (Math.abs(Number(entry)) > LARGEST) throw new Error(`${which}, '${shown}', is too large to compute with.`);
    return Number(entry);
  });
  if (numbers.length < 2) {
    throw new Error(`${numbers.length ? "There is one number" : "There are no numbers"}; a score needs at least two.`);
  }
  if (numbers.every((value) => value === numbers[0])) {
    throw new Error(`All ${numbers.length} numbers are equal; a score needs numbers that differ.`);
  }
  return numbers;
}

/** Mean and standard deviation (1/n) of a column, and its values in standard deviations from the mean. */
function moments(values) {
  const size = largest(values) || 1;
  const { mean, centred } = centreColumn(values.map((value) => value / size));
  const sd = Math.sqrt(centred.reduce((sum, value) => sum + value * value, 0) / values.length);
  const kept = Math.abs(mean) < 1e-14 * sd * values.length ? 0 : mean; // nothing but rounding
  return { mean: kept * size, sd: sd * size, standard: centred.map((value) => value / sd) };
}

/** The score of a text of numbers, with what the page says of them; NaN and the `problem` where they are no sample. */
export function evaluate({ activation: name, numbers: text }) {
  try {
    const x = readNumbers(text).sort();
    const y = x.map(activation(name)).sort();
    const { mean, sd, standard: inputs } = moments(x);
    const negative = x.reduce((count, value) => count + (value < 0), 0);
    const { score } = affinity(x, y);
    return { score, problem: "", n: x.length, mean, sd, negative, inputs, outputs: moments(y).standard };
  } catch (error) {
    return { score: NaN, problem: error.message };
  }
}

/** Three digits. */
const brief = (value) => String(Number(value.toPrecision(3))).replaceAll("-", "\u2212");

function render({ model, el }) {
  const figure = new Figure({
    model, el, name: "OwnSample", traits: ["activation", "numbers"],
    label: "Affinity score of an activation on your own numbers",
  });
  figure.textarea({
    trait: "numbers", label: "Your numbers, with decimal points, separated by spaces, commas, semicolons or new lines",
  });
  figure.select({ trait: "activation", label: "Activation", options: CHOICES });
  const panel = figure.panel({
    label: "The sorted outputs against the sorted inputs, and the affine image", xlim: [-2, 2], ylim: [-2, 2],
    xlabel: "input (both axes: standard deviations)", ylabel: "output",
    legend: [["input-curve", "your numbers"], ["image-line", "affine image"]],
    reads: { series: { "image-line": "affine image" } },
  });
  const band = panel.band("input-band");
  const image = panel.line("image-line");
  const dots = element(panel.svg, "path", { class: "input-curve" });
  const notes = panel.notes();
  return figure.onDraw((state) => {
    const { score, problem, n, mean, sd, negative, inputs, outputs } = evaluate(state);
    figure.root.classList.toggle("affscore-idle", problem !== "");
    if (problem) return { score, headline: problem, text: "Until then the score is undefined." };
    const all = Number.isNaN(score) ? inputs : [...inputs, ...outputs];
    const limits = [Math.floor(Math.min(-2, ...all) - 0.2), Math.ceil(Math.max(2, ...all) + 0.2)];
    panel.setLimits(limits, limits);
    band(limits[0], Math.min(Math.max(-mean / sd, limits[0]), limits[1]));
    image(inputs, inputs);
    // Points at one place are drawn once, as lines without length and with round ends.
    const places = new Set(Number.isNaN(score) ? [] : Array.from(inputs, (x, i) => `M${panel.x(x)} ${panel.y(outputs[i])}h0`));
    dots.setAttribute("d", [...places].join(""));
    const shown = Number.isNaN(score) ? [] : Array.from(inputs);
    notes(shown, shown.map((_, i) => outputs[i]), shown.map((input, i) => `number ${brief(mean + sd * input)} (${
      i + 1} of ${n} from below): input ${format(input)}, output ${format(outputs[i])} standard deviations`));
    const share = readout((100 * negative) / n, 0);
    return {
      score,
      text: `${n} numbers, mean ${brief(mean)}, standard deviation ${brief(sd)}; ${negative} negative (${share} %, shaded)`,
    };
  });
}

export default { render };
