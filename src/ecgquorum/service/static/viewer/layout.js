/**
 * Where each lead goes on the sheet, in millimetres and seconds.
 *
 * Time runs on along a row, through its columns, as on a printed ECG: each panel begins where the one before it ended.
 *
 * @typedef {{trace: number, fromS: number, lengthS: number}} Panel fromS: from the row's start
 * @typedef {object} Row
 * @property {number} topMm @property {number} heightMm @property {number} baseMm of the row's base line, from the top
 * @property {number} startS from the page's start; above 0 in consecutive strips
 * @property {Panel[]} panels
 *
 * @typedef {{rows: Row[], rowS: number, pageS: number, heightMm: number, strips: boolean}} Sheet
 *   rowS: seconds in a row; pageS: seconds on the page
 */

const STANDARD = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"];
const COLUMNS = {
  "3x4+1": [["I", "aVR", "V1", "V4"], ["II", "aVL", "V2", "V5"], ["III", "aVF", "V3", "V6"], ["II"]],
  "6x2": [["I", "V1"], ["II", "V2"], ["III", "V3"], ["aVR", "V4"], ["aVL", "V5"], ["aVF", "V6"]],
};
/** A page of printed ECG. */
export const PAGE_S = 10;
export const TOP_MM = 5;
const SQUARE_MM = 5;
const LEAST_ROW_MM = { "3x4+1": 25, "6x2": 20, strips: 25 };
const LEAST_STACKED_ROW_MM = 15;
const MOST_ROW_MM = 60;
const MAX_STRIPS = 8;

/** The layouts for these leads, the usual one first. @param {string[]} names */
export function layoutsFor(names) {
  if (names.length === 1) return ["strips"];
  const stacked = `${names.length}x1`;
  return STANDARD.every((name) => names.includes(name)) ? ["3x4+1", "6x2", stacked] : [stacked];
}

/**
 * @param {string} layout
 * @param {object} about
 * @param {{name: string, extentMv: {low: number, high: number}}[]} about.traces
 * @param {number} about.durationS @param {number} about.availableS seconds across the window
 * @param {number} about.speed mm/s @param {number} about.gain mm/mV
 * @param {number} about.leastS seconds of a row below which columns do not shrink
 * @param {number} [about.only] the one lead that is shown, on consecutive strips
 * @returns {Sheet}
 */
export function sheetOf(layout, about) {
  const names = about.traces.map(({ name }) => name);
  const strips = layout === "strips";
  const rowS = rowSeconds(layout, about);
  const page = strips
    ? stripPanels(rowS, about.durationS, about.only ?? 0)
    : panelNames(layout, names).map((row) => ({ startS: 0, panels: spread(row, names, rowS) }));
  const pulseMm = squares(about.gain + 1);
  let topMm = TOP_MM;
  let aboveBaseMm = 0;
  const rows = page.map((row) => {
    const { heightMm, aboveMm } = rowHeight(layout, row.panels, about);
    const baseMm = Math.max(topMm + aboveMm, aboveBaseMm + pulseMm);
    const placed = { ...row, topMm, heightMm: heightMm + baseMm - topMm - aboveMm, baseMm };
    topMm += placed.heightMm;
    aboveBaseMm = baseMm;
    return placed;
  });
  const last = rows[rows.length - 1];
  return { rows, rowS, pageS: last.startS + rowS, heightMm: topMm, strips };
}

function rowSeconds(layout, { durationS, availableS, speed, leastS }) {
  const columns = COLUMNS[layout]?.[0].length;
  const unitS = columns ? (columns * SQUARE_MM) / 2 / speed : SQUARE_MM / speed;
  const wholeS = Math.max(1, Math.floor(availableS / unitS + 1e-9)) * unitS;
  if (layout === "strips") return wholeS;
  return Math.min(columns ? Math.max(wholeS, leastS) : availableS, durationS);
}

function stripPanels(rowS, durationS, trace) {
  const count = Math.min(Math.max(1, Math.ceil(durationS / rowS - 1e-9)), MAX_STRIPS);
  return Array.from({ length: count }, (_, index) => ({
    startS: index * rowS,
    panels: [{ trace, fromS: 0, lengthS: rowS }],
  }));
}

function panelNames(layout, names) {
  if (COLUMNS[layout]) return COLUMNS[layout];
  const standard = STANDARD.filter((name) => names.includes(name));
  return [...standard, ...names.filter((name) => !standard.includes(name))].map((name) => [name]);
}

function spread(row, names, rowS) {
  const lengthS = rowS / row.length;
  return row.map((name, column) => ({ trace: names.indexOf(name), fromS: column * lengthS, lengthS }));
}

/** @param {number} mm @returns {number} rounded up to whole squares */
function squares(mm) {
  return Math.ceil(mm / SQUARE_MM - 1e-9) * SQUARE_MM;
}

/** High enough for what its leads usually do, in whole squares, with the base line on a heavy line. */
function rowHeight(layout, panels, { traces, gain }) {
  const extents = panels.map(({ trace }) => traces[trace].extentMv);
  const least = LEAST_ROW_MM[layout] ?? LEAST_STACKED_ROW_MM;
  const up = gain * Math.max(0.2, ...extents.map(({ high }) => high));
  const down = gain * Math.max(0.2, ...extents.map(({ low }) => -low));
  const heightMm = Math.min(Math.max(squares(up + down + 3), least), MOST_ROW_MM);
  const spareMm = Math.max(0, heightMm - up - down);
  const aboveMm = Math.round((up + spareMm / 2) / SQUARE_MM) * SQUARE_MM;
  return { heightMm, aboveMm: Math.max(SQUARE_MM, Math.min(aboveMm, heightMm)) };
}
