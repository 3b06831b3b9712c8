/**
 * Least and largest values of ever longer stretches, so that a day is drawn as fast as a minute.
 *
 * @typedef {{size: number, low: Float32Array, high: Float32Array}} Level
 *   bucket i covers samples [i * size, (i + 1) * size); NaN where all of them are missing
 */

const FACTOR = 16;
// About 5 ms of work; between slices the page can answer its reader.
const SLICE_SAMPLES = 1 << 20;

/**
 * @param {Float32Array} samples
 * @param {() => Promise<void>} [pause] awaited between slices
 * @returns {Promise<Level[]>} finest first: buckets of 16, 256, 4096... samples
 */
export async function buildPyramid(samples, pause = async () => {}) {
  /** @type {Level[]} */
  const levels = [];
  let below = { size: 1, low: samples, high: samples };
  while (below.low.length > FACTOR) {
    const length = Math.ceil(below.low.length / FACTOR);
    const level = { size: below.size * FACTOR, low: new Float32Array(length), high: new Float32Array(length) };
    for (let from = 0; from < length; from += SLICE_SAMPLES / FACTOR) {
      if (from > 0) await pause();
      fold(below, level, from, Math.min(from + SLICE_SAMPLES / FACTOR, length));
    }
    levels.push(level);
    below = level;
  }
  return levels;
}

/** @param {Level} below @param {Level} level @param {number} from @param {number} to buckets of `level` to fill */
function fold(below, level, from, to) {
  for (let bucket = from; bucket < to; bucket++) {
    const end = Math.min((bucket + 1) * FACTOR, below.low.length);
    let low = Infinity;
    let high = -Infinity;
    for (let i = bucket * FACTOR; i < end; i++) {
      // A comparison with NaN is false: missing samples take no part.
      if (below.low[i] < low) low = below.low[i];
      if (below.high[i] > high) high = below.high[i];
    }
    level.low[bucket] = low === Infinity ? NaN : low;
    level.high[bucket] = high === -Infinity ? NaN : high;
  }
}

/** The next turn of the event loop, after whatever the page has to do. */
export function nextTurn() {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
