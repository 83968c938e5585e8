// A widget's picture without a page: the parts of a document that widgets draw with, and the tree that they leave as
// text. Node runs this when a notebook is executed; still.py calls it.

class Element {
  constructor(tag, namespaceURI) {
    Object.assign(this, { tag, namespaceURI, attributes: {}, childNodes: [], style: {}, dataset: {}, textContent: "" });
    this.toggled = new Set();
    const [add, remove] = [(name) => this.toggled.add(name), (name) => this.toggled.delete(name)];
    this.classList = { add, remove, toggle: (name, there) => (there ? add : remove)(name) };
  }
  get firstChild() { return this.childNodes[0] ?? null; }
  get lastChild() { return this.childNodes.at(-1) ?? null; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  addEventListener() {}
  appendChild(child) { this.childNodes.push(child); child.parent = this; return child; }
  replaceChildren(...children) { this.childNodes = []; children.forEach((child) => this.appendChild(child)); }
  remove() { this.parent.childNodes = this.parent.childNodes.filter((child) => child !== this); }
  /** Of the form tag[attribute=value], which is all that widgets ask for. */
  querySelectorAll(selector) {
    const [, tag, name, value] = selector.match(/^(\w+)\[([\w-]+)=(\w+)\]$/);
    const below = (node) => node.childNodes.flatMap((child) => [child, ...below(child)]);
    return below(this).filter((node) => node.tag === tag && node.getAttribute(name) === value);
  }
}

const LOOKS = /(?:^|;)\s*(fill|opacity|stroke(?:-\w+)?|font-(?:size|family)): ([^;]+)/g;

/** What a style sheet says of drawn parts, in its order, as attributes of SVG. Colours are those of the light theme. */
function looksOf(css) {
  const rules = [...css.replace(/\/\*.*?\*\//gs, "").matchAll(/([^{}]+)\{([^{}]*)\}/g)];
  const light = Object.fromEntries([...rules[0][2].matchAll(/(--[\w-]+): ([^;]+);/g)].map(([, ...pair]) => pair));
  return rules.flatMap(([, selectors, body]) => selectors.split(",").flatMap((selector) => {
    const [, before, tag, names] = selector.trim().match(/^(?:(.*) )?(\w*)((?:\.[\w-]+)*)$/) ?? [];
    if (!tag && !names) return [];
    const attributes = [...body.replace("font: 13px", "font-size: 13px; font-family:").matchAll(LOOKS)].map(
      ([, name, value]) => [name, value.trim().replace(/var\((--[\w-]+)\)/g, (_, variable) => light[variable])]);
    const above = (before ?? "").match(/\.[\w-]+/g) ?? [];
    return [{ tag, above, classes: names.match(/\.[\w-]+/g) ?? [], attributes: Object.fromEntries(attributes) }];
  }));
}

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);

/** What a reader would see of a node, as text; `above` are the classes of the nodes around it. */
function written(node, looks, above = []) {
  const { tag, attributes, childNodes, style, textContent } = node;
  const unseen = attributes.visibility === "hidden" || style.display === "none" || (tag === "path" && !attributes.d);
  if (unseen || attributes.role === "application") return "";
  const own = { ...attributes };
  if (tag === "svg") own.role = "img"; // without the keys that read its numbers
  for (const name of Object.keys(own)) if (/^(tabindex|aria-value|data-lm)/.test(name)) delete own[name];
  for (const name of node.toggled) own.class += ` ${name}`;
  const names = own.class ? own.class.split(" ").map((name) => `.${name}`) : [];
  const all = (wanted, there) => wanted.every((name) => there.includes(name));
  for (const look of node.namespaceURI === "html" ? [] : looks) {
    if ((!look.tag || look.tag === tag) && all(look.classes, names) && all(look.above, above)) {
      Object.assign(own, look.attributes);
    }
  }
  const list = Object.entries(own).map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
  const inner = childNodes.map((child) => written(child, looks, [...above, ...names]))
    .join(node.namespaceURI === "html" ? " " : "");
  return `<${tag}${list}>${escaped(textContent)}${inner}</${tag}>`;
}

/** The picture of a widget's state as HTML without its controls; the style sheet's looks are written out. */
export function still({ render }, state, css) {
  globalThis.document = {
    still: true, createElement: (tag) => new Element(tag, "html"), createElementNS: (space, tag) => new Element(tag, space),
  };
  const traits = { ...state };
  const model = { get: (name) => traits[name], save_changes() {}, on() {}, off() {} };
  model.set = (name, value) => { traits[name] = value; };
  const el = new Element("div", "html");
  render({ model, el });
  const [figure] = el.childNodes;
  const shown = ["affscore-readout", "affscore-panels"];
  figure.childNodes = figure.childNodes.filter((child) => shown.includes(child.getAttribute("class")));
  return written(figure, looksOf(css));
}
