/** The whole recording in one line, and the window in it: to see where one is, and to go elsewhere. */

import { make, place } from "./elements.js";
import { resize } from "./paper.js";
import { addTrace } from "./reduction.js";

const HEIGHT_PX = 36;
const LEAST_WINDOW_PX = 6;

export class Overview {
  /** @param {import("./recording.js").Recording} recording @param {(startS: number) => void} goTo */
  constructor(recording, goTo) {
    this.recording = recording;
    this.trace = recording.traces.find(({ name }) => name === "II") ?? recording.traces[0];
    this.canvas = make("canvas");
    this.window = make("div", { class: "ecg-window" });
    // Keys do the same on the paper: Home, End and the arrows.
    this.element = make("div", { class: "ecg-overview", "aria-hidden": "true" }, [this.canvas, this.window]);
    this.seenS = 0;
    const follow = (event) => {
      const { left, width } = this.element.getBoundingClientRect();
      goTo(((event.clientX - left) / width) * recording.durationS - this.seenS / 2);
    };
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      follow(event);
    });
    this.element.addEventListener("pointermove", (event) => {
      if (this.element.hasPointerCapture(event.pointerId)) follow(event);
    });
  }

  /** After a change of size. @param {import("./geometry.js").Geometry} geometry */
  layOut({ widthPx, ratio, maxStartS, maxOffsetS, sheet, availableS }) {
    this.element.hidden = maxStartS + maxOffsetS <= 1e-6;
    this.seenS = sheet.strips ? sheet.pageS : Math.min(availableS, sheet.rowS);
    this.widthPx = widthPx;
    if (this.element.hidden) return;
    resize(this.canvas, { widthPx, heightPx: HEIGHT_PX, ratio });
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    const { samples, restMv, extentMv } = this.trace;
    const samplesPerPx = samples.length / width;
    const span = Math.max(0.5, extentMv.high - extentMv.low) * 1.3;
    const middle = restMv + (extentMv.high + extentMv.low) / 2;
    context.strokeStyle = getComputedStyle(this.element).color;
    context.globalAlpha = 0.75;
    context.beginPath();
    const axes = {
      x: (sample) => sample / samplesPerPx,
      y: (millivolt) => height * (0.5 - (millivolt - middle) / span),
    };
    addTrace(context, this.trace, 0, samples.length, samplesPerPx, axes);
    context.stroke();
  }

  /** @param {import("./geometry.js").View} view */
  draw({ startS, offsetS }) {
    if (this.element.hidden) return;
    const pxPerS = this.widthPx / this.recording.durationS;
    const width = Math.max(LEAST_WINDOW_PX, Math.min(this.seenS, this.recording.durationS) * pxPerS);
    place(this.window, Math.min((startS + offsetS) * pxPerS, this.widthPx - width), 0, width, HEIGHT_PX);
  }
}
