// ---- Lanes: where each span is drawn ----------------------------------------

const laneHeight = {single: 22, pair: 19, header: 24, gap: 5};

// Spans of one source, rank and channel, by start. `longest` bounds how far back
// a span may begin that is still there at some time.
function makeLane(timeline, order) {
  const lane = {timeline, order, longest: 0};
  order.sort((a, b) => timeline.start[a] - timeline.start[b]);
  lane.start = Float64Array.from(order, i => timeline.start[i]);
  lane.end = Float64Array.from(order, i => timeline.start[i] + timeline.dur[i]);
  for (const i of order) lane.longest = Math.max(lane.longest, timeline.dur[i]);
  return lane;
}

// Lanes of a timeline by rank and then by channel name.
function groupSpans(timeline) {
  const ranks = new Map();
  for (let i = 0; i < timeline.start.length; ++i) {
    const rank = timeline.rank[i], channel = timeline.channel[i];
    if (!ranks.has(rank)) ranks.set(rank, new Map());
    const channels = ranks.get(rank);
    if (!channels.has(channel)) channels.set(channel, []);
    channels.get(channel).push(i);
  }
  for (const channels of ranks.values())
    for (const [channel, order] of channels) channels.set(channel, makeLane(timeline, order));
  return ranks;
}

// First position in a sorted array whose value is at least `key`.
function lowerBound(sorted, key) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < key) low = middle + 1; else high = middle;
  }
  return low;
}
// The lane's spans that touch [begin, end], as positions.
function spansBetween(lane, begin, end) {
  return [lowerBound(lane.start, begin - lane.longest), lowerBound(lane.start, end + 1)];
}

const lanes = {
  grouped: data.timelines.map(groupSpans),
  ranks: [],          // all that are in the data
  shown: [],          // chosen by the user
  folded: new Set(),  // only the header row is drawn
  rows: [],           // {top, height, kind: 'rank' | 'lane', ...} from top to bottom
  height: 0,
  matches: null,      // by string number, while a search is on
};
const isPair = data.timelines.filter(t => t.start.length).length > 1;

// A plan is the same on all ranks, so its first rank stands for one that only
// the measurement has.
function rankOfSource(source, rank) {
  const ranks = lanes.grouped[source];
  if (ranks.has(rank) || ranks.size === 0) return rank;
  return strings[data.timelines[source].source] === 'measured' ? rank : Math.min(...ranks.keys());
}

// Channels of a rank in the order of the sources' lists.
function channelsOf(rank) {
  const seen = new Map();
  data.timelines.forEach((timeline, source) => {
    const here = lanes.grouped[source].get(rankOfSource(source, rank));
    for (const [channel, kind] of timeline.channels)
      if (here?.has(channel) && !seen.has(channel)) seen.set(channel, kind);
  });
  return [...seen].sort((a, b) => a[1] - b[1] || (strings[a[0]] < strings[b[0]] ? -1 : 1));
}

function layOut() {
  lanes.rows = [];
  let top = axisHeight;
  const push = (height, row) => { lanes.rows.push({top, height, ...row}); top += height; };
  for (const rank of lanes.shown) {
    push(laneHeight.header, {kind: 'rank', rank});
    if (lanes.folded.has(rank)) continue;
    for (const [channel, kind] of channelsOf(rank)) {
      data.timelines.forEach((timeline, source) => {
        const lane = lanes.grouped[source].get(rankOfSource(source, rank))?.get(channel);
        if (!lane) return;
        push(isPair ? laneHeight.pair : laneHeight.single, {kind: 'lane', rank, channel, task: kind, source, lane,
          isFirst: lanes.rows.at(-1).channel !== channel || lanes.rows.at(-1).rank !== rank});
      });
      top += laneHeight.gap;
    }
  }
  lanes.height = top + 4;
}

// The compute channel of a rank itself; null if the source does not have it.
function computeLane(source, rank) {
  const here = lanes.grouped[source].get(rank);
  for (const [channel, kind] of data.timelines[source].channels)
    if (kind === 0 && here?.has(channel)) return here.get(channel);
  return null;
}

// "0-3, 8" as a sorted list of ranks that there are; all of them if empty.
function parseRanks(text) {
  const parts = text.split(/[\s,]+/).filter(Boolean);
  if (!parts.length) return lanes.ranks.slice();
  const wanted = new Set();
  for (const part of parts) {
    const range = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!range) continue;
    const first = Number(range[1]), last = Number(range[2] ?? range[1]);
    for (const rank of lanes.ranks) if (rank >= first && rank <= last) wanted.add(rank);
  }
  return lanes.ranks.filter(rank => wanted.has(rank));
}

// How many ranks are open, and shown at all, before anybody chose.
const firstOpen = 2, firstShown = 16;
function initLanes() {
  const ranks = new Set();
  for (const grouped of lanes.grouped) for (const rank of grouped.keys()) ranks.add(rank);
  lanes.ranks = [...ranks].sort((a, b) => a - b);
  lanes.shown = lanes.ranks.slice(0, firstShown);
  for (const rank of lanes.shown.slice(firstOpen)) lanes.folded.add(rank);
  layOut();
}

