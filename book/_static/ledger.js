// The table of all claims: the rows of one place fold behind its statement, and menus above choose by source, chapter
// and verdict. A chapter or a verdict is asked of measurements, so then these are shown, unfolded. Without this script
// every row is shown.
document.addEventListener("DOMContentLoaded", () => {
  const table = document.querySelector("table.ledger");
  const rows = [...table.tBodies[0].rows];
  const measured = new Map(); // a statement: its rows
  let last;
  for (const row of rows) {
    if (row.classList.contains("statement")) measured.set((last = row), []);
    else if (row.classList.contains("measured")) measured.get(last).push(row);
  }
  const all = rows.length - measured.size;
  const isOpen = (statement) => statement.querySelector("button").getAttribute("aria-expanded") === "true";
  const columns = [
    { label: "Source", cell: 0, value: (text) => text.split(", ")[0] },
    { label: "Chapter", cell: 6, value: (text) => text || "no chapter" },
    { label: "Verdict", cell: 5, value: (text) => text.replace(/^depends on .*/, "depends on a convention") },
  ];
  const form = document.createElement("form");
  form.className = "ledger-filter";
  const shown = document.createElement("output");

  function update() {
    const fits = (row) => columns.every(
      ({ menu, cell, value }) => !menu.value || value(row.cells[cell].textContent.trim()) === menu.value,
    );
    const flat = columns.some(({ label, menu }) => label !== "Source" && menu.value);
    let count = 0;
    for (const row of rows) {
      const statement = measured.has(row);
      row.hidden = !fits(row) || (statement && flat);
      count += !statement && !row.hidden;
    }
    if (!flat) {
      for (const [statement, some] of measured) {
        for (const row of some) row.hidden ||= !isOpen(statement);
      }
    }
    shown.textContent = `${count} of ${all} rows`;
  }

  for (const [statement, some] of measured) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${some.length} measurements`;
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      button.setAttribute("aria-expanded", String(!isOpen(statement)));
      update();
    });
    statement.cells[1].classList.remove("empty");
    statement.cells[1].append(button);
  }

  for (const column of columns) {
    const label = document.createElement("label");
    const menu = document.createElement("select");
    const some = rows.filter((row) => !measured.has(row));
    const values = new Set(some.map((row) => column.value(row.cells[column.cell].textContent.trim())));
    menu.add(new Option("all", ""));
    for (const value of [...values].sort()) menu.add(new Option(value, value));
    menu.addEventListener("change", update);
    label.append(`${column.label} `, menu);
    form.append(label, " ");
    column.menu = menu;
  }
  form.append(shown);
  table.before(form);
  update();
});
