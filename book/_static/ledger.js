// Menus above the table of all claims: source, chapter and verdict. Without this script every row is shown.
document.addEventListener("DOMContentLoaded", () => {
  const table = document.querySelector("table.ledger");
  const rows = [...table.tBodies[0].rows];
  const columns = [
    { label: "Source", cell: 0, value: (text) => text.split(", ")[0] },
    { label: "Chapter", cell: 6, value: (text) => text || "no chapter" },
    { label: "Verdict", cell: 5, value: (text) => text.replace(/^depends on .*/, "depends on a convention") },
  ];
  const form = document.createElement("form");
  form.className = "ledger-filter";
  const shown = document.createElement("output");

  function update() {
    let count = 0;
    for (const row of rows) {
      const hidden = columns.some(
        ({ menu, cell, value }) => menu.value && value(row.cells[cell].textContent.trim()) !== menu.value,
      );
      row.hidden = hidden;
      count += !hidden;
    }
    shown.textContent = `${count} of ${rows.length} rows`;
  }

  for (const column of columns) {
    const label = document.createElement("label");
    const menu = document.createElement("select");
    const values = new Set(rows.map((row) => column.value(row.cells[column.cell].textContent.trim())));
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
