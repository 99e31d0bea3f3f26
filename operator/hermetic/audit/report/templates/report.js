"use strict";
// Filters, searches, and unfolds everything before printing. The page is whole without it.
(() => {
  const tools = document.querySelector(".tools");
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const none = document.getElementById("none");
  const findings = Array.from(document.querySelectorAll(".finding"), (element) => ({
    element,
    words: element.textContent.toLowerCase(),
    verdict: element.dataset.verdict,
    severity: element.dataset.severity,
  }));
  const containers = Array.from(document.querySelectorAll(".family, .group"));

  const ticked = (name) =>
    new Set(Array.from(tools.querySelectorAll(`input[name=${name}]:checked`), (box) => box.value));

  function filter() {
    const verdicts = ticked("verdict");
    const severities = ticked("severity");
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const finding of findings) {
      const fits =
        verdicts.has(finding.verdict) &&
        severities.has(finding.severity) &&
        wanted.every((word) => finding.words.includes(word));
      finding.element.hidden = !fits;
      count += fits ? 1 : 0;
    }
    for (const container of containers) {
      container.hidden = !container.querySelector(".finding:not([hidden])");
      if (wanted.length && container.matches("details")) container.open = true;
    }
    shown.textContent = `${count} of ${findings.length} findings shown`;
    none.hidden = count > 0 || findings.length === 0;
  }

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    for (const details of folded) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input")) return;
    event.preventDefault();
    search.focus();
  });
  tools.addEventListener("input", filter);
  tools.hidden = findings.length === 0;
  filter();
})();
