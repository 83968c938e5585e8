/* Makes cells run in the page. Each gets Run, Stop and Reset, and text that can be changed (_ext/run_cells.py says which).
   A cell that draws from a seed gets Another draw, which counts the seed on and runs it.
   Nothing is fetched before the first Run. The page loads Python's files (run_files.js) and a worker runs the cells
   (run_worker.js). Stop pauses the loading or ends the worker; the next Run loads what is missing and starts a new one,
   which runs again what is needed. What a reader typed is kept in this browser. Pages that are opened as files have no
   worker, and no buttons. */
(function () {
  const told = document.getElementById("affscore-cells");
  if (!told || !location.protocol.startsWith("http") || !window.Worker) return;
  const { chapter, cells: listed, files, bytes } = JSON.parse(told.textContent);
  const originals = new Map(listed); // in the order of the page
  const folder = new URL(".", document.currentScript.src);
  const megabytes = (count) => (count / 1e6).toFixed(count < 1e7 ? 1 : 0);
  const KEY = `affscore-run-${chapter}-`;
  const OUTDATED = "Outdated: the code that this output needs has changed since. Run it again.";
  const SEED = /(?:default_rng\(|\bseed=)$/; // what stands right before a seed
  const cells = new Map();
  let python = null; // its files
  let worker = null;
  let running = null; // the cell whose Run was pressed
  let runs = 0;

  function kept(id) {
    try {
      return localStorage.getItem(KEY + id);
    } catch {
      return null; // a browser that keeps nothing
    }
  }

  function keep(id, text) {
    try {
      if (text === null) localStorage.removeItem(KEY + id);
      else localStorage.setItem(KEY + id, text);
    } catch {
      /* This browser keeps nothing. */
    }
  }

  function make(parent, tag, attributes, text = "") {
    const node = document.createElement(tag);
    Object.assign(node, attributes);
    node.textContent = text;
    parent.append(node);
    return node;
  }

  /** The text of an element that was edited: a browser may write a new line as <br> or as a <div>. */
  function written(node) {
    let text = "";
    for (const child of node.childNodes) {
      if (child.nodeName === "BR") text += "\n";
      else if (child.nodeName === "DIV" && text && !text.endsWith("\n")) text += `\n${written(child)}`;
      else text += child.nodeType === Node.TEXT_NODE ? child.data : written(child);
    }
    return text;
  }

  class Cell {
    constructor(id, host) {
      this.id = id;
      this.host = host;
      this.code = host.querySelector(".cell_input pre");
      this.undone = null; // the text that Reset took away
      this.coloured = this.code.innerHTML;
      this.stored = host.querySelector(".cell_output");
      this.code.setAttribute("contenteditable", "plaintext-only");
      if (this.code.contentEditable !== "plaintext-only") this.code.contentEditable = "true";
      this.code.setAttribute("role", "textbox");
      this.code.setAttribute("aria-multiline", "true");
      this.code.setAttribute("aria-label", "Code of this cell, which you can change");
      this.code.spellcheck = false;
      this.code.setAttribute("autocapitalize", "off");
      this.code.setAttribute("autocorrect", "off");
      this.code.tabIndex = 0;
      this.bar = make(host.querySelector(".cell_input"), "div", { className: "run-bar" });
      this.run = make(this.bar, "button", { type: "button", className: "run-run", title: "Shift and Enter" }, "Run");
      this.draw = make(this.bar, "button", { type: "button", className: "run-draw" }, "Another draw");
      this.draw.title = "The next seed";
      this.reset = make(this.bar, "button", { type: "button", className: "run-reset", hidden: true }, "Reset");
      this.meter = make(this.bar, "progress", { hidden: true, max: 1, value: 0 });
      this.meter.setAttribute("aria-label", "Python is being loaded");
      this.said = make(this.bar, "span", { className: "run-said" });
      this.said.setAttribute("role", "status");
      this.run.addEventListener("click", (event) => {
        if (event.detail > 1) return; // a double click is one
        if (running) stop(whatIsKept());
        else start(this);
      });
      this.draw.addEventListener("click", (event) => {
        if (event.detail > 1) return;
        this.nextSeed();
        this.typed();
        start(this);
      });
      this.reset.addEventListener("click", () => (this.undone === null ? this.restore() : this.bringBack()));
      this.code.addEventListener("input", () => this.typed());
      this.code.addEventListener("keydown", (event) => {
        if (event.isComposing) return;
        if (event.key === "Enter" && event.shiftKey) {
          event.preventDefault();
          if (!running) start(this);
        }
        if (event.key === "Escape") this.run.focus();
        event.stopPropagation(); // the theme's own keys are not for those who type
      });
      const before = kept(id);
      if (before !== null && before !== originals.get(id)) {
        this.code.textContent = before;
        this.reset.hidden = false;
        this.said.textContent = "This is the text that you left here, above the book's output. Run it, or Reset.";
      }
      this.draw.hidden = !this.seeds().length;
    }

    /** The seeds in the text: the node that holds each, where it begins there, and its digits. */
    seeds() {
      const walker = document.createTreeWalker(this.code, NodeFilter.SHOW_TEXT);
      const found = [];
      let before = "";
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const { 0: digits, index } of node.data.matchAll(/\d+/g)) {
          if (SEED.test(before + node.data.slice(0, index))) found.push({ node, index, digits });
        }
        before = (before + node.data).slice(-20);
      }
      return found;
    }

    nextSeed() {
      for (const { node, index, digits } of this.seeds().reverse()) {
        node.replaceData(index, digits.length, String(Number(digits) + 1));
      }
    }

    get text() {
      return written(this.code).replace(/\u00a0/g, " ");
    }

    typed() {
      this.forget();
      // Where all was deleted a browser gives new letters the old ones' colour, which is that of one theme.
      for (const node of this.code.querySelectorAll("font, [style]")) {
        node.removeAttribute("color");
        node.removeAttribute("style");
      }
      const changed = this.text.trimEnd() !== originals.get(this.id).trimEnd();
      keep(this.id, changed ? this.text : null);
      this.reset.hidden = !changed && !this.fresh;
      this.draw.hidden = !this.seeds().length;
    }

    /** From now on Reset means the book's text and output, not what it took away. */
    forget() {
      this.undone = null;
      this.reset.textContent = "Reset";
    }

    bringBack() {
      this.code.textContent = this.undone;
      this.typed();
      this.said.textContent = "";
      this.code.focus();
    }

    restore() {
      const mine = this.text;
      this.code.innerHTML = this.coloured;
      keep(this.id, null);
      this.fresh?.remove();
      this.fresh = null;
      if (this.stored) this.stored.hidden = false;
      this.draw.hidden = !this.seeds().length;
      const changed = mine.trimEnd() !== originals.get(this.id).trimEnd();
      this.undone = changed ? mine : null;
      this.reset.textContent = changed ? "Undo Reset" : "Reset";
      this.reset.hidden = !changed;
      this.said.textContent = "";
      (changed ? this.reset : this.run).focus();
    }

    /** What the cell shows: the stored output stays until there is a new one. */
    begin() {
      this.parts = document.createElement("div");
      this.parts.className = "cell_output docutils container run-output";
      if (this !== running) this.said.textContent = "";
    }

    add(form, text) {
      const last = this.parts.lastElementChild;
      if (form === "html") {
        const box = make(this.parts, "div", { className: "output text_html" });
        box.innerHTML = text;
      } else if (form === "text" && last?.dataset.form === "text") {
        last.querySelector("pre").textContent += text;
      } else {
        const box = make(this.parts, "div", { className: `output ${form === "error" ? "run-error" : "text_plain"}` });
        box.dataset.form = form;
        make(make(box, "div", { className: "highlight" }), "pre", {}, text);
      }
      this.show();
    }

    show() {
      if (this.stored) this.stored.hidden = true;
      if (this.fresh !== this.parts) {
        this.fresh?.remove();
        this.fresh = this.parts;
        if (this.stored) this.stored.after(this.fresh); // above the caption, if there is one
        else this.host.append(this.fresh);
      }
      this.forget();
      this.reset.hidden = false;
    }

    /** Say that the output below was made before a cell that it needs was changed, or that it no longer was. */
    setOutdated(now) {
      if (now) this.said.textContent = OUTDATED;
      else if (this.said.textContent === OUTDATED) this.said.textContent = "";
      this.host.toggleAttribute("data-outdated", now);
    }

    end(good) {
      this.behind = null; // told when the run has ended
      this.host.dataset.ran = String(good);
      this.good = good;
      if (!this.parts.childElementCount) this.show();
    }
  }

  async function start(cell) {
    running = cell;
    runs += 1;
    Object.assign(cell, { good: undefined, note: "" });
    cell.run.textContent = "Stop";
    for (const each of cells.values()) each.reset.disabled = each.draw.disabled = true;
    document.body.dataset.running = cell.id;
    for (const other of cells.values()) if (other !== cell) other.run.disabled = true;
    const sources = [...cells].map(([id, each]) => [id, each.text]);
    const message = { cells: sources, wanted: cell.id, originals: listed };
    if (worker) {
      cell.said.textContent = "Running ...";
      worker.postMessage(message);
      return;
    }
    const run = runs;
    try {
      const loaded = await load(cell);
      if (run === runs && running) startWorker({ ...message, files: loaded });
    } catch (error) {
      if (run === runs && running) {
        failed(error instanceof TypeError ? "a file could not be loaded. Are you online?" : error.message);
      }
    }
  }

  /** Python's files. What is there already is not fetched again. */
  async function load(cell) {
    if (python?.bytes !== bytes) {
      cell.said.textContent = `Python is being loaded, ${megabytes(bytes)} MB ...`;
      cell.meter.value = (python?.bytes ?? 0) / bytes;
      cell.meter.hidden = false;
    }
    if (!python) {
      const { Files } = await import(new URL("run_files.js", folder));
      python ??= new Files(new URL("vendor/pyodide/", folder), files, () => {
        if (running) running.meter.value = python.bytes / bytes;
      });
      if (!running) return null;
    }
    return python.load();
  }

  function startWorker(message) {
    const address = new URL("run_worker.js", folder);
    address.searchParams.set("chapter", chapter);
    worker = new Worker(address, { type: "module" });
    worker.onmessage = ({ data }) => heard(data);
    worker.onerror = (event) => heard({ kind: "failed", text: event.message || "the worker could not be loaded." });
    running.meter.hidden = true;
    running.said.textContent = "Python is starting ...";
    worker.postMessage(message);
  }

  /** What a reader who stops is told. */
  function whatIsKept() {
    if (worker) return "Stopped. The next run starts Python again, and first runs the cells that it needs.";
    const [here, all] = [python?.bytes ?? 0, bytes].map(megabytes);
    return `Stopped. ${here} of ${all} MB of Python are loaded and kept. The next run goes on from there.`;
  }

  function finish(text) {
    const cell = running;
    running = null;
    delete document.body.dataset.running;
    cell.meter.hidden = true;
    cell.run.textContent = "Run";
    cell.said.textContent = text;
    for (const each of cells.values()) each.run.disabled = each.reset.disabled = each.draw.disabled = false;
  }

  function stop(text) {
    if (!worker) python?.pause();
    worker?.terminate();
    worker = null;
    finish(text);
  }

  const failed = (text) => stop(`It did not run: ${text}`);

  function heard(message) {
    if (!running) return;
    const cell = cells.get(message.cell);
    if (message.kind === "ready") {
      running.said.textContent = "Running ...";
    } else if (message.kind === "plan") {
      const others = message.cells.length - 1;
      const these = others === 1 ? "1 earlier cell" : `${others} earlier cells`;
      running.note = others ? `It first ran ${these} that this one needs.` : "";
    } else if (message.kind === "start") {
      cell.begin();
    } else if (message.kind === "output") {
      cell.add(message.form, message.text);
    } else if (message.kind === "end") {
      cell.end(message.good);
    } else if (message.kind === "done") {
      ended(message.behind, message.stored);
    } else if (message.kind === "failed") {
      failed(message.text);
    }
  }

  /** After a run: what it did, and which outputs on the page are no longer those of the cells above them. */
  function ended(behind, stored) {
    if (running.good === undefined) {
      finish("An earlier cell that this one needs stopped with an error.");
    } else {
      const shown = running.fresh.childElementCount ? "Done." : "Done. This cell shows nothing.";
      const end = running.good ? shown : "It stopped with an error.";
      finish([end, running.note].filter(Boolean).join(" "));
    }
    for (const [id, cell] of cells) {
      if (cell.behind === null) cell.behind = behind.get(id);
      cell.setOutdated(behind.get(id) !== (cell.fresh ? cell.behind : stored.get(id)));
    }
  }

  /** Beside the first cell: what the buttons are for. */
  function invite(first) {
    const note = document.createElement("p");
    note.className = "run-invitation";
    note.textContent = "You can change the code on this page and run it here. Nothing has to be installed. The first run "
      + `loads Python (${megabytes(bytes)} MB). If a cell needs earlier cells, they run first.`;
    first.before(note);
  }

  for (const id of originals.keys()) {
    const host = document.getElementById(`cell-${id}`);
    if (host?.querySelector(".cell_input pre")) cells.set(id, new Cell(id, host));
  }
  if (cells.size) invite([...cells.values()][0].host);
})();
