// report.js - Draws the charts of a report and sorts its tables.
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lib/Report/web/*.js are joined in the order of lib/Report/CMakeLists.txt; this
// file opens the function that main.js closes. Times are nanoseconds. Strings of
// the data go into the page as text nodes only.
(() => {
'use strict';

const root = document.documentElement;
const byId = id => document.getElementById(id);
const data = JSON.parse(byId('data').textContent);
const strings = data.strings;

// What the lanes and the memory chart show of the step.
const view = {begin: 0, end: 1, whole: 1};
let redraw = () => {};

// ---- Units ----------------------------------------------------------------

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}
function showTime(ns) {
  const size = Math.abs(ns);
  if (size === 0) return '0 s';
  if (size >= 1e9) return digits(ns / 1e9) + ' s';
  if (size >= 1e6) return digits(ns / 1e6) + ' ms';
  if (size >= 1e3) return digits(ns / 1e3) + ' µs';
  return Math.round(ns) + ' ns';
}
const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
function showBytes(bytes) {
  let unit = 0, value = bytes;
  while (Math.abs(value) >= 1024 && unit + 1 < byteUnits.length) { value /= 1024; ++unit; }
  return (unit === 0 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 100 ? 1 : 2)) + ' ' + byteUnits[unit];
}

// A round distance between about `count` ticks of `range`: one of `factors` times
// a power of ten.
function tickStep(range, count, factors = [1, 2, 5, 10]) {
  const rough = range / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  return power * factors.find(factor => factor * power >= rough * 0.999);
}
// Labels of a time axis share one unit and show as many decimals as differ.
function timeLabels(step, largest) {
  const [scale, unit] = largest >= 1e9 ? [1e9, 's'] : largest >= 1e6 ? [1e6, 'ms'] : largest >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / scale) + 1e-9)));
  return ns => (ns / scale).toFixed(decimals) + ' ' + unit;
}

// ---- Page -----------------------------------------------------------------

// Colours follow the scheme of the page.
let styleCache = {};
function colour(name) {
  return styleCache[name] ??= getComputedStyle(root).getPropertyValue('--' + name).trim();
}
function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
function legendEntry(name, text, kind = 'key') {
  const key = element('i', {class: kind});
  key.style.setProperty('--c', `var(--${name})`);
  return element('span', {}, key, text);
}
// A grid of names and values, as the tooltip and the detail box show them.
function pairs(rows) {
  const grid = element('div', {class: 'pairs'});
  for (const [name, value] of rows) grid.append(element('span', {}, name), element('span', {}, value));
  return grid;
}

// A canvas of CSS size, sharp on any screen.
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
const font = size => `${size}px system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;

// Both charts have their left margin in common, so that times stand in line.
const axisHeight = 24;
const gutterOf = width => width < 640 ? 116 : 186;
function scaleOf(width) {
  const left = gutterOf(width), right = width - 10;
  const perNs = (right - left) / (view.end - view.begin);
  return {left, right, perNs, x: ns => left + (ns - view.begin) * perNs, time: x => view.begin + (x - left) / perNs};
}
function drawTimeAxis(context, scale, top, bottom, labelY) {
  const step = tickStep(view.end - view.begin, (scale.right - scale.left) / 110);
  const label = timeLabels(step, view.end);
  context.font = font(11);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let k = Math.ceil(view.begin / step); k * step <= view.end; ++k) {
    const x = Math.round(scale.x(k * step)) + 0.5;
    context.fillStyle = colour('grid');
    context.fillRect(x - 0.5, top, 1, bottom - top);
    const text = label(k * step), half = context.measureText(text).width / 2;
    context.fillStyle = colour('soft');
    context.fillText(text, Math.min(x, scale.right + 6 - half), labelY);
  }
}
// Shortens `text` to fit `width`, in its middle: the end tells layers apart.
// Empty if next to nothing would be left.
function fit(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const cut = kept => text.slice(0, Math.ceil(kept * 0.4)) + '…' + text.slice(text.length - Math.floor(kept * 0.6));
  let low = 0, high = Math.min(text.length - 1, Math.ceil(width / 3));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(cut(middle)).width <= width) low = middle; else high = middle - 1;
  }
  return low > 2 ? cut(low) : '';
}

