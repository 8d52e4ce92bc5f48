// Sorts a table by the column whose title is clicked; undefined values stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const titles = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  titles.forEach((title, column) => {
    const button = document.createElement("span");
    button.role = "button";
    button.tabIndex = 0;
    button.title = "sort by this column";
    button.append(...title.childNodes);
    title.append(button);
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    });
    button.addEventListener("click", () => {
      const rising = title.getAttribute("aria-sort") !== "ascending";
      titles.forEach((other) => other.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const key = (row) => {
        const cell = row.cells[column];
        if (cell.dataset.value === undefined) return cell.textContent;
        return cell.dataset.value === "" ? null : Number(cell.dataset.value);
      };
      const order = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return rising ? order(a, b) : order(b, a);
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
