/** What is drawn over the grid, every frame: calibration pulses, leads, their names, the time, the scale. */

import { GUTTER_MM, xOf } from "./geometry.js";
import { PAPER } from "./paper.js";
import { printedScale } from "./scale.js";

const INK = "#16181d";
const QUIET_INK = "#6d5450";
const TEXT_MM = 3.3;
const LEAST_TEXT_PX = 11;
const LEAST_NAME_PX = 9;

/**
 * @typedef {object} Drawing
 * @property {CanvasRenderingContext2D} context in device pixels
 * @property {import("./geometry.js").View} view
 * @property {import("./geometry.js").Geometry} geometry
 * @property {import("./recording.js").Recording} recording
 * @property {import("./tiles.js").Tiles} tiles
 */

/**
 * @param {Drawing} drawing on a clear canvas
 * @param {import("./maps.js").Bands | null} bands drawn behind the traces
 */
export function drawTraces(drawing, bands) {
  const { context, geometry } = drawing;
  if (bands) eachPanel(drawing, (row, panel, window) => drawBand(drawing, bands, row, panel, window));
  drawNames(drawing);
  eachPanel(drawing, (row, panel, window) => drawLead(drawing, row, panel, window));
  for (const row of geometry.sheet.rows) drawPulse(drawing, row);
  drawFooter(drawing, bands);
}

/** @param {Drawing} drawing @param {(row, panel, window) => void} draw called for what is inside the window */
function eachPanel(drawing, draw) {
  for (const row of drawing.geometry.sheet.rows) {
    for (const panel of row.panels) {
      const window = visible(drawing, row, panel);
      if (window) draw(row, panel, window);
    }
  }
}

/**
 * The part of a panel inside the window.
 * @returns {{fromS: number, toS: number} | null} seconds from the row's start
 */
function visible({ view, geometry, recording }, row, panel) {
  const endS = recording.durationS - view.startS - row.startS;
  const fromS = Math.max(panel.fromS, view.offsetS);
  const toS = Math.min(panel.fromS + panel.lengthS, view.offsetS + geometry.availableS, endS);
  return toS > fromS ? { fromS, toS } : null;
}

function drawBand({ context, view, geometry, recording }, bands, row, panel, { fromS, toS }) {
  const { ratio, pxPerMm } = geometry;
  const rowStartS = view.startS + row.startS;
  bands.draw(context, recording.traces[panel.trace].name, {
    fromS: rowStartS + fromS,
    toS: rowStartS + toS,
    left: xOf(geometry, view, fromS) * ratio,
    pxPerS: geometry.pxPerS * ratio,
    top: (row.topMm + 0.5) * pxPerMm * ratio,
    height: (row.heightMm - 1) * pxPerMm * ratio,
  });
}

function drawLead({ context, view, geometry, tiles }, row, panel, { fromS, toS }) {
  const { ratio, pxPerS, pxPerMm } = geometry;
  const base = Math.round(row.baseMm * pxPerMm * ratio);
  const from = Math.round(xOf(geometry, view, fromS) * ratio);
  const to = Math.min(Math.round(xOf(geometry, view, toS) * ratio) + 1, context.canvas.width);
  const zeroX = Math.round((xOf(geometry, view, 0) - (view.startS + row.startS) * pxPerS) * ratio);
  tiles.draw(context, panel.trace, { zeroX, from, to, base });
  if (panel.fromS > view.offsetS) drawDivider(context, from, base, geometry);
}

/** Where one lead ends and the next begins. */
function drawDivider(context, x, base, { pxPerMm, ratio }) {
  const mm = pxPerMm * ratio;
  context.fillStyle = INK;
  for (const from of [-5, 3]) context.fillRect(x, Math.round(base + from * mm), 1, Math.round(2 * mm));
}

/** 1 mV high and 5 mm wide, on each row's base line. */
function drawPulse({ context, view, geometry }, row) {
  const mm = geometry.pxPerMm * geometry.ratio;
  const crisp = (value) => Math.round(value) + 0.5;
  const base = crisp(row.baseMm * mm);
  const top = base - Math.round(view.gain * mm);
  context.strokeStyle = INK;
  context.lineWidth = geometry.linePx;
  context.lineJoin = "miter";
  context.beginPath();
  context.moveTo(mm, base);
  for (const [x, y] of [[2, base], [2, top], [7, top], [7, base], [8, base]]) context.lineTo(crisp(x * mm), y);
  context.stroke();
}

/** Before the traces: no name hides a wave. */
function drawNames(drawing) {
  const { context, view, geometry, recording } = drawing;
  const mm = geometry.pxPerMm * geometry.ratio;
  const textPx = Math.max(LEAST_NAME_PX * geometry.ratio, TEXT_MM * mm);
  const write = writer(context, textPx);
  eachPanel(drawing, (row, panel, { fromS, toS }) => {
    if (toS - fromS < 0.05 * panel.lengthS) return;
    const at = geometry.sheet.strips ? `   ${clock(view.startS + row.startS)}` : "";
    const left = xOf(geometry, view, fromS) * geometry.ratio + mm;
    write(recording.traces[panel.trace].name + at, left, row.topMm * mm + 0.9 * textPx, INK, 600);
  });
}

/** Below the rows: the time, the scale, and which part of the recording this is. */
function drawFooter(drawing, bands) {
  const { context, view, geometry, recording } = drawing;
  const { strips, pageS } = geometry.sheet;
  const mm = geometry.pxPerMm * geometry.ratio;
  const textPx = Math.max(LEAST_TEXT_PX * geometry.ratio, TEXT_MM * mm);
  const write = writer(context, textPx);
  const { width, height } = context.canvas;
  if (!strips) drawSeconds(drawing, write, height - geometry.footerPx * geometry.ratio, textPx);
  const line = height - 0.45 * textPx;
  write(printedScale(view), mm, line, INK, 600);
  const shownS = Math.min(view.startS + pageS, recording.durationS);
  const mapped = bands ? `attribution: ${bands.member}   ` : "";
  const span = `${mapped}${clock(view.startS)} to ${clock(shownS)} of ${clock(recording.durationS)}`;
  const room = width - 3 * mm - context.measureText(printedScale(view)).width;
  context.textAlign = "right";
  if (context.measureText(span).width < room) write(span, width - mm, line, QUIET_INK, 400);
  context.textAlign = "left";
}

/** A tick for each second, with its number where there is room. */
function drawSeconds({ context, view, geometry, recording }, write, top, textPx) {
  const { ratio } = geometry;
  const every = [1, 2, 5, 10, 30, 60].find((seconds) => seconds * geometry.pxPerS * ratio > 3.5 * textPx) ?? 60;
  const [first, beyond] = [GUTTER_MM * geometry.pxPerMm * ratio, context.canvas.width];
  const lastS = Math.min(view.startS + geometry.sheet.rowS, recording.durationS);
  context.textAlign = "center";
  for (let second = Math.ceil(view.startS - 1e-6); second <= lastS + 1e-6; second++) {
    const x = xOf(geometry, view, second - view.startS) * ratio;
    if (x < first - 1 || x >= beyond) continue;
    context.fillStyle = QUIET_INK;
    context.fillRect(Math.round(x), Math.round(top), 1, Math.round(textPx / 4));
    if (second % every === 0 && x + 1.3 * textPx < beyond) write(clock(second), x, top + 1.25 * textPx, QUIET_INK, 400);
  }
  context.textAlign = "left";
}

/** Words with a rim of paper, legible over grid and trace. */
function writer(context, textPx) {
  context.lineJoin = "round";
  return (words, x, y, colour, weight) => {
    context.font = `${weight} ${textPx}px system-ui, sans-serif`;
    context.strokeStyle = PAPER;
    context.lineWidth = textPx / 5;
    context.strokeText(words, x, y);
    context.fillStyle = colour;
    context.fillText(words, x, y);
  };
}

/** @param {number} seconds @returns {string} "7 s", "2.5 s", "1:04 min", "13:20:05 h" */
export function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  if (tenths < 600) return `${tenths / 10} s`;
  const whole = Math.floor(tenths / 10);
  const part = tenths % 10 === 0 ? "" : `.${tenths % 10}`;
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, two(whole % 60) + part];
  return hours === 0 ? `${minutes}:${rest} min` : `${hours}:${two(minutes)}:${rest} h`;
}
