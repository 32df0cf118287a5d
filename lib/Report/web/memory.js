// ---- Memory over time -------------------------------------------------------

// A chart for each memory space that the step uses; `of` is by source what a
// timeline says of the space.
const memories = ['memory', 'memory-host', 'memory-disk'].map((id, space) =>
  ({id, of: data.timelines.map(t => space ? t.spaces[space - 1] : t), source: 0, sources: [], columns: null}));

function totalAt(timeline, point) {
  let total = 0;
  for (const kind of timeline.memory) total += kind[point];
  return total;
}
function peakOf(timeline) {
  let peak = 0, at = 0;
  for (let i = 0; i < timeline.time.length; ++i) {
    const total = totalAt(timeline, i);
    if (total > peak) { peak = total; at = i; }
  }
  return {bytes: peak, at};
}

// For each pixel column the point with most bytes in it, so that no peak is lost
// however many points a pixel has. -1 before the first point.
function columnPoints(timeline, scale) {
  const count = Math.max(1, Math.ceil(scale.right - scale.left)), points = new Int32Array(count);
  let next = 0;
  const n = timeline.time.length;
  for (let c = 0; c < count; ++c) {
    const from = scale.time(scale.left + c), to = scale.time(scale.left + c + 1);
    while (next < n && timeline.time[next] <= from) ++next;
    let best = next - 1, most = best < 0 ? -1 : timeline.totals[best];
    for (; next < n && timeline.time[next] < to; ++next)
      if (timeline.totals[next] > most) { best = next; most = timeline.totals[next]; }
    points[c] = best;
  }
  return points;
}

function memoryScale(memory, timeline, height) {
  let most = Math.max(1, timeline.planned, ...memory.sources.map(s => memory.of[s].peak.bytes));
  const budgetFits = timeline.budget >= 0 && timeline.budget <= 3 * most;
  if (budgetFits) most = Math.max(most, timeline.budget);
  const top = 24, bottom = height - axisHeight;
  return {top, bottom, most: most * 1.08, budgetFits, y: bytes => bottom - (bottom - top) * bytes / (most * 1.08)};
}

function drawByteAxis(context, scale, ys) {
  const unit = 1024 ** Math.min(4, Math.floor(Math.log2(ys.most) / 10)), step = tickStep(ys.most / unit, 4, [1, 2, 2.5, 5, 10]) * unit;
  context.font = font(11);
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  for (let bytes = 0; bytes <= ys.most; bytes += step) {
    const y = Math.round(ys.y(bytes)) + 0.5;
    context.fillStyle = colour('grid');
    context.fillRect(scale.left, y - 0.5, scale.right - scale.left, 1);
    context.fillStyle = colour('soft');
    context.fillText(+(bytes / unit).toPrecision(4) + ' ' + byteUnits[Math.round(Math.log2(unit) / 10)], scale.left - 6, y);
  }
}

// Areas from the bottom up, one step per column.
function drawStack(context, scale, ys, timeline, points) {
  const base = new Float64Array(points.length);
  timeline.memory.forEach((bytes, kind) => {
    if (!timeline.used[kind]) return;
    context.fillStyle = colour(data.kinds[kind]);
    context.beginPath();
    for (let c = 0; c < points.length; ++c) {
      const value = points[c] < 0 ? 0 : bytes[points[c]];
      if (!value) continue;
      const y0 = ys.y(base[c]), y1 = ys.y(base[c] + value);
      context.rect(scale.left + c, y1, 1, y0 - y1);
      base[c] += value;
    }
    context.fill();
  });
}

function drawTotal(context, scale, ys, timeline) {
  const points = columnPoints(timeline, scale);
  context.strokeStyle = colour('ink');
  context.lineWidth = 1.5;
  context.beginPath();
  for (let c = 0; c < points.length; ++c) {
    const y = ys.y(points[c] < 0 ? 0 : timeline.totals[points[c]]);
    if (c) context.lineTo(scale.left + c, y); else context.moveTo(scale.left, y);
    context.lineTo(scale.left + c + 1, y);
  }
  context.stroke();
  context.lineWidth = 1;
}

function drawRule(context, scale, y, name, text, dash, align, below) {
  context.strokeStyle = colour(name);
  context.setLineDash(dash);
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(scale.left, y);
  context.lineTo(scale.right, y);
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
  context.font = '600 ' + font(11);
  context.textAlign = align;
  context.textBaseline = below ? 'top' : 'bottom';
  label(context, text, align === 'right' ? scale.right - 4 : scale.left + 6, y + (below ? 3 : -2), colour(name));
}
// Text with a rim in the colour of the ground, readable on any area.
function label(context, text, x, y, fill) {
  context.lineJoin = 'round';
  context.lineWidth = 4;
  context.strokeStyle = colour('panel');
  context.strokeText(text, x, y);
  context.lineWidth = 1;
  context.fillStyle = fill;
  context.fillText(text, x, y);
}

function drawPeak(context, scale, ys, timeline) {
  const {bytes, at} = timeline.peak, time = timeline.time[at];
  if (!bytes || time < view.begin || time > view.end) return;
  const x = scale.x(time), y = ys.y(bytes), text = `peak ${showBytes(bytes)} at ${showTime(time)}`;
  context.fillStyle = colour('ink');
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 5, y - 8);
  context.lineTo(x + 5, y - 8);
  context.fill();
  context.font = '600 ' + font(11);
  const right = x > (scale.left + scale.right) / 2;
  context.textAlign = right ? 'right' : 'left';
  context.textBaseline = 'middle';
  label(context, text, x + (right ? -9 : 9), Math.max(9, y - 5), colour('ink'));
}

function drawMemory(memory) {
  const box = byId(memory.id + '-chart');
  if (!box || !memory.sources.length) return;
  const width = box.clientWidth, height = 260, timeline = memory.of[memory.source];
  const context = prepare(box.querySelector('canvas'), width, height), scale = scaleOf(width);
  const ys = memoryScale(memory, timeline, height), points = columnPoints(timeline, scale);
  drawTimeAxis(context, scale, ys.top, ys.bottom, height - 11);
  drawByteAxis(context, scale, ys);
  drawStack(context, scale, ys, timeline, points);
  for (const other of memory.sources) if (other !== memory.source) drawTotal(context, scale, ys, memory.of[other]);
  // Beside the peak, which is about as high.
  const side = scale.x(timeline.time[timeline.peak.at]) < (scale.left + scale.right) / 2 ? 'right' : 'left';
  if (timeline.bound) drawRule(context, scale, ys.y(timeline.bound), 'soft', 'lower bound ' + showBytes(timeline.bound), [2, 3], side, true);
  if (ys.budgetFits) drawRule(context, scale, ys.y(timeline.budget), 'bad', 'budget ' + showBytes(timeline.budget), [7, 4], 'right', false);
  drawPeak(context, scale, ys, timeline);
  memory.columns = {points, scale};
}

function memoryPairs(timeline, point) {
  const rows = [['from', showTime(timeline.time[point])], ['all', showBytes(timeline.totals[point])]];
  data.kinds.forEach((name, kind) => {
    const bytes = timeline.memory[kind][point];
    if (bytes) rows.push([name, showBytes(bytes)]);
  });
  if (timeline.budget >= 0) rows.push(['left of the budget', showBytes(timeline.budget - timeline.totals[point])]);
  return rows;
}

function memoryLegend(memory) {
  const legend = byId(memory.id + '-legend'), timeline = memory.of[memory.source];
  legend.replaceChildren();
  data.kinds.forEach((name, kind) => { if (timeline.used[kind]) legend.append(legendEntry(name, name)); });
  if (timeline.budget >= 0) {
    const far = timeline.budget > 3 * Math.max(timeline.peak.bytes, timeline.planned);
    legend.append(legendEntry('bad', 'budget' + (far ? `, ${showBytes(timeline.budget)}, far above the chart` : ''), 'key rule'));
  }
  for (const other of memory.sources)
    if (other !== memory.source) legend.append(legendEntry('ink', strings[data.timelines[other].source] + ', all kinds', 'key rule solid'));
}

function initMemory(memory) {
  memory.of.forEach((timeline, source) => {
    timeline.totals = Float64Array.from(timeline.time, (_, i) => totalAt(timeline, i));
    timeline.peak = peakOf(timeline);
    timeline.used = timeline.memory.map(bytes => bytes.some(Boolean));
    if (timeline.time.length) memory.sources.push(source);
  });
  if (!memory.sources.length) return;
  memory.source = memory.sources[0];
  if (memory.sources.length > 1) {
    const choose = byId(memory.id + '-source'), buttons = memory.sources.map(source => {
      const button = element('button', {type: 'button'}, strings[data.timelines[source].source]);
      button.onclick = () => { memory.source = source; press(); memoryLegend(memory); redraw(); };
      return button;
    });
    const press = () => buttons.forEach((b, i) => b.setAttribute('aria-pressed', memory.sources[i] === memory.source));
    press();
    choose.append('By kind: ', ...buttons);
  }
  memoryLegend(memory);
}

