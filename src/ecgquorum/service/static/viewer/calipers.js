/**
 * Calipers: two points on the paper, and what lies between them in milliseconds, millivolts and beats a minute.
 *
 * There may be several; they stay until they are cleared. They are held in the recording's time, so that they stay on their beats while the paper is moved.
 *
 * @typedef {{timeS: number, mv: number}} Point mv: above the row's base line
 * @typedef {{row: number, points: [Point, Point]}} Caliper
 */

import { rowAt, rowSecondsAt, xOf } from "./geometry.js";
import { make, place } from "./elements.js";

const STEP = { timeS: 0.005, mv: 0.05 };
const SHIFT_STEPS = 10;
const SPEAK_AFTER_MS = 300;

/** @param {Caliper} caliper @returns {{ms: number, mv: number, perMinute: number | null}} */
export function reading({ points: [a, b] }) {
  const ms = Math.abs(b.timeS - a.timeS) * 1000;
  return { ms, mv: Math.abs(b.mv - a.mv), perMinute: ms < 1 ? null : 60000 / ms };
}

/** @param {Caliper} caliper @returns {string[]} */
export function readingWords(caliper) {
  const { ms, mv, perMinute } = reading(caliper);
  const rate = perMinute === null || perMinute > 2000 ? [] : [`${Math.round(perMinute)} beats/min`];
  return [`${Math.round(ms)} ms`, ...rate, `${mv.toFixed(2)} mV`];
}

/** @param {Point} point @param {string} key @param {boolean} far @returns {Point | null} null if the key moves nothing */
export function moved(point, key, far) {
  const steps = far ? SHIFT_STEPS : 1;
  const [right, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key] ?? [0, 0];
  if (right === 0 && up === 0) return null;
  return { timeS: point.timeS + right * steps * STEP.timeS, mv: point.mv + up * steps * STEP.mv };
}

/** One caliper on the paper: two handles, the box between them, its reading. */
class CaliperMark {
  /**
   * @param {HTMLElement} stage
   * @param {() => {view: import("./geometry.js").View, geometry: import("./geometry.js").Geometry,
   *   recording: import("./recording.js").Recording}} current
   * @param {{number: number, onChange: (mark: CaliperMark) => void, onRemove: (mark: CaliperMark) => void}} owner
   */
  constructor(stage, current, owner) {
    this.stage = stage;
    this.current = current;
    this.owner = owner;
    /** @type {Caliper | null} */
    this.caliper = null;
    this.box = make("div", { class: "ecg-caliper-box" });
    this.label = make("div", { class: "ecg-caliper-label", "aria-hidden": "true" });
    this.handles = ["first", "second"].map((which, index) => this.#handle(which, index));
    this.elements = [this.box, ...this.handles, this.label];
    follow(this.box, (x, y) => this.#grip(x, y));
  }

  /** In the middle of what is seen: one second wide, or a third of the window. */
  open() {
    const { view, geometry } = this.current();
    const row = Math.floor((geometry.sheet.rows.length - 1) / 2);
    const seenS = Math.min(geometry.availableS, geometry.sheet.rowS);
    const startS = view.startS + geometry.sheet.rows[row].startS + view.offsetS;
    const half = Math.min(0.5, seenS / 6);
    const middle = startS + seenS / 2;
    this.#set({ row, points: [{ timeS: middle - half, mv: 0 }, { timeS: middle + half, mv: 0.5 }] });
    this.handles[1].focus({ preventScroll: true });
  }

  /** Begin a new one at a point of the stage; the second handle follows the pointer. @param {PointerEvent} event */
  begin(event) {
    const [x, y] = this.#onStage(event.clientX, event.clientY);
    const row = rowAt(this.current().geometry, y);
    const point = this.#pointAt(row, x, y);
    this.#set({ row, points: [point, point] });
    return (clientX, clientY) => this.#moveTo(1, ...this.#onStage(clientX, clientY));
  }

  remove() {
    for (const element of this.elements) element.remove();
  }

  /** Put everything where it belongs on the paper as it lies now. */
  draw() {
    if (!this.caliper) return;
    const { geometry } = this.current();
    const places = this.caliper.points.map((point) => this.#placeOf(point));
    const [[xa, ya], [xb, yb]] = places;
    const row = geometry.sheet.rows[this.#row()];
    const top = Math.min(row.topMm * geometry.pxPerMm, ya, yb);
    const bottom = Math.max((row.topMm + row.heightMm) * geometry.pxPerMm, ya, yb);
    place(this.box, Math.min(xa, xb), top, Math.abs(xb - xa), bottom - top);
    this.box.style.setProperty("--from", `${Math.min(ya, yb) - top}px`);
    this.box.style.setProperty("--to", `${Math.max(ya, yb) - top}px`);
    this.handles.forEach((handle, index) => place(handle, ...places[index]));
    const words = readingWords(this.caliper).join("   ");
    if (this.label.textContent !== words) this.label.textContent = words;
    const { offsetWidth, offsetHeight } = this.label;
    const labelX = Math.min((xa + xb - offsetWidth) / 2, geometry.widthPx - offsetWidth - 4);
    place(this.label, Math.max(4, labelX), Math.max(2, top - offsetHeight - 2));
  }

  #handle(which, index) {
    const handle = make("div", {
      class: "ecg-caliper-handle",
      role: "slider",
      tabindex: "0",
      "aria-label": `Caliper ${this.owner.number}, ${which} point; Delete removes it`,
      "aria-valuemin": "0",
      "aria-valuemax": String(this.current().recording.durationS),
    });
    follow(handle, () => (clientX, clientY) => this.#moveTo(index, ...this.#onStage(clientX, clientY)));
    handle.addEventListener("keydown", (event) => {
      if (event.key === "Delete" || event.key === "Backspace") {
        event.preventDefault();
        event.stopPropagation();
        this.owner.onRemove(this);
        return;
      }
      const point = moved(this.caliper.points[index], event.key, event.shiftKey);
      if (!point || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.#move(index, point);
    });
    return handle;
  }

  #grip(clientX, clientY) {
    const { row, points } = this.caliper;
    const start = this.#pointAt(row, ...this.#onStage(clientX, clientY));
    return (x, y) => {
      const now = this.#pointAt(row, ...this.#onStage(x, y));
      const [laterS, higherMv] = [now.timeS - start.timeS, now.mv - start.mv];
      this.#set({ row, points: points.map(({ timeS, mv }) => ({ timeS: timeS + laterS, mv: mv + higherMv })) });
    };
  }

  #moveTo(index, x, y) {
    this.#move(index, this.#pointAt(this.#row(), x, y));
  }

  #move(index, point) {
    const points = [...this.caliper.points];
    points[index] = point;
    this.#set({ row: this.#row(), points });
  }

  #set(caliper) {
    this.caliper = caliper;
    this.handles.forEach((handle, index) => {
      const { timeS, mv } = caliper.points[index];
      handle.setAttribute("aria-valuenow", timeS.toFixed(3));
      handle.setAttribute("aria-valuetext", `${timeS.toFixed(3)} seconds, ${mv.toFixed(2)} millivolt`);
    });
    this.owner.onChange(this);
  }

  /** The row it is in: in consecutive strips, the one that now holds its first point. */
  #row() {
    const { view, geometry } = this.current();
    const { rows, rowS, strips } = geometry.sheet;
    const wanted = strips ? Math.floor((this.caliper.points[0].timeS - view.startS) / rowS + 1e-9) : this.caliper.row;
    return Math.max(0, Math.min(wanted, rows.length - 1));
  }

  #pointAt(row, x, y) {
    const { view, geometry } = this.current();
    const { startS, baseMm } = geometry.sheet.rows[row];
    const timeS = view.startS + startS + rowSecondsAt(geometry, view, x);
    return { timeS, mv: (baseMm * geometry.pxPerMm - y) / geometry.pxPerMv };
  }

  #placeOf({ timeS, mv }) {
    const { view, geometry } = this.current();
    const { startS, baseMm } = geometry.sheet.rows[this.#row()];
    return [xOf(geometry, view, timeS - view.startS - startS), baseMm * geometry.pxPerMm - mv * geometry.pxPerMv];
  }

  #onStage(clientX, clientY) {
    const { left, top } = this.stage.getBoundingClientRect();
    return [clientX - left, clientY - top];
  }
}

/** All calipers on the paper: they stay until they are cleared. */
export class Calipers {
  /** @param {HTMLElement} stage @param {ConstructorParameters<typeof CaliperMark>[1]} current @param {() => void} onChange */
  constructor(stage, current, onChange) {
    this.stage = stage;
    this.current = current;
    this.onChange = onChange;
    /** @type {CaliperMark[]} */
    this.marks = [];
    /** The one that `open` has put there, until it is moved: a first drag replaces it. @type {CaliperMark | null} */
    this.tentative = null;
    this.measuring = false;
    this.layer = make("div", { class: "ecg-calipers" });
    this.layer.hidden = true;
    this.live = make("div", { class: "ecg-spoken", role: "status", "aria-live": "polite" });
    stage.append(this.layer, this.live);
  }

  get count() {
    return this.marks.length;
  }

  /** Begin to measure; the first caliper stands in the middle of what is seen, for those who use keys. */
  open() {
    this.measuring = true;
    const mark = this.#add();
    mark.open();
    this.tentative = mark;
  }

  /** A new one at a point of the stage; its second handle follows the pointer. @param {PointerEvent} event */
  begin(event) {
    if (this.tentative) {
      this.#remove(this.tentative);
      this.stage.focus({ preventScroll: true }); // keys still come here
    }
    return this.#add().begin(event);
  }

  /** Measure no more; what was measured stays. */
  leave() {
    this.measuring = false;
    if (this.tentative) this.#remove(this.tentative);
  }

  clear() {
    this.measuring = false;
    for (const mark of [...this.marks]) this.#remove(mark);
    this.live.textContent = "";
  }

  /** Put everything where it belongs on the paper as it lies now. */
  draw() {
    for (const mark of this.marks) mark.draw();
  }

  #add() {
    const owner = {
      number: this.count + 1,
      onChange: (mark) => this.#changed(mark),
      onRemove: (mark) => {
        this.#remove(mark);
        this.stage.focus({ preventScroll: true });
      },
    };
    const mark = new CaliperMark(this.stage, this.current, owner);
    this.marks.push(mark);
    this.layer.append(...mark.elements);
    this.layer.hidden = false;
    return mark;
  }

  #remove(mark) {
    mark.remove();
    this.marks = this.marks.filter((one) => one !== mark);
    if (this.tentative === mark) this.tentative = null;
    this.layer.hidden = this.count === 0;
    this.onChange();
  }

  #changed(mark) {
    if (this.tentative === mark) this.tentative = null;
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => {
      if (this.marks.includes(mark)) this.live.textContent = readingWords(mark.caliper).join(", ");
    }, SPEAK_AFTER_MS);
    this.onChange();
  }
}

/**
 * Call back while a pointer that went down on the element moves, wherever it goes.
 * @param {HTMLElement} element @param {(x: number, y: number) => (x: number, y: number) => void} grip
 */
function follow(element, grip) {
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.stopPropagation();
    element.setPointerCapture(event.pointerId);
    const move = grip(event.clientX, event.clientY);
    const onMove = (moving) => moving.pointerId === event.pointerId && move(moving.clientX, moving.clientY);
    const onEnd = (ending) => {
      if (ending.pointerId !== event.pointerId) return;
      element.removeEventListener("pointermove", onMove);
      for (const end of ["pointerup", "pointercancel"]) element.removeEventListener(end, onEnd);
    };
    element.addEventListener("pointermove", onMove);
    for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, onEnd);
  });
}
