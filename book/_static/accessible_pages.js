// Code and formulas that are wider than the page scroll by keyboard too: they are stops of the Tab key, the others not.
const stops = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
// Paper is white, also for who reads by night.
const root = document.documentElement;
let theme;
addEventListener("beforeprint", () => {
  theme = root.dataset.theme;
  root.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  root.dataset.theme = theme;
});

addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const box of document.querySelectorAll("pre, div.math mjx-container")) stops.observe(box);
});
