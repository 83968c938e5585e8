/* "Predict first": the choices become buttons, and the answer opens once one of them is pressed. The choice is kept in
   this browser only. Without this script a question is a list and a fold (_ext/plain_markdown.py). */
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
      said.textContent = place === null ? "" : place === right ? "As you chose:" : "Not what you chose:";
      keep(label, place === null ? null : String(place));
    }

    again.addEventListener("click", () => {
      choose(null);
      buttons[0].focus();
    });
    answer.before(said);
    answer.after(again);
    box.classList.add("predict-ready");
    const before = Number(kept(label) ?? NaN);
    choose(Number.isInteger(before) && before < buttons.length ? before : null);
  }

  document.querySelectorAll(".predict").forEach(prepare);
  addEventListener("beforeprint", () => {
    for (const answer of document.querySelectorAll(".predict-answer")) {
      answer.hidden = false;
      answer.open = true;
    }
  });
})();
