// ---- Tables -------------------------------------------------------------------

function cellValue(row, column) {
  const cell = row.cells[column];
  return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
}
function sortTable(table, column, descending) {
  const body = table.tBodies[0], sign = descending ? -1 : 1;
  const keyed = [...body.rows].map(row => [cellValue(row, column), row]);
  keyed.sort(([a], [b]) => sign * (typeof a === 'number' ? a - b : a.localeCompare(b, 'en', {numeric: true})));
  body.append(...keyed.map(pair => pair[1]));
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    if (i === column) head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
  });
}
// A click sorts numbers largest first, names by the alphabet; another turns it.
function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = element('button', {type: 'button'}, head.textContent);
    head.replaceChildren(button);
    button.onclick = () => {
      const now = head.getAttribute('aria-sort');
      sortTable(table, column, now ? now === 'ascending' : head.classList.contains('n'));
    };
  });
}
function makeFilter(input) {
  const section = input.closest('section'), rows = [...section.querySelector('tbody').rows];
  const texts = rows.map(row => row.textContent.toLowerCase()), out = section.querySelector('output');
  input.oninput = () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !texts[i].includes(wanted);
      shown += !row.hidden;
    });
    out.textContent = wanted ? `${shown} of ${rows.length} rows` : '';
  };
}
function initTables() {
  document.querySelectorAll('table').forEach(makeSortable);
  document.querySelectorAll('input.filter').forEach(makeFilter);
}

