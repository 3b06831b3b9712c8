/** What the reader chose last: layout, speed, gain and magnification, remembered by this browser. */

import { GAINS_MM_PER_MV, SPEEDS_MM_PER_S, ZOOM_RANGE } from "./scale.js";

const KEY = "ecgquorum.view";

/** @typedef {{layout: string, speed: number, gain: number, zoom: number, fits: boolean}} Choice */

/** @param {Storage | undefined} storage @param {string[]} layouts that this recording has @returns {Partial<Choice>} */
export function recall(storage, layouts) {
  let stored;
  try {
    stored = JSON.parse(storage?.getItem(KEY) ?? "{}");
  } catch {
    return {};
  }
  const known = {};
  const layout = stored?.layouts?.[layouts.join()];
  if (layouts.includes(layout)) known.layout = layout;
  if (SPEEDS_MM_PER_S.includes(stored?.speed)) known.speed = stored.speed;
  if (GAINS_MM_PER_MV.includes(stored?.gain)) known.gain = stored.gain;
  if (stored?.zoom >= ZOOM_RANGE[0] && stored.zoom <= ZOOM_RANGE[1]) known.zoom = stored.zoom;
  if (typeof stored?.fits === "boolean") known.fits = stored.fits;
  return known;
}

/** @param {Storage | undefined} storage @param {string[]} layouts @param {Choice} choice */
export function remember(storage, layouts, { layout, speed, gain, zoom, fits }) {
  let others = {};
  try {
    others = JSON.parse(storage?.getItem(KEY) ?? "{}").layouts ?? {};
  } catch {
    // damaged: it is replaced
  }
  storage?.setItem(KEY, JSON.stringify({ layouts: { ...others, [layouts.join()]: layout }, speed, gain, zoom, fits }));
}
