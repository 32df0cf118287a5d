// ---- Start --------------------------------------------------------------------

function wholeStep() {
  let whole = 1;
  for (const timeline of data.timelines) {
    whole = Math.max(whole, timeline.step);
    for (let i = 0; i < timeline.start.length; ++i) whole = Math.max(whole, timeline.start[i] + timeline.dur[i]);
  }
  return whole;
}

let pending = false;
redraw = () => {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    drawTimeline();
    memories.forEach(drawMemory);
    root.dataset.drawings = Number(root.dataset.drawings || 0) + 1;
  });
};

root.classList.add('js');
view.whole = view.end = wholeStep();
initLanes();
memories.forEach(initMemory);
timelineLegend();
initToolbar();
initLanesInput();
memories.forEach(initMemoryInput);
initTables();
window.addEventListener('resize', redraw);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { styleCache = {}; redraw(); });
redraw();
})();
