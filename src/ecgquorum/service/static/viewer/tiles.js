/**
 * Pieces of the traces, drawn once for a scale and then moved as pictures: moving the paper draws no lines again.
 *
 * All lengths are device pixels. A tile's pixels fall on the screen's, so that a moved line stays as sharp as it was.
 */

import { addTrace } from "./reduction.js";

const INK = "#16181d";
const TILE_PX = 512;
const MAX_KEPT_PX = 32e6;

/** @typedef {{canvas: HTMLCanvasElement, above: number}} Tile above: of the base line */

export class Tiles {
  /** @param {import("./recording.js").Recording} recording @param {import("./geometry.js").Geometry} geometry */
  constructor(recording, geometry) {
    this.traces = recording.traces;
    this.pxPerSample = (geometry.pxPerS * geometry.ratio) / recording.rateHz;
    this.pxPerMv = geometry.pxPerMv * geometry.ratio;
    this.linePx = geometry.linePx;
    this.most = Math.round(geometry.heightPx * geometry.ratio);
    /** @type {Map<string, Tile>} the longest unused first */
    this.kept = new Map();
    this.keptPx = 0;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} index of the trace
   * @param {{zeroX: number, from: number, to: number, base: number}} where whole pixels: where the trace's first sample
   *   would be, between which columns to draw, and the row of pixels in which it rests
   */
  draw(context, index, { zeroX, from, to, base }) {
    // Tiles of different leads end at different places, or all of them would have to be drawn in the same frame.
    const shift = Math.round((index * TILE_PX) / this.traces.length);
    const last = Math.floor((to - 1 - zeroX + shift) / TILE_PX);
    for (let number = Math.floor((from - zeroX + shift) / TILE_PX); number <= last; number++) {
      const tile = this.#tile(index, number, number * TILE_PX - shift);
      const tileX = zeroX + number * TILE_PX - shift;
      const left = Math.max(from, tileX);
      const width = Math.min(to, tileX + TILE_PX) - left;
      const { height } = tile.canvas;
      context.drawImage(tile.canvas, left - tileX, 0, width, height, left, base - tile.above, width, height);
    }
  }

  /** @returns {Tile} */
  #tile(index, number, startPx) {
    const key = `${index}:${number}`;
    let tile = this.kept.get(key);
    this.kept.delete(key);
    if (!tile) {
      tile = this.#drawn(this.traces[index], startPx);
      this.keptPx += tile.canvas.height * TILE_PX;
    }
    this.kept.set(key, tile);
    for (const [oldest, { canvas }] of this.kept) {
      if (this.keptPx <= MAX_KEPT_PX || oldest === key) break;
      this.kept.delete(oldest);
      this.keptPx -= canvas.height * TILE_PX;
    }
    return tile;
  }

  #drawn(trace, startPx) {
    const margin = 2 + 2 / this.pxPerSample;
    const from = Math.max(0, Math.floor(startPx / this.pxPerSample - margin));
    const to = Math.min(trace.samples.length, Math.ceil((startPx + TILE_PX) / this.pxPerSample + margin));
    const line = points(trace, from, to, 1 / this.pxPerSample, {
      x: (sample) => sample * this.pxPerSample - startPx + 0.5,
      y: (millivolt) => (trace.restMv - millivolt) * this.pxPerMv + 0.5,
    });
    const bounded = (value) => Math.max(1, Math.min(Math.ceil(value + this.linePx), this.most));
    const above = bounded(-line.top);
    const canvas = document.createElement("canvas");
    canvas.width = TILE_PX;
    canvas.height = above + bounded(line.bottom);
    const context = canvas.getContext("2d");
    context.translate(0, above);
    context.strokeStyle = INK;
    context.lineWidth = this.linePx;
    context.lineJoin = "bevel";
    context.stroke(line.path);
    return { canvas, above };
  }
}

/** A trace's line, and how far up and down it goes. */
function points(trace, from, to, samplesPerPx, axes) {
  const path = new Path2D();
  let [top, bottom] = [0, 0];
  const measured = (y) => {
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  };
  const pen = {
    moveTo: (x, y) => (measured(y), path.moveTo(x, y)),
    lineTo: (x, y) => (measured(y), path.lineTo(x, y)),
  };
  addTrace(pen, trace, from, to, samplesPerPx, axes);
  return { path, top, bottom };
}
