// Runs the cells of one page in Pyodide with NumPy, in a worker that the page can end.
// Messages from the page: {cells: [[id, source], ...], wanted: id, originals: [[id, source], ...]}, and with the first
// one {files: Map of the name of each of Pyodide's files to a Blob}. Messages to it: see post() below.

const query = new URL(import.meta.url).searchParams;
const home = new URL("vendor/pyodide/", import.meta.url).href;
const post = (kind, content) => self.postMessage({ kind, ...content });

let python = null;
let texts = null;

async function start(files) {
  const plain = self.fetch;
  const warn = console.warn;
  console.warn = (...told) => { // Pyodide says no more than this, and would wait for ever
    warn(...told);
    if (told[0] === "wasm instantiation failed!") post("failed", { text: "this browser could not start Python." });
  };
  // What Pyodide asks for is what the page has loaded.
  self.fetch = (request, options) => {
    const url = new URL(request instanceof Request ? request.url : request, home).href;
    const name = url.startsWith(home) ? url.slice(home.length) : "";
    return files.has(name) ? Promise.resolve(new Response(files.get(name))) : plain.call(self, request, options);
  };
  const program = (name) => import(URL.createObjectURL(files.get(name)));
  const [{ loadPyodide }, { default: createPyodideModule }, { assignment }] = await Promise.all([
    program("pyodide.mjs"), program("pyodide.asm.mjs"), import(new URL("run_assignment.mjs", import.meta.url).href),
  ]);
  python = await loadPyodide({ indexURL: home, createPyodideModule });
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
    session ??= start(data.files);
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
