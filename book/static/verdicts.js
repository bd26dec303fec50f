// The filter above a table of verdicts. Without scripts the whole table stays visible and the controls stay hidden.
(function () {
  "use strict";
  const form = document.getElementById("verdict-filter");
  const rows = Array.from(document.querySelectorAll("#verdict-table tbody tr"));
  const shown = document.getElementById("verdict-shown");
  if (!form) return;

  // The address keeps the choice, so that a filtered table can be linked to.
  const asked = new URLSearchParams(window.location.search);
  if (form.dataset.source && !asked.toString()) asked.set("source", form.dataset.source);
  for (const name of ["source", "verdict", "chapter", "words"]) {
    const control = form.elements[name];
    const value = asked.get(name);
    if (value === null) continue;
    const known = control.tagName !== "SELECT" || Array.from(control.options).some((option) => option.value === value);
    if (known) control.value = value;
  }

  function apply() {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const fits =
        ["source", "verdict", "chapter"].every((name) => {
          const wanted = form.elements[name].value;
          return wanted === "" || row.dataset[name] === wanted;
        }) && words.every((word) => row.textContent.toLowerCase().includes(word));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = count + " of " + rows.length + " claims are shown.";
  }

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => window.setTimeout(apply, 0));
  apply();
})();
