// Runs the cells of one page: Pyodide and NumPy from the book's own files, in a worker that the page can end.
// Messages from the page: {cells: [[id, source], ...], wanted: id}. Messages to it: see post() below.

const query = new URL(import.meta.url).searchParams;
const files = JSON.parse(query.get("files")); // name: {bytes, sha256}
const total = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
const home = new URL("vendor/pyodide/", import.meta.url).href;
const post = (kind, content) => self.postMessage({ kind, ...content });

/** A file of the book, counted while it comes and compared with the hash that the book has for it. */
async function fetched(name, plain) {
  const response = await plain.call(self, home + name, { cache: "no-cache" }); // asked for again, sent if it changed
  if (!response.ok) throw new Error(`${name} could not be fetched: ${response.status}.`);
  const parts = [];
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    fetched.bytes += value.length;
    post("progress", { bytes: Math.min(fetched.bytes, total), total });
  }
  const data = new Uint8Array(await new Blob(parts).arrayBuffer());
  if (self.crypto?.subtle) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
    const hash = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (hash !== files[name].sha256) throw new Error(`${name} arrived damaged. Load the page again.`);
  }
  const type = name.endsWith(".wasm") ? "application/wasm" : response.headers.get("content-type") ?? "";
  return new Response(data, { headers: { "content-type": type } });
}
fetched.bytes = 0;

let python = null;
let texts = null;

async function start() {
  const plain = self.fetch;
  const warn = console.warn;
  console.warn = (...told) => { // Pyodide says no more than this, and would wait for ever
    warn(...told);
    if (told[0] === "wasm instantiation failed!") post("failed", { text: "this browser could not start Python." });
  };
  // What Pyodide asks for is counted and checked on its way.
  self.fetch = (request, options) => {
    const url = new URL(request instanceof Request ? request.url : request, home).href;
    const name = url.startsWith(home) ? url.slice(home.length) : "";
    if (!Object.hasOwn(files, name)) return plain.call(self, request, options);
    return fetched(name, plain).catch((error) => {
      post("failed", { text: error.message }); // Pyodide would wait for ever
      throw error;
    });
  };
  const [{ loadPyodide }, { assignment }] = await Promise.all([
    import(`${home}pyodide.mjs`), import(new URL("run_assignment.mjs", import.meta.url).href),
  ]);
  python = await loadPyodide({ indexURL: home });
  await python.loadPackage("numpy", { messageCallback: () => {} });
  const code = await plain(new URL(`run_${query.get("chapter")}.zip`, import.meta.url), { cache: "no-cache" });
  if (!code.ok) throw new Error(`the chapter's code could not be fetched: ${code.status}.`);
  python.unpackArchive(await code.arrayBuffer(), "zip");
  python.registerJsModule("affscore_in_page", {
    assignment(costs, n) {
      const view = costs.getBuffer("f64");
      try {
        return assignment(view.data, n);
      } finally {
        view.release();
      }
    },
  });
  texts = python.runPython("from affscore_book.kit.session import Session, texts_behind\ntexts_behind");
  return python.runPython("Session()");
}

/** What the output of each cell depends on, as a text, by the id of the cell. */
const behind = (cells) => texts(python.toPy(new Map(cells))).toJs({ dict_converter: (pairs) => new Map(pairs) });

let session = null;
let stored = null; // the same for what the notebook holds
self.onmessage = async ({ data }) => {
  try {
    session ??= start();
    const page = await session;
    post("ready");
    const sources = new Map(data.cells);
    const cells = page.plan(python.toPy(sources), data.wanted).toJs();
    post("plan", { cells });
    for (const cell of cells) {
      post("start", { cell });
      const good = page.run(cell, sources.get(cell), (kind, text) => post("output", { cell, form: kind, text }));
      post("end", { cell, good });
      if (!good) break;
    }
    stored ??= behind(data.originals);
    post("done", { behind: behind(data.cells), stored });
  } catch (error) {
    const offline = error instanceof TypeError;
    post("failed", { text: offline ? "a file could not be loaded. Are you online?" : String(error?.message ?? error) });
  }
};
