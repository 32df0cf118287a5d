// ---- Pointer, keys, search ----------------------------------------------------

function setView(begin, end) {
  const least = Math.min(50, view.whole), length = Math.min(view.whole, Math.max(least, end - begin));
  const first = Math.min(Math.max(0, begin), view.whole - length);
  view.begin = first;
  view.end = first + length;
  redraw();
}
function zoom(factor, center = (view.begin + view.end) / 2) {
  setView(center - (center - view.begin) / factor, center + (view.end - center) / factor);
}
const pan = share => setView(view.begin + share * (view.end - view.begin), view.end + share * (view.end - view.begin));

function hideTip() { byId('tip').hidden = true; }
function showTip(event, ...content) {
  const tip = byId('tip');
  tip.replaceChildren(...content);
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const x = event.clientX + 14 + width > window.innerWidth ? event.clientX - width - 14 : event.clientX + 14;
  const y = event.clientY + 16 + height > window.innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  tip.style.left = Math.max(4, x) + 'px';
  tip.style.top = Math.max(4, y) + 'px';
}

// The span of the other source with the same command, preferably on that rank.
function counterpart(row, i) {
  const command = row.lane.timeline.command[i];
  if (command < 0 || !isPair) return null;
  for (let source = 0; source < data.timelines.length; ++source) {
    const other = data.timelines[source];
    if (source === row.source) continue;
    const rank = rankOfSource(source, row.rank);
    const at = other.command.findIndex((c, k) => c === command && other.rank[k] === rank);
    if (at >= 0) return {source, timeline: other, at};
  }
  return null;
}

function spanFacts(row, i) {
  const t = row.lane.timeline, rows = [];
  const add = (name, value) => rows.push([name, value]);
  add(strings[t.source], `${strings[t.channel[i]]}, rank ${t.rank[i]}` + (t.command[i] >= 0 ? `, command ${t.command[i]}` : ''));
  add('time', `${showTime(t.start[i])} to ${showTime(t.start[i] + t.dur[i])}`);
  add('takes', showTime(t.dur[i]));
  if (t.bytes[i]) add(t.kind[i] > 3 ? 'moves' : 'sends', showBytes(t.bytes[i]) + (t.dur[i] ? `, ${showBytes(t.bytes[i] / t.dur[i] * 1e9)}/s` : ''));
  if (t.exposed[i]) add('exposed', showTime(t.exposed[i]));
  if (t.reason[i]) add('because', strings[t.reason[i]]);
  const other = counterpart(row, i);
  if (other) add(strings[other.timeline.source], `${showTime(other.timeline.dur[other.at])}, at ${showTime(other.timeline.start[other.at])}`);
  return [element('b', {}, strings[t.name[i]]), pairs(rows)];
}

function hitEvent(event, box) {
  const rect = box.querySelector('canvas').getBoundingClientRect();
  return hit(event.clientX - rect.left, event.clientY - rect.top, box.clientWidth, box.scrollTop);
}

// Wheel and drag, the same on both charts. `click` gets a press that did not move.
function makeMovable(box, click) {
  let drag = null;
  const timeAt = event => scaleOf(box.clientWidth).time(event.clientX - box.getBoundingClientRect().left);
  box.addEventListener('wheel', event => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.008), timeAt(event));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / box.clientWidth);
    }
  }, {passive: false});
  box.addEventListener('pointerdown', event => {
    if (event.button === 0) drag = {x: event.clientX, begin: view.begin, end: view.end, moved: false};
  });
  box.addEventListener('pointermove', event => {
    if (!drag) return;
    const x = event.clientX - drag.x;
    if (!drag.moved && Math.abs(x) > 3) {
      drag.moved = true;
      box.setPointerCapture(event.pointerId);
      box.classList.add('drag');
      hideTip();
    }
    const shift = x / scaleOf(box.clientWidth).perNs;
    if (drag.moved) setView(drag.begin - shift, drag.end - shift);
  });
  const stop = event => {
    if (drag && !drag.moved && event.type === 'pointerup') click(event);
    drag = null;
    box.classList.remove('drag');
  };
  box.addEventListener('pointerup', stop);
  box.addEventListener('pointercancel', stop);
  box.addEventListener('pointerleave', hideTip);
  return () => drag?.moved;
}

function toggleRank(rank) {
  if (!lanes.folded.delete(rank)) lanes.folded.add(rank);
  layOut();
  redraw();
}

function initLanesInput() {
  const box = byId('lanes');
  if (!box) return;
  const detail = byId('detail');
  const isMoving = makeMovable(box, event => {
    const {row, at} = hitEvent(event, box);
    if (row?.kind === 'rank') toggleRank(row.rank);
    else if (at >= 0) detail.replaceChildren(...spanFacts(row, row.lane.order[at]));
    else detail.replaceChildren();
  });
  box.addEventListener('pointermove', event => {
    if (isMoving()) return;
    const {row, at} = hitEvent(event, box);
    box.classList.toggle('point', row?.kind === 'rank' || at >= 0);
    if (at >= 0) showTip(event, ...spanFacts(row, row.lane.order[at])); else hideTip();
  });
  box.addEventListener('dblclick', event => {
    const {row, at} = hitEvent(event, box);
    if (at < 0) return;
    const margin = (row.lane.end[at] - row.lane.start[at]) * 0.6 + 10;
    setView(row.lane.start[at] - margin, row.lane.end[at] + margin);
  });
  box.addEventListener('scroll', () => { hideTip(); redraw(); });
  box.addEventListener('keydown', event => {
    const act = {'+': () => zoom(1.5), '=': () => zoom(1.5), '-': () => zoom(1 / 1.5), '0': () => setView(0, view.whole),
      ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15)}[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}

function search(text) {
  const wanted = text.trim().toLowerCase(), out = byId('found');
  lanes.matches = null;
  out.textContent = '';
  if (wanted) {
    lanes.matches = strings.map(s => s.toLowerCase().includes(wanted));
    let count = 0;
    for (const timeline of data.timelines) for (const name of timeline.name) count += lanes.matches[name];
    out.textContent = `${count} span${count === 1 ? '' : 's'}`;
  }
  redraw();
}

function initToolbar() {
  if (!byId('lanes')) return;
  byId('zoom-in').onclick = () => zoom(2);
  byId('zoom-out').onclick = () => zoom(0.5);
  byId('zoom-fit').onclick = () => setView(0, view.whole);
  byId('expand').onclick = () => { lanes.folded.clear(); layOut(); redraw(); };
  byId('collapse').onclick = () => { lanes.shown.forEach(rank => lanes.folded.add(rank)); layOut(); redraw(); };
  byId('find').oninput = event => search(event.target.value);
  const ranks = byId('ranks');
  if (lanes.ranks.length < 2) {
    for (const id of ['ranks-label', 'expand', 'collapse']) byId(id).remove();
    return;
  }
  ranks.placeholder = lanes.shown.length < lanes.ranks.length ? `0-${lanes.shown.length - 1}` : 'all';
  byId('ranks-label').append(` of ${lanes.ranks.length}`);
  ranks.oninput = () => { lanes.shown = parseRanks(ranks.value); layOut(); redraw(); };
}

function initMemoryInput(memory) {
  const box = byId(memory.id + '-chart');
  if (!box || !memory.sources.length) return;
  const isMoving = makeMovable(box, () => {});
  box.addEventListener('pointermove', event => {
    if (isMoving() || !memory.columns) return;
    const {points, scale} = memory.columns, timeline = memory.of[memory.source];
    const at = Math.floor(event.clientX - box.getBoundingClientRect().left - scale.left);
    if (at >= 0 && at < points.length && points[at] >= 0) showTip(event, pairs(memoryPairs(timeline, points[at])));
    else hideTip();
  });
}

