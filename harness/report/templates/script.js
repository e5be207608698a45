"use strict";
/* Conveniences only: the page says everything without them. */
for (const button of document.querySelectorAll("button[data-copies]")) {
  const code = button.parentElement.querySelector("code");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(code);
    }
  });
}
for (const button of document.querySelectorAll("button[data-opens]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const all = [...document.querySelectorAll(button.dataset.opens)];
    const open = all.some((each) => !each.open);
    for (const each of all) each.open = open;
    button.textContent = open ? "close all" : "open all";
  });
}
for (const strip of document.querySelectorAll(".strip")) {
  const cells = [...strip.querySelectorAll(".cell")];
  strip.addEventListener("keydown", (event) => {
    const at = cells.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: cells.length - 1 }[event.key];
    if (at < 0 || !cells[to]) return;
    event.preventDefault();
    cells[at].tabIndex = -1;
    cells[to].tabIndex = 0;
    cells[to].focus();
  });
}
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
const filter = document.querySelector(".filter");
if (filter) {
  const words = filter.querySelector("input[type=search]");
  const outcomes = [...filter.querySelectorAll("input[type=checkbox]")];
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = new Set(outcomes.filter((each) => each.checked).map((each) => each.value));
    for (const row of document.querySelectorAll("tr[data-outcome]")) {
      const text = `${row.textContent} ${row.dataset.words}`.toLowerCase();
      row.hidden = !shown.has(row.dataset.outcome) || !wanted.every((word) => text.includes(word));
    }
  };
  filter.hidden = false;
  filter.addEventListener("input", apply);
  apply();
}
