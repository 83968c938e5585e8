// Brings the widgets of a static page to life: no kernel, no network, from a web server or from a file.
//
// window.affscoreWidgets (class name -> JavaScript module as text) is filled by the page's other scripts, which
// book_widgets.py writes. They are classic scripts because pages opened from a file may not load modules; a module made
// from a Blob may be imported there.
(function () {
  "use strict";
  const widgets = window.affscoreWidgets ?? {};

  /** What anywidget's model offers, without a kernel behind it. */
  function makeModel(state) {
    const listeners = new Map();
    const at = (event) => {
      if (!listeners.has(event)) listeners.set(event, new Set());
      return listeners.get(event);
    };
    return {
      get: (name) => state[name],
      set(name, value) {
        if (Object.is(state[name], value)) return;
        state[name] = value;
        for (const event of [`change:${name}`, "change"]) for (const listener of [...at(event)]) listener();
      },
      on: (event, listener) => at(event).add(listener),
      off: (event, listener) => (listener ? at(event).delete(listener) : at(event).clear()),
      save_changes() {},
      send() {},
    };
  }

  const modules = new Map();
  function load(name) {
    if (!Object.hasOwn(widgets, name)) return Promise.reject(new Error(`There is no widget "${name}" in this book.`));
    if (!modules.has(name)) {
      const url = URL.createObjectURL(new Blob([widgets[name]], { type: "text/javascript" }));
      modules.set(name, import(url).finally(() => URL.revokeObjectURL(url)));
    }
    return modules.get(name);
  }

  async function start(host) {
    const fallback = [...host.childNodes];
    try {
      const module = await load(host.dataset.widget);
      const el = document.createElement("div");
      host.replaceChildren(el);
      await module.default.render({ model: makeModel(JSON.parse(host.dataset.state)), el });
      host.dataset.live = "true";
    } catch (error) {
      host.replaceChildren(...fallback);
      host.dataset.live = "false";
      console.error(`The widget ${host.dataset.widget} could not start; its picture is shown instead.`, error);
    }
  }

  for (const host of document.querySelectorAll(".affscore-widget")) start(host);
})();
