/**
 * What of the recording is on the screen, and where: pure arithmetic between seconds, millivolts and CSS pixels.
 *
 * @typedef {object} View what the reader chose
 * @property {string} layout @property {number} speed mm/s @property {number} gain mm/mV @property {number} zoom
 * @property {number} startS the recording's time at the left end of the page
 * @property {number} [only] the one lead that is shown magnified
 * @property {number} offsetS how far the window has moved along a page that is wider than it
 *
 * @typedef {{widthPx: number, pxPerMm: number, ratio: number, linePx: number, leastS: number}} Surface
 *   CSS pixels; ratio: device pixels per CSS pixel; linePx: a trace's width in device pixels; leastS: see layout.js
 *
 * @typedef {object} Geometry
 * @property {number} pxPerMm of the magnified paper @property {number} pxPerS @property {number} pxPerMv
 * @property {number} widthPx @property {number} heightPx @property {number} footerPx @property {number} ratio @property {number} linePx
 * @property {number} availableS seconds across the window @property {import("./layout.js").Sheet} sheet
 * @property {number} maxStartS @property {number} maxOffsetS
 */

import { boundedZoom, ZOOM_RANGE } from "./scale.js";
import { PAGE_S, sheetOf } from "./layout.js";

/** Left of the traces, where the calibration pulse stands. */
export const GUTTER_MM = 10;
const FOOTER_MM = 10;
const LEAST_FOOTER_PX = 32;
// Three canvases of four bytes a pixel; beyond it phones give up.
const MAX_DEVICE_PX = 24e6;

/** @param {View} view @param {import("./recording.js").Recording} recording @param {Surface} surface @returns {Geometry} */
export function geometryOf(view, recording, surface) {
  const { widthPx, ratio, linePx } = surface;
  const pxPerMm = surface.pxPerMm * view.zoom;
  const availableS = Math.max(5, widthPx / pxPerMm - GUTTER_MM) / view.speed;
  const { traces, durationS } = recording;
  const { speed, gain, only } = view;
  const about = { traces, durationS, availableS, speed, gain, leastS: surface.leastS, only };
  const sheet = sheetOf(only === undefined ? view.layout : "strips", about);
  const footerPx = Math.max(FOOTER_MM * pxPerMm, LEAST_FOOTER_PX);
  return {
    pxPerMm,
    pxPerS: pxPerMm * speed,
    pxPerMv: pxPerMm * gain,
    widthPx,
    heightPx: Math.ceil(sheet.heightMm * pxPerMm + footerPx),
    footerPx,
    ratio,
    linePx,
    availableS,
    sheet,
    maxStartS: Math.max(0, durationS - sheet.pageS),
    maxOffsetS: Math.max(0, sheet.rowS - availableS),
  };
}

/** @param {Geometry} geometry @param {View} view @param {number} rowS seconds from the row's start */
export function xOf(geometry, view, rowS) {
  return GUTTER_MM * geometry.pxPerMm + (rowS - view.offsetS) * geometry.pxPerS;
}

/** @param {Geometry} geometry @param {View} view @param {number} x @returns {number} seconds from the row's start */
export function rowSecondsAt(geometry, view, x) {
  return (x - GUTTER_MM * geometry.pxPerMm) / geometry.pxPerS + view.offsetS;
}

/** @param {Geometry} geometry @param {number} y @returns {number} the row that holds it, or the nearest one */
export function rowAt(geometry, y) {
  const { rows } = geometry.sheet;
  const below = rows.findIndex(({ topMm, heightMm }) => y < (topMm + heightMm) * geometry.pxPerMm);
  return below < 0 ? rows.length - 1 : below;
}

/** The lead at a point of the paper. @param {Geometry} geometry @param {View} view @param {number} x @param {number} y */
export function traceAt(geometry, view, x, y) {
  const { panels } = geometry.sheet.rows[rowAt(geometry, y)];
  const seconds = rowSecondsAt(geometry, view, x);
  return (panels.find(({ fromS, lengthS }) => seconds < fromS + lengthS) ?? panels[panels.length - 1]).trace;
}

/** @param {View} view @param {Geometry} geometry @returns {View} moved back onto the recording where it lies beyond */
export function bounded(view, geometry) {
  const within = (value, most) => Math.max(0, Math.min(value, most));
  return {
    ...view,
    startS: within(view.startS, geometry.maxStartS),
    offsetS: within(view.offsetS, geometry.maxOffsetS),
  };
}

/**
 * Move along the page first and through the recording after that.
 * @param {View} view @param {Geometry} geometry @param {number} seconds later, or earlier if negative @returns {View}
 */
export function panned(view, geometry, seconds) {
  const alongPage = bounded({ ...view, offsetS: view.offsetS + seconds }, geometry);
  const rest = seconds - (alongPage.offsetS - view.offsetS);
  return bounded({ ...alongPage, startS: view.startS + rest }, geometry);
}

/** The largest magnification whose canvases a browser holds. @param {View} view @param {Geometry} geometry */
export function largestZoom(view, geometry) {
  const devicePx = geometry.widthPx * geometry.heightPx * geometry.ratio ** 2;
  return Math.min(ZOOM_RANGE[1], view.zoom * Math.max(1, MAX_DEVICE_PX / devicePx));
}

/** The magnification at which a page of ten seconds, or the whole of a shorter recording, is as wide as the window. */
export function fittingZoom(view, recording, surface) {
  const pageMm = GUTTER_MM + Math.min(recording.durationS, PAGE_S) * view.speed;
  // Rounded down, so that a last square is not lost to rounding.
  return boundedZoom(Math.floor((1000 * surface.widthPx) / (pageMm * surface.pxPerMm)) / 1000);
}
