"use strict";
const find = (id) => document.getElementById(id);
const fold = (isOpen) => {
  for (const each of document.querySelectorAll("details")) each.open = isOpen;
};
const search = () => {
  const words = find("search").value.toLowerCase();
  const holds = (each) => each.textContent.toLowerCase().includes(words);
  let found = 0;
  for (const each of document.querySelectorAll("main > article")) {
    each.hidden = words !== "" && !holds(each);
    if (words === "" || each.hidden) continue;
    found += 1;
    for (const inner of each.querySelectorAll("details")) inner.open = holds(inner);
  }
  find("found").textContent = words === "" ? "" : `${found} messages`;
};
find("open").addEventListener("click", () => fold(true));
find("close").addEventListener("click", () => fold(false));
find("search").addEventListener("input", search);
find("tools").hidden = false;
