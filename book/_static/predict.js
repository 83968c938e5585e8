/* "Predict first": the choices become buttons, and the answer opens once one of them is pressed. Until then the pictures
   and numbers below the question, up to the next question or section, are covered, since they give the answer away; a
   button shows them to those who do not want to choose. The choice is kept in this browser only. Without this script a
   question is a list and a fold, and nothing is covered (_ext/plain_markdown.py). */
(function () {
  const KEY = "affscore-predict-";

  function kept(label) {
    try {
      return localStorage.getItem(KEY + label);
    } catch {
      return null; // a browser that keeps nothing
    }
  }

  function keep(label, value) {
    try {
      if (value === null) localStorage.removeItem(KEY + label);
      else localStorage.setItem(KEY + label, value);
    } catch {
      /* as above */
    }
  }

  /** The cells below a question, up to the next question or section. */
  function cellsBelow(box) {
    const found = [];
    for (let next = box.nextElementSibling; next && !next.matches(".predict, section"); next = next.nextElementSibling) {
      if (next.matches(".cell")) found.push(next);
    }
    return found;
  }

  /** Cover what the cells below a question have printed and drawn. Returns the function that covers and uncovers it. */
  function coverBelow(box, uncovered) {
    const outputs = ":scope > .numbered-figure, :scope > .cell_output";
    const cells = cellsBelow(box);
    const covers = cells.flatMap((cell) => [...cell.querySelectorAll(outputs)]).map((output) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "predict-show";
      button.textContent = "Covered until you choose above. Show it now";
      button.addEventListener("click", () => {
        uncovered();
        output.tabIndex = -1;
        output.focus({ preventScroll: true });
      });
      output.before(button);
      return { output, button };
    });

    /** A link to what is covered shows it. */
    function follow() {
      const wanted = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (wanted && covers.some(({ output }) => output.contains(wanted))) uncovered();
    }

    for (const cell of cells) cell.addEventListener("affscore-shown", uncovered); // the reader runs it (run_cells.js)
    addEventListener("hashchange", follow);
    addEventListener("beforeprint", uncovered);
    return {
      follow,
      cover(closed) {
        for (const { output, button } of covers) {
          output.classList.toggle("predict-covered", closed);
          button.hidden = !closed;
        }
      },
    };
  }

  function prepare(box) {
    const label = box.dataset.predict;
    const right = Number(box.dataset.right);
    const answer = box.querySelector(".predict-answer");
    const items = [...box.querySelectorAll(":scope > ul > li")];
    const said = document.createElement("p");
    said.className = "predict-said";
    said.setAttribute("role", "status");
    const again = document.createElement("button");
    again.type = "button";
    again.className = "predict-again";
    again.textContent = "Choose again";

    const buttons = items.map((item, place) => {
      const button = document.createElement("button");
      button.type = "button";
      const text = item.querySelector(":scope > p") || item;
      button.append(...text.childNodes);
      text.append(button);
      button.addEventListener("click", () => choose(place));
      return button;
    });

    function choose(place) {
      buttons.forEach((button, at) => {
        button.setAttribute("aria-pressed", String(at === place));
        button.toggleAttribute("data-right", place !== null && at === right);
      });
      answer.hidden = place === null;
      answer.open = place !== null;
      again.hidden = place === null;
      below.cover(place === null);
      said.textContent = place === null ? "" : place === right ? "As you chose:" : "Not what you chose:";
      keep(label, place === null ? null : String(place));
    }

    const below = coverBelow(box, () => below.cover(false));
    again.addEventListener("click", () => {
      choose(null);
      buttons[0].focus();
    });
    answer.before(said);
    answer.after(again);
    box.classList.add("predict-ready");
    const before = Number(kept(label) ?? NaN);
    choose(Number.isInteger(before) && before < buttons.length ? before : null);
    below.follow();
  }

  document.querySelectorAll(".predict").forEach(prepare);
  addEventListener("beforeprint", () => {
    for (const answer of document.querySelectorAll(".predict-answer")) {
      answer.hidden = false;
      answer.open = true;
    }
  });
})();
