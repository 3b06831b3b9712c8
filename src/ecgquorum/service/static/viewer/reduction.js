/**
 * From samples to the points of a line: every sample where there is room, else the least and the largest of each bucket.
 *
 * Buckets are about one device pixel wide and begin at multiples of their size, so that a line does not shimmer while it
 * is moved; both extremes are drawn, so that a spike of one sample is never lost.
 *
 * @typedef {{moveTo(x: number, y: number): void, lineTo(x: number, y: number): void}} Path
 * @typedef {{x(sample: number): number, y(millivolt: number): number}} Axes samples and millivolts to device pixels
 */

const MAX_RAW_SAMPLES_PER_PX = 2;

/**
 * @param {Path} path
 * @param {{samples: Float32Array, levels: import("./pyramid.js").Level[]}} trace
 * @param {number} from first sample @param {number} to one past the last sample
 * @param {number} samplesPerPx device pixels
 * @param {Axes} axes
 */
export function addTrace(path, trace, from, to, samplesPerPx, axes) {
  const pen = new Pen(path, axes);
  if (samplesPerPx <= MAX_RAW_SAMPLES_PER_PX) {
    for (let i = from; i < to; i++) pen.through(i, trace.samples[i]);
  } else {
    const level = trace.levels.findLast(({ size }) => size <= samplesPerPx);
    if (level) addBuckets(pen, level, from, to, samplesPerPx);
    else addSampleBuckets(pen, trace.samples, from, to, Math.floor(samplesPerPx));
  }
  pen.lift();
}

/** Draws through what is there and lifts where a sample is missing. */
class Pen {
  /** @param {Path} path @param {Axes} axes */
  constructor(path, axes) {
    this.path = path;
    this.axes = axes;
    this.points = 0;
    this.x = 0;
    this.y = 0;
  }

  /** @param {number} sample @param {number} millivolt */
  through(sample, millivolt) {
    if (Number.isNaN(millivolt)) {
      this.lift();
      return;
    }
    this.x = this.axes.x(sample);
    this.y = this.axes.y(millivolt);
    if (this.points === 0) this.path.moveTo(this.x, this.y);
    else this.path.lineTo(this.x, this.y);
    this.points += 1;
  }

  lift() {
    // A point alone between two gaps would leave no mark.
    if (this.points === 1) this.path.lineTo(this.x + 1, this.y);
    this.points = 0;
  }
}

/** @param {Pen} pen @param {Float32Array} samples @param {number} from @param {number} to @param {number} size samples */
function addSampleBuckets(pen, samples, from, to, size) {
  for (let start = from; start < to; ) {
    const end = Math.min((Math.floor(start / size) + 1) * size, to);
    let least = -1;
    let most = -1;
    for (let i = start; i < end; i++) {
      if (Number.isNaN(samples[i])) continue;
      if (least < 0 || samples[i] < samples[least]) least = i;
      if (most < 0 || samples[i] > samples[most]) most = i;
    }
    if (least < 0) {
      pen.lift();
    } else {
      const [first, second] = least < most ? [least, most] : [most, least];
      pen.through(first, samples[first]);
      if (second !== first) pen.through(second, samples[second]);
    }
    start = end;
  }
}

/**
 * @param {Pen} pen @param {import("./pyramid.js").Level} level
 * @param {number} from @param {number} to @param {number} samplesPerPx
 */
function addBuckets(pen, level, from, to, samplesPerPx) {
  const group = Math.floor(samplesPerPx / level.size);
  const last = Math.ceil(to / level.size);
  for (let start = Math.floor(from / level.size); start < last; ) {
    const end = Math.min((Math.floor(start / group) + 1) * group, last);
    let low = Infinity;
    let high = -Infinity;
    for (let i = start; i < end; i++) {
      if (level.low[i] < low) low = level.low[i];
      if (level.high[i] > high) high = level.high[i];
    }
    if (low === Infinity) {
      pen.lift();
    } else {
      // Which came first is not kept, and cannot be seen inside a pixel.
      pen.through((start + 0.25 * (end - start)) * level.size, low);
      pen.through((start + 0.75 * (end - start)) * level.size, high);
    }
    start = end;
  }
}
