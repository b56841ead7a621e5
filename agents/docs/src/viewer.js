"use strict";
// Searches the pages of this file. It reads text and sets `hidden` and `textContent`; it writes no markup and loads nothing.
(() => {
  const box = document.getElementById("search");
  const note = document.getElementById("search-note");
  const sections = Array.from(document.querySelectorAll("main > section"));
  const texts = sections.map((section) => section.textContent.toLowerCase());
  const items = new Map(sections.map((section) => [section.id, document.querySelector(`nav li[data-page="${section.id}"]`)]));
  let places = [];
  let place = -1;

  const mark = (words) => {
    places = [];
    place = -1;
    for (const section of sections) {
      if (section.hidden) continue;
      const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node && places.length !== 1000; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        for (const word of words) {
          const at = text.indexOf(word);
          if (at === -1) continue;
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, Math.min(at + word.length, node.length));
          places.push(range);
        }
      }
    }
    if (window.Highlight && CSS.highlights) CSS.highlights.set("search", new Highlight(...places));
  };

  const search = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    sections.forEach((section, at) => {
      const matches = words.every((word) => texts[at].includes(word));
      section.hidden = !matches;
      const item = items.get(section.id);
      if (item) item.hidden = !matches;
      if (matches) found += 1;
    });
    mark(words);
    note.textContent = words.length ? `found in ${found} of ${sections.length} pages; Enter goes to the next place` : "";
  };

  box.hidden = false;
  box.addEventListener("input", search);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      box.value = "";
      search();
    }
    if (event.key !== "Enter" || places.length === 0) return;
    place = (place + 1) % places.length;
    const parent = places[place].startContainer.parentElement;
    for (let outer = parent; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
    parent.scrollIntoView({ block: "center" });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === box) return;
    event.preventDefault();
    box.focus();
  });
})();
