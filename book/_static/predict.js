/* "Predict first": the choices are buttons, one of which opens the answer. Until then all that follows, up to the next
   question or section, is covered, unless a reader asks for it. What was pressed is kept in this browser only. Without
   this script a question is a list and a fold (_ext/plain_markdown.py). */
(function () {
  const KEY = "affscore-predict-";
  const ALL = "all"; // no question has this label
  const covers = []; // of all questions of the page

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

  function coverAfter(box) {
    const covered = [];
    for (let next = box.nextElementSibling; next && !next.matches(".predict, section"); next = next.nextElementSibling) {
      // The last paragraph may be empty, the place to which links to the next section lead.
      if (next.textContent.trim()) covered.push(next);
    }
    const bar = document.createElement("p");
    bar.className = "predict-bar";
    bar.textContent = "What follows is covered until you choose. ";
    const buttons = ["Show it", "Show all, on every page"].map((text) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      bar.append(button);
      return button;
    });
    box.after(bar);

    function cover(closed) {
      for (const part of covered) part.classList.toggle("predict-covered", closed);
      bar.hidden = !closed;
    }

    /** Show it, and let the keyboard go on there. */
    function show() {
      cover(false);
      covered[0].tabIndex = -1;
      covered[0].focus({ preventScroll: true });
    }

    buttons[0].addEventListener("click", show);
    buttons[1].addEventListener("click", () => {
      keep(ALL, "shown");
      for (const each of covers) each(false);
      show();
    });
    covers.push(cover);

    /** A link to what is covered shows it. */
    function follow() {
      const wanted = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!bar.hidden && wanted && covered.some((part) => part.contains(wanted))) {
        cover(false);
        wanted.scrollIntoView();
      }
    }
    addEventListener("hashchange", follow);
    return { cover, follow };
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
      after.cover(place === null && kept(ALL) === null);
      said.textContent = place === null ? "" : place === right ? "As you chose:" : "Not what you chose:";
      keep(label, place === null ? null : String(place));
    }

    const after = coverAfter(box);
    again.addEventListener("click", () => {
      choose(null);
      buttons[0].focus();
    });
    answer.before(said);
    answer.after(again);
    box.classList.add("predict-ready");
    const before = Number(kept(label) ?? NaN);
    choose(Number.isInteger(before) && before < buttons.length ? before : null);
    after.follow();
  }

  document.querySelectorAll(".predict").forEach(prepare);
  addEventListener("beforeprint", () => {
    for (const answer of document.querySelectorAll(".predict-answer")) {
      answer.hidden = false;
      answer.open = true;
    }
  });
})();
