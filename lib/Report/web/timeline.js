// ---- Drawing of the lanes ---------------------------------------------------

const taskName = kind => data.tasks[kind];
// Text on the colours of the lanes.
const inkOn = {compute: '#fff', all_reduce: '#1c1f23', all_gather: '#1c1f23', reduce_scatter: '#fff', to_device: '#1c1f23', to_host: '#1c1f23',
  disk_read: '#fff', disk_write: '#fff', host: '#fff'};
// What the last drawing did; the tests read it.
const drawn = {spans: 0, merged: 0, lanes: 0};

// A strip along the foot of a span for as long as compute stood still for it.
function drawExposed(context, x, bottom, width) {
  context.fillStyle = colour('panel');
  context.fillRect(x, bottom - 4, width, 1);
  context.fillStyle = colour('bad');
  context.fillRect(x, bottom - 3, width, 3);
}

// Spans narrower than a pixel become the share of each pixel that is busy.
class Coverage {
  constructor(scale) {
    this.scale = scale;
    this.busy = new Float32Array(Math.ceil(scale.right - scale.left) + 2);
    this.exposed = new Uint8Array(this.busy.length);
  }
  add(x0, x1, isExposed) {
    const at = Math.floor((x0 + x1) / 2 - this.scale.left);
    if (at < 0 || at >= this.busy.length) return;
    this.busy[at] += x1 - x0;
    if (isExposed) this.exposed[at] = 1;
  }
  draw(context, y, height, fill, dim) {
    const {busy, exposed} = this;
    let last = -9; // a span with nothing near it is drawn so that it is seen
    for (let i = 0; i < busy.length; ++i) {
      if (!busy[i]) continue;
      const isAlone = i - last > 4 && !busy.subarray(i + 1, i + 5).some(Boolean);
      last = i;
      context.globalAlpha = (isAlone ? 1 : 0.35 + 0.65 * Math.min(1, busy[i])) * dim;
      context.fillStyle = fill;
      context.fillRect(this.scale.left + i, y, isAlone ? 2 : 1, height);
      context.globalAlpha = 1;
      if (exposed[i]) drawExposed(context, this.scale.left + i, y + height, 1);
    }
  }
}
// One for each kind of span in a lane, and for those that a search leaves out.
class Coverages {
  constructor(scale) {
    this.scale = scale;
    this.all = new Map();
  }
  add(kind, isHidden, x0, x1, isExposed) {
    const key = kind * 2 + isHidden;
    if (!this.all.has(key)) this.all.set(key, new Coverage(this.scale));
    this.all.get(key).add(x0, x1, isExposed && !isHidden);
  }
  draw(context, y, height) {
    for (const [key, coverage] of this.all)
      coverage.draw(context, y, height, colour(taskName(key >> 1)), key & 1 ? 0.16 : 1);
  }
}

function drawSpan(context, scale, lane, k, y, height, isHidden, labels) {
  const {timeline, order, start, end} = lane, i = order[k], kind = taskName(timeline.kind[i]);
  const x0 = Math.max(scale.left, scale.x(start[k])), x1 = Math.min(scale.right, scale.x(end[k]));
  const left = Math.round(x0), wide = Math.max(1, Math.round(x1) - left), width = x1 - x0 > 3 ? wide - 1 : wide;
  context.globalAlpha = isHidden ? 0.16 : 1;
  context.fillStyle = colour(kind);
  context.fillRect(left, y, width, height);
  if (timeline.exposed[i] > 0 && !isHidden) {
    const from = Math.max(left, Math.round(scale.x(end[k] - timeline.exposed[i])));
    if (from <= left + width) drawExposed(context, Math.min(from, left + width - 1), y + height, Math.max(1, left + width - from));
  }
  if (labels && width > 28) {
    context.fillStyle = inkOn[kind];
    context.fillText(fit(context, strings[timeline.name[i]], width - 8), left + 4, y + height / 2);
  }
  context.globalAlpha = 1;
}

function drawSpans(context, scale, lane, y, height, labels) {
  const {timeline, order, start, end} = lane, narrow = new Coverages(scale);
  const [first, last] = spansBetween(lane, view.begin, view.end);
  context.font = font(11);
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  for (let k = first; k < last; ++k) {
    if (end[k] < view.begin) continue;
    const i = order[k], x0 = scale.x(start[k]), x1 = scale.x(end[k]);
    const isHidden = lanes.matches !== null && !lanes.matches[timeline.name[i]];
    ++drawn.spans;
    if (x1 - x0 >= 1.2) { drawSpan(context, scale, lane, k, y, height, isHidden, labels); continue; }
    ++drawn.merged;
    narrow.add(timeline.kind[i], isHidden, x0, Math.max(x1, x0 + 0.02), timeline.exposed[i] > 0);
  }
  narrow.draw(context, y, height);
}

// "computing 76 % predicted, 75 % measured" of the rank itself.
function busyShares(rank) {
  const shares = data.timelines.flatMap((timeline, source) => {
    const lane = computeLane(source, rank);
    if (!lane || !timeline.step) return [];
    let busy = 0;
    for (const i of lane.order) if (timeline.kind[i] === 0) busy += timeline.dur[i];
    return [Math.round(100 * busy / timeline.step) + ' %' + (isPair ? ' ' + strings[timeline.source] : '')];
  });
  return shares.length ? 'computing ' + shares.join(', ') : '';
}

function drawRank(context, scale, row, y) {
  const isFolded = lanes.folded.has(row.rank);
  context.fillStyle = colour('grid');
  context.fillRect(0, y, scale.right + 10, row.height - 3);
  context.fillStyle = colour('ink');
  context.font = '600 ' + font(12);
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText((isFolded ? '▸ ' : '▾ ') + 'rank ' + row.rank, 8, y + row.height / 2 - 1);
  // A folded rank is its compute alone, as measured where it was.
  const lane = data.timelines.map((_, source) => computeLane(source, row.rank)).filter(Boolean).at(-1);
  if (isFolded && lane) return drawSpans(context, scale, lane, y + 5, row.height - 13, false);
  context.font = font(11);
  context.fillStyle = colour('soft');
  context.fillText(busyShares(row.rank), scale.left, y + row.height / 2 - 1);
}

function drawLane(context, scale, row, y) {
  const kind = taskName(row.task), height = row.height - (isPair ? 2 : 1);
  context.fillStyle = colour(kind);
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  const source = strings[data.timelines[row.source].source], right = scale.left - 6, isNarrow = scale.left < 140;
  if (row.isFirst) {
    const x = isNarrow ? 7 : 22;
    if (!isNarrow) context.fillRect(8, y + height / 2 - 4, 9, 9);
    context.fillStyle = colour('ink');
    context.font = font(isNarrow ? 11 : 12);
    context.fillText(fit(context, strings[row.channel], right - x - (!isPair ? 0 : isNarrow ? 14 : 58)), x, y + height / 2 + 1);
  }
  if (isPair) {
    context.font = font(10);
    context.fillStyle = colour('soft');
    context.textAlign = 'right';
    context.fillText(isNarrow ? source[0] : source, right, y + height / 2 + 1);
  }
  context.fillStyle = colour('grid');
  context.fillRect(scale.left, y + height, scale.right - scale.left, 1);
  drawSpans(context, scale, row.lane, y, height, true);
  ++drawn.lanes;
}

// The steps' ends, by source.
function drawEnds(context, scale, top, bottom) {
  data.timelines.forEach((timeline, source) => {
    if (!timeline.step || timeline.step < view.begin || timeline.step > view.end) return;
    const x = Math.round(scale.x(timeline.step)) - 0.5;
    context.strokeStyle = colour('soft');
    context.setLineDash(source ? [] : [4, 3]);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    context.stroke();
    context.setLineDash([]);
  });
}

function drawTimeline() {
  const box = byId('lanes');
  if (!box) return;
  const width = box.clientWidth, canvas = box.querySelector('canvas');
  const limit = Math.round(window.innerHeight * 0.72), height = Math.min(lanes.height, limit);
  box.querySelector('.spacer').style.height = Math.max(0, lanes.height - height) + 'px';
  const context = prepare(canvas, width, height), scale = scaleOf(width), offset = box.scrollTop;
  Object.assign(drawn, {spans: 0, merged: 0, lanes: 0});
  drawTimeAxis(context, scale, axisHeight, height, 12);
  context.save();
  context.beginPath();
  context.rect(0, axisHeight, width, height - axisHeight);
  context.clip();
  for (const row of lanes.rows) {
    const y = row.top - offset;
    if (y > height || y + row.height < axisHeight) continue;
    (row.kind === 'rank' ? drawRank : drawLane)(context, scale, row, y);
  }
  drawEnds(context, scale, axisHeight, height);
  context.restore();
  for (const [name, value] of Object.entries(drawn)) box.dataset[name] = value;
}

// The row and, on a lane, the position of the span at a point of the canvas.
function hit(x, y, width, offset) {
  const row = y < axisHeight ? null : lanes.rows.find(r => y + offset >= r.top && y + offset < r.top + r.height);
  const scale = scaleOf(width);
  if (!row || row.kind === 'rank' || x < scale.left) return {row, at: -1};
  const slack = 2 / scale.perNs, time = scale.time(x), {lane} = row;
  const [first, last] = spansBetween(lane, time - slack, time + slack);
  let best = -1, distance = Infinity;
  for (let k = first; k < last; ++k) {
    const d = Math.max(0, lane.start[k] - time, time - lane.end[k]);
    if (d <= slack && (d < distance || d === 0)) { best = k; distance = d; }
  }
  return {row, at: best};
}

function timelineLegend() {
  const legend = byId('legend');
  if (!legend) return;
  const kinds = new Set();
  for (const timeline of data.timelines) for (const kind of timeline.kind) kinds.add(kind);
  for (const kind of [...kinds].sort()) legend.append(legendEntry(taskName(kind), taskName(kind)));
  legend.append(legendEntry('bad', 'compute stands still for it', 'key rule solid'));
  data.timelines.forEach((timeline, source) =>
    legend.append(legendEntry('soft', `end of the step, ${strings[timeline.source]}`, source ? 'key post' : 'key post dashed')));
  legend.append(element('span', {}, 'pale: narrower than a pixel, partly idle'));
}

