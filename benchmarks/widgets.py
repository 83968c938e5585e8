"""Times the moving pictures of the built book from the input to the redrawn picture, compared with one display frame.

    python benchmarks/widgets.py                    # after `make book`; needs Chromium, as the browser tests do
    python benchmarks/widgets.py --page redshift --steps 200

The script moves each control of each widget step by step in headless Chromium. It measures in the page the time from
the input event until the picture is redrawn and laid out. The peer is a frame at 60 Hz: a ratio below 1 means that the
picture follows the reader's hand.
"""

import argparse
import statistics
from pathlib import Path

from playwright.sync_api import sync_playwright

from affscore_book.course.pdf import find_chromium

FRAME_MS = 1000 / 60
SITE = Path(__file__).parents[1] / "_build" / "html" / "book"
MEASURE = """(control, steps) => {
  const figure = control.closest(".affscore-figure");
  const first = control.value;
  const step = {
    range: i => i % 20 < 10 ? control.stepUp() : control.stepDown(),
    textarea: i => { control.value = i % 2 ? first : first + " 1"; },
  }[control.type] ?? (i => { control.selectedIndex = i % control.length; });
  const times = [];
  for (let i = 0; i < steps; i++) {
    step(i);
    const before = figure.dataset.state;
    const start = performance.now();
    control.dispatchEvent(new Event(control.type === "select-one" ? "change" : "input", { bubbles: true }));
    figure.getBoundingClientRect();
    if (figure.dataset.state !== before) times.push(performance.now() - start);
  }
  return times;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Milliseconds from input to picture, compared with one frame.")
    parser.add_argument("--page", default="*", help="one chapter (default: all)")
    parser.add_argument("--steps", type=int, default=60, help="steps of each control (default: 60)")
    options = parser.parse_args()
    pages = [page for page in sorted(SITE.glob(f"{options.page}.html")) if "affscore-widget" in page.read_text()]
    if not pages:
        raise SystemExit(f"There is no page with a widget in {SITE}; `make book` builds them.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        print(f"{'widget':<24} {'control':<40} {'median':>9} {'largest':>9} {'median / frame':>15}")
        for page in pages:
            tab = browser.new_page()
            tab.goto(page.resolve().as_uri())
            tab.evaluate("for (const button of document.querySelectorAll('.predict-bar button')) button.click()")
            tab.wait_for_selector(".affscore-figure")
            for control in tab.locator(".affscore-figure :is(input[type=range], select, textarea)").all():
                times = control.evaluate(MEASURE, options.steps)
                median = statistics.median(times)
                name = control.evaluate("c => c.closest('.affscore-figure').dataset.widget")
                print(
                    f"{name:<24} {control.get_attribute('aria-label'):<40} {median:6.2f} ms {max(times):6.1f} ms "
                    f"{median / FRAME_MS:15.2f}"
                )
            tab.close()
        browser.close()


if __name__ == "__main__":
    main()
