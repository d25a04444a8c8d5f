// A table: rows that can be sorted, searched and copied.

// Laying out the rows takes most of the time that a brush takes.
const FEW_ROWS = 60;

// `columns`: a title, the value of a row, and optionally how it is shown (`show`), or what shows it (`element`). What is copied is the
// value itself `times` a number, in a `unit` that its title then has. `key` names a row: the focus stays on it when the rows are others.
class Table {
  constructor(box, palette) {
    Object.assign(this, { box, palette, showsAll: false, sorted: new Map() });
  }

  show(content) {
    const { id, columns, rows, order, empty, note, search, onRow, isChosen, key } = content;
    if (this.id !== id) { this.id = id; this.showsAll = false; }
    const { column, descending } = this.sorted.get(id) ?? order, value = columns[column].value;
    const shown = search ? rows.filter(row => columns.some(({ isText, value }) => isText && search(String(value(row))))) : [...rows];
    shown.sort((a, b) => {
      const [one, other] = [value(a) ?? -Infinity, value(b) ?? -Infinity];
      return (one < other ? -1 : one > other ? 1 : 0) * (descending ? -1 : 1);
    });
    this.columns = columns;
    this.rows = shown;
    const focused = this.focused();
    this.box.textContent = "";
    if (!shown.length) {
      const none = this.box.appendChild(document.createElement("p"));
      none.className = "empty";
      none.textContent = rows.length ? "Nothing in this table has what is searched." : empty;
      return;
    }
    if (note) {
      const line = this.box.appendChild(document.createElement("p"));
      line.className = "note";
      line.textContent = note;
    }
    const table = this.box.appendChild(document.createElement("table")), head = table.createTHead().insertRow(), body = table.createTBody();
    columns.forEach((each, index) => {
      const cell = head.appendChild(document.createElement("th")), button = cell.appendChild(document.createElement("button"));
      cell.className = each.isText ? "text" : "number";
      button.textContent = each.title + (index === column ? (descending ? " ▾" : " ▴") : "");
      if (each.hint) button.title = each.hint;
      cell.setAttribute("aria-sort", index === column ? (descending ? "descending" : "ascending") : "none");
      button.addEventListener("click", () => {
        this.sorted.set(id, { column: index, descending: index === column ? !descending : !each.isText });
        this.show(content);
      });
    });
    for (const row of this.showsAll ? shown : shown.slice(0, FEW_ROWS)) {
      const line = body.insertRow();
      for (const each of columns) this.cell(line.insertCell(), each, row);
      if (key) line.dataset.key = key(row);
      if (onRow) {
        line.tabIndex = 0;
        if (isChosen) line.setAttribute("aria-selected", isChosen(row));
        line.addEventListener("click", () => { if (!String(getSelection())) onRow(row); });
        line.addEventListener("keydown", event => { if (event.key === "Enter" && event.target === line) onRow(row); });
      }
    }
    if (shown.length > FEW_ROWS && !this.showsAll) {
      const more = this.box.appendChild(document.createElement("button"));
      more.textContent = `Show all ${shown.length} rows`;
      more.addEventListener("click", () => { this.showsAll = true; this.show(content); });
    }
    this.focus(focused);
  }

  // What has the focus: a title, a row, or something within a row.
  focused() {
    const element = document.activeElement, line = this.box.contains(element) && element.closest("tr");
    if (!line) return null;
    return { key: line.dataset.key, place: [...line.querySelectorAll("a, button")].indexOf(element) };
  }

  focus(focused) {
    if (!focused) return;
    const { key, place } = focused, table = this.box.querySelector("table");
    const line = key === undefined ? table.tHead.rows[0] : [...table.tBodies[0].rows].find(line => line.dataset.key === key);
    (place < 0 ? line : line?.querySelectorAll("a, button")[place])?.focus({ preventScroll: true });
  }

  cell(cell, { title, isText, value, show, element, kind }, row) {
    const raw = value(row);
    cell.className = isText ? "text" : "number";
    cell.dataset.title = title;
    if (!isText && raw !== null) cell.dataset.value = raw;
    if (kind) {
      const mark = cell.appendChild(document.createElement("i"));
      mark.className = "kind";
      mark.style.background = `var(--${kind(row)})`;
    }
    const content = element?.(row);
    cell.append(content ?? (raw === null || raw === undefined ? "" : show ? show(raw, row) : String(raw)));
  }

  text() { return tableText(this.columns, this.rows); }
}

// A table as text, with tabs between cells.
function tableText(columns, rows) {
  const line = cells => cells.map(cell => String(cell ?? "").replace(/[\t\n]/g, " ")).join("\t") + "\n";
  const exactly = ({ value, times }, row) => { const raw = value(row); return times && raw !== null && raw !== undefined ? Math.round(raw * times) : raw; };
  return line(columns.map(({ title, unit }) => unit ? `${title} (${unit})` : title)) + rows.map(row => line(columns.map(column => exactly(column, row)))).join("");
}

