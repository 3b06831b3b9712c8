/**
 * Mouse, touch, wheel and keys on the paper, as what the reader means by them.
 *
 * @typedef {object} Meaning
 * @property {(dxPx: number) => void} dragged
 * @property {(factor: number, atX: number) => void} magnified
 * @property {(event: PointerEvent) => ((x: number, y: number) => void) | null} pressed
 *   what follows the pointer instead of the paper, if anything does
 */

const WHEEL_ZOOM_PER_PX = 0.002;
const LINE_PX = 16;

/** @param {HTMLElement} stage @param {Meaning} meaning */
export function listenToPointers(stage, meaning) {
  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  let instead = null;

  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    stage.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    instead = pointers.size === 1 ? meaning.pressed(event) : null;
    stage.classList.toggle("ecg-dragging", !instead);
  });
  stage.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    pointers.set(event.pointerId, now);
    if (instead) instead(now.x, now.y);
    else if (pointers.size === 1) meaning.dragged(now.x - before.x);
    else pinch(stage, pointers, event.pointerId, before, meaning);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    stage.addEventListener(end, (event) => {
      pointers.delete(event.pointerId);
      instead = null;
      if (pointers.size === 0) stage.classList.remove("ecg-dragging");
    });
  }
  stage.addEventListener("wheel", (event) => turned(stage, event, meaning), { passive: false });
}

function pinch(stage, pointers, id, before, meaning) {
  const now = pointers.get(id);
  const other = [...pointers].find(([key]) => key !== id)[1];
  const apart = (a, b) => Math.max(20, Math.hypot(a.x - b.x, a.y - b.y));
  const middle = (now.x + other.x) / 2;
  meaning.dragged((now.x - before.x) / 2);
  meaning.magnified(apart(now, other) / apart(before, other), middle - stage.getBoundingClientRect().left);
}

/** Sideways (or with Shift) moves the paper, with Ctrl (or two fingers on a touchpad) zooms; up and down is the page's. */
function turned(stage, event, meaning) {
  const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
  const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  if (event.ctrlKey) {
    event.preventDefault();
    const atX = event.clientX - stage.getBoundingClientRect().left;
    meaning.magnified(Math.exp(-event.deltaY * unit * WHEEL_ZOOM_PER_PX), atX);
  } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
    event.preventDefault();
    meaning.dragged(-sideways * unit);
  }
}

/**
 * @typedef {{kind: "move", squares: number} | {kind: "pages", count: number} | {kind: "end", last: boolean}
 *   | {kind: "zoom", factor: number} | {kind: "caliper"} | {kind: "lead"} | {kind: "escape"}} Command
 *
 * What a key asks of the viewer; null for every other key: those are the page's.
 * @param {{key: string, shiftKey: boolean, ctrlKey: boolean, altKey: boolean, metaKey: boolean}} event
 * @returns {Command | null}
 */
export function commandOf(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  switch (event.key) {
    case "ArrowLeft":
    case "ArrowRight": {
      const way = event.key === "ArrowRight" ? 1 : -1;
      return event.shiftKey ? { kind: "pages", count: way } : { kind: "move", squares: way };
    }
    case "Home":
    case "End":
      return { kind: "end", last: event.key === "End" };
    case "+":
    case "=":
      return { kind: "zoom", factor: 1.25 };
    case "-":
      return { kind: "zoom", factor: 0.8 };
    case "c":
      return { kind: "caliper" };
    case "d":
      return { kind: "lead" };
    case "Escape":
      return { kind: "escape" };
    default:
      return null;
  }
}
