/** ECG paper: a grid of millimetres, every fifth line heavier, on its own canvas; drawn anew when scale or size change. */

export const PAPER = "#fffaf8";
const LIGHT = "#fae1dc";
const HEAVY = "#eeb6ac";
// With less room between them, light lines are a tint and no longer a measure.
const LEAST_LIGHT_PX = 2.2;

/**
 * Give a canvas this size; the same size again clears it.
 * @param {HTMLCanvasElement} canvas @param {{widthPx: number, heightPx: number, ratio: number}} size CSS pixels
 */
export function resize(canvas, { widthPx, heightPx, ratio }) {
  canvas.width = Math.round(widthPx * ratio);
  canvas.height = Math.round(heightPx * ratio);
  canvas.style.width = `${canvas.width / ratio}px`;
  canvas.style.height = `${canvas.height / ratio}px`;
}

/**
 * Where the lines are: the nearest device pixel to each millimetre.
 * @param {number} extent device pixels @param {number} pxPerMm device pixels @param {number} everyMm
 */
export function gridLines(extent, pxPerMm, everyMm) {
  const lines = [];
  for (let mm = 0; Math.round(mm * pxPerMm) < extent; mm += everyMm) lines.push(Math.round(mm * pxPerMm));
  return lines;
}

/** @param {HTMLCanvasElement} canvas @param {import("./geometry.js").Geometry} geometry */
export function drawPaper(canvas, geometry) {
  const context = canvas.getContext("2d", { alpha: false });
  const pxPerMm = geometry.pxPerMm * geometry.ratio;
  context.fillStyle = PAPER;
  context.fillRect(0, 0, canvas.width, canvas.height);
  const roomy = geometry.pxPerMm >= LEAST_LIGHT_PX;
  if (roomy) rule(context, canvas, pxPerMm, 1, LIGHT, 1);
  rule(context, canvas, pxPerMm, 5, HEAVY, roomy ? Math.max(1, Math.round(0.75 * geometry.ratio)) : 1);
}

function rule(context, { width, height }, pxPerMm, everyMm, colour, thick) {
  context.fillStyle = colour;
  for (const x of gridLines(width, pxPerMm, everyMm)) context.fillRect(x, 0, thick, height);
  for (const y of gridLines(height, pxPerMm, everyMm)) context.fillRect(0, y, width, thick);
}
