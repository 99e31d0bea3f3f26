"use strict";
// Filters with their state in the address, searches, copies commands, unfolds everything before printing.
// The page is whole without it.
(() => {
  const tools = document.querySelector(".tools");
  const search = document.getElementById("search");
  const family = document.getElementById("family");
  const resource = document.getElementById("resource");
  const shown = document.getElementById("shown");
  const none = document.getElementById("none");
  const findings = Array.from(document.querySelectorAll(".finding"), (element) => ({
    element,
    words: [element.textContent, element.dataset.check, element.closest(".group").querySelector("h3").textContent]
      .join(" ").toLowerCase(),
    data: element.dataset,
  }));
  const checks = Array.from(document.querySelectorAll(".check"));
  const containers = Array.from(document.querySelectorAll("#findings .family, .group"));
  const boxes = Array.from(tools.querySelectorAll("input[type=checkbox]"));

  const ticked = (name) => new Set(boxes.filter((box) => box.name === name && box.checked).map((box) => box.value));

  function filter() {
    const verdicts = ticked("verdict");
    const severities = ticked("severity");
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const about = resource.value.trim().toLowerCase();
    let count = 0;
    for (const { element, words, data } of findings) {
      const fits =
        verdicts.has(data.verdict) &&
        severities.has(data.severity) &&
        (!family.value || data.family === family.value) &&
        data.resource.toLowerCase().includes(about) &&
        wanted.every((word) => words.includes(word));
      element.hidden = !fits;
      count += fits ? 1 : 0;
    }
    const narrowed = wanted.length || about || family.value;
    for (const container of [...checks, ...containers]) {
      container.hidden = !container.querySelector(".finding:not([hidden])");
      if (narrowed && container.matches(".family")) container.open = true;
    }
    shown.textContent = `${count} of ${findings.length} findings shown`;
    none.hidden = count > 0 || findings.length === 0;
  }

  // the choice is kept in the address after "#~", so that a link shows the same; "#name" remains a link to a place
  function remember() {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    if (family.value) state.set("family", family.value);
    if (resource.value) state.set("resource", resource.value);
    for (const name of ["verdict", "severity"]) {
      const off = boxes.filter((box) => box.name === name && !box.checked).map((box) => box.value);
      if (off.length) state.set(`no-${name}`, off.join(","));
    }
    const text = state.toString();
    if (text || location.hash.startsWith("#~")) history.replaceState(null, "", text ? `#~${text}` : "#~");
  }

  function recall() {
    if (!location.hash.startsWith("#~")) return;
    const state = new URLSearchParams(location.hash.slice(2));
    search.value = state.get("q") || "";
    family.value = state.get("family") || "";
    if (family.selectedIndex < 0) family.value = "";
    resource.value = state.get("resource") || "";
    for (const box of boxes) {
      box.checked = !(state.get(`no-${box.name}`) || "").split(",").includes(box.value);
    }
  }

  // a link into what is folded or filtered away must lead somewhere
  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const folded = target && target.closest("details");
    if (folded && !folded.open) {
      folded.open = true;
      target.scrollIntoView();
    }
  }

  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = document.createElement("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      return done;
    }
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await copied(button.previousElementSibling.textContent);
      button.textContent = done ? "Copied" : "Select and copy";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  }

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    for (const details of folded) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
  window.addEventListener("hashchange", () => {
    recall();
    filter();
    reveal();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    search.focus();
  });
  tools.addEventListener("input", () => {
    filter();
    remember();
  });
  tools.hidden = findings.length === 0;
  recall();
  filter();
  reveal();
})();
