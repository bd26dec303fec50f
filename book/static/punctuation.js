// A formula in a line keeps the punctuation that follows it (and an opening bracket before it): without this a browser
// may break the line between the two. Runs before the formulas are set; without scripts only such breaks come back.
(function () {
  "use strict";
  function keep() {
    for (const formula of document.querySelectorAll("span.math")) {
      const after = formula.nextSibling;
      const before = formula.previousSibling;
      const closing = after && after.nodeType === Node.TEXT_NODE ? /^[.,;:!?)\]’”°%–-]+/.exec(after.data) : null;
      const opening = before && before.nodeType === Node.TEXT_NODE ? /[(\[“‘]+$/.exec(before.data) : null;
      if (!closing && !opening) continue;
      const kept = document.createElement("span");
      kept.className = "kept";
      formula.replaceWith(kept);
      if (opening) {
        kept.append(opening[0]);
        before.data = before.data.slice(0, opening.index);
      }
      kept.append(formula);
      if (closing) {
        kept.append(closing[0]);
        after.data = after.data.slice(closing[0].length);
      }
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", keep);
  else keep();
})();
