"use strict";
// Tables sort by the column whose head is pressed: up, down, as they came.
const collator = new Intl.Collator(undefined, { numeric: true });

function compare(a, b, index) {
  const [p, q] = [a, b].map((row) => row.cells[index]);
  const [x, y] = [p, q].map((cell) => cell.dataset.key);
  if (x !== undefined && y !== undefined) return Number(x) - Number(y);
  return collator.compare(p.textContent, q.textContent);
}

function empty(row, index) {
  const cell = row.cells[index];
  return cell.dataset.key === undefined && cell.textContent.trim() === "";
}

function sort(head) {
  const table = head.closest("table");
  const body = table.tBodies[0];
  table.original ??= [...body.rows];
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  const way = next[head.getAttribute("aria-sort") ?? "none"];
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  const index = head.cellIndex;
  let rows = [...table.original];
  if (way !== "none") {
    head.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    const there = rows.filter((row) => !empty(row, index));
    there.sort((a, b) => sign * compare(a, b, index));
    rows = [...there, ...rows.filter((row) => empty(row, index))];
  }
  body.append(...rows);
}

for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => sort(button.parentElement));
}

// Paper has nothing to click on.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});

// In the frame of a notebook, a link to a section would lead to the notebook itself.
if (location.href === "about:srcdoc") {
  for (const link of document.querySelectorAll("nav a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      document.querySelector(link.hash).scrollIntoView();
    });
  }
}
