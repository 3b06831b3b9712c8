/**
 * How large a second and a millivolt are: paper speed, gain, magnification, and the size of a millimetre on this screen.
 */

/** CSS defines a pixel as 1/96 inch. True on printed paper; on a screen only after calibration. */
export const CSS_PX_PER_MM = 96 / 25.4;
/** Width of a bank card (ISO/IEC 7810 ID-1). */
export const CARD_MM = 85.6;
export const SPEEDS_MM_PER_S = [12.5, 25, 50];
export const GAINS_MM_PER_MV = [5, 10, 20];
export const ZOOM_RANGE = [0.25, 4];

const STORAGE_KEY = "ecgquorum.devicePxPerMm";
// A poster-sized projector and a phone lie inside; a damaged entry most likely does not.
const PLAUSIBLE_DEVICE_PX_PER_MM = [1, 40];

/**
 * What is always printed on the paper.
 * @param {{speed: number, gain: number, zoom: number}} view mm/s, mm/mV, magnification
 */
export function printedScale({ speed, gain, zoom }) {
  const percent = Math.round(zoom * 100);
  const size = percent === 100 ? "" : `   shown at ${percent} %`;
  return `${speed} mm/s   ${gain} mm/mV${size}`;
}

/** @param {number} zoom magnification, kept inside what can be drawn @param {number} [largest] of this paper */
export function boundedZoom(zoom, largest = ZOOM_RANGE[1]) {
  return Math.max(ZOOM_RANGE[0], Math.min(zoom, largest, ZOOM_RANGE[1]));
}

/**
 * CSS pixels per millimetre of this screen: as measured by its reader, else as CSS defines it.
 *
 * Device pixels are stored, since zooming the page changes how many of them a CSS pixel has, but not their size.
 * @param {Storage | undefined} storage @param {number} ratio devicePixelRatio
 */
export function screenPxPerMm(storage, ratio) {
  const stored = Number.parseFloat(storage?.getItem(STORAGE_KEY) ?? "");
  const [least, most] = PLAUSIBLE_DEVICE_PX_PER_MM;
  return stored >= least && stored <= most ? stored / ratio : CSS_PX_PER_MM;
}

/**
 * @param {Storage | undefined} storage
 * @param {number | null} pxPerMm CSS pixels per millimetre as measured; null forgets the measurement
 * @param {number} ratio devicePixelRatio
 */
export function storeScreen(storage, pxPerMm, ratio) {
  if (pxPerMm === null) storage?.removeItem(STORAGE_KEY);
  else storage?.setItem(STORAGE_KEY, String(pxPerMm * ratio));
}

/** The browser's storage, or undefined where it is denied. */
export function browserStorage() {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}
