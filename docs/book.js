// Gives each cell the heading of its column, which book.css shows on a phone.
for (const table of document.querySelectorAll(".content table")) {
  const headings = [...table.querySelectorAll("thead th")].map((heading) => heading.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, column) => cell.setAttribute("data-heading", headings[column] ?? ""));
  }
}
