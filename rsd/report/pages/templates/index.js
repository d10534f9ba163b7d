"use strict";
// Sorts tables by the column whose heading is pressed, and filters the list of runs.

function value(body, column) {
  const text = body.rows[0].cells[column]?.textContent.trim() ?? "";
  const number = parseFloat(text.replace("−", "-").replaceAll(",", ""));
  return { text, number: /^[+\-−\d.]/.test(text) ? number : NaN };
}

function before(a, b) {
  if (a.text === "" || b.text === "") return (a.text === "") - (b.text === ""); // what is empty comes last
  if (isNaN(a.number) || isNaN(b.number)) return a.text.localeCompare(b.text);
  return a.number - b.number;
}

function sort(heading) {
  const table = heading.closest("table");
  const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  const rows = [...table.tBodies].map((body) => [value(body, heading.cellIndex), body]);
  const sign = order === "ascending" ? 1 : -1;
  rows.sort(([a], [b]) => (a.text === "" || b.text === "" ? 1 : sign) * before(a, b));
  table.append(...rows.map(([, body]) => body));
}

function filter(words) {
  for (const body of document.querySelector("#runs table").tBodies) {
    const text = body.textContent.toLowerCase();
    body.hidden = !words.every((word) => text.includes(word));
  }
}

for (const heading of document.querySelectorAll("table.sorts th")) {
  heading.addEventListener("click", () => sort(heading));
}
const find = document.getElementById("find");
find.addEventListener("input", () => filter(find.value.toLowerCase().split(/\s+/)));
