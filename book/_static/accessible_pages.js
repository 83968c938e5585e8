// Code and formulas that are wider than the page scroll by keyboard too: they are stops of the Tab key, the others not.
const stops = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const box of document.querySelectorAll("pre, div.math mjx-container")) stops.observe(box);
});
