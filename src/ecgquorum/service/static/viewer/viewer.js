/** The viewer of one recording: what the reader chose, and one drawing a frame of whatever changed. */

import { Calipers } from "./calipers.js";
import { make } from "./elements.js";
import { bounded, fittingZoom, geometryOf, GUTTER_MM, largestZoom, panned, rowSecondsAt, traceAt } from "./geometry.js";
import { commandOf, listenToPointers } from "./gestures.js";
import { layoutsFor, PAGE_S } from "./layout.js";
import { Bands, loadMaps } from "./maps.js";
import { recall, remember } from "./memory.js";
import { Overview } from "./overview.js";
import { drawPaper, resize } from "./paper.js";
import { boundedZoom, browserStorage, CSS_PX_PER_MM, printedScale, screenPxPerMm } from "./scale.js";
import { ScreenPanel } from "./screen.js";
import { Toolbar } from "./toolbar.js";
import { Tiles } from "./tiles.js";
import { drawTraces } from "./traces.js";

// Ten seconds at 25 mm/s and the pulse: fits A4 and Letter across. About 400 dots an inch, lines of 0.2 mm.
const PRINT = { widthPx: 260.5 * CSS_PX_PER_MM, pxPerMm: CSS_PX_PER_MM, ratio: 4, linePx: 3, leastS: 0 };
const SQUARE_MM = 5;
const LEAD_ZOOM = 2;

export class Viewer {
  /** @param {HTMLElement} root @param {import("./recording.js").Recording} recording */
  constructor(root, recording) {
    this.root = root;
    this.recording = recording;
    const layouts = layoutsFor(recording.traces.map(({ name }) => name));
    /** @type {import("./geometry.js").View} */
    this.view = { layout: layouts[0], speed: 25, gain: 10, zoom: 1, startS: 0, offsetS: 0 };
    this.layouts = layouts;
    /** Up to this width of the window ten seconds fit into it at first, and the toolbar is short. */
    this.narrowPx = Number(root.dataset.narrow ?? 0);
    /** Without a toolbar: the scale is that of another viewer, which it follows. */
    this.plain = "plain" in root.dataset;
    root.classList.toggle("ecg-plain", this.plain);
    const { fits = window.innerWidth <= this.narrowPx, ...chosen } = recall(browserStorage(), layouts);
    this.view = { ...this.view, ...chosen };
    this.fits = fits;
    /** The view before one lead was magnified. @type {import("./geometry.js").View | null} */
    this.whole = null;
    this.maps = null;
    this.member = null;
    this.bands = null;
    this.printing = false;
    this.stale = true;
    this.#build(layouts);
    this.#listen();
    this.#paint();
  }

  #build(layouts) {
    this.grid = make("canvas", { class: "ecg-grid", "aria-hidden": "true" });
    this.ink = make("canvas", { class: "ecg-ink", role: "img" });
    this.stage = make(
      "div",
      {
        class: "ecg-stage",
        tabindex: "0",
        role: "group",
        "aria-label":
          "ECG paper: arrow keys move it, plus and minus magnify, c measures, d shows one lead, Escape clears and goes back",
      },
      [this.grid, this.ink],
    );
    this.calipers = new Calipers(this.stage, () => this, () => {
      this.#showState();
      this.#repaint();
    });
    this.screen = new ScreenPanel(() => this.#repaint(true));
    this.overview = new Overview(this.recording, (startS) => this.goTo(startS));
    this.toolbar = new Toolbar(layouts, {
      choose: (patch) => this.choose(patch),
      zoom: (factor) => this.magnify(factor),
      trueSize: () => this.magnify(1 / this.view.zoom),
      fit: () => this.fit(),
      toggleCaliper: () => this.toggleCaliper(),
      clearCalipers: () => this.calipers.clear(),
      showAll: () => this.magnifyLead(undefined),
      toggleScreen: () => {
        this.screen.toggle();
        this.#repaint(true);
      },
      showMap: (member) => this.showMap(member),
      done: () => this.stage.focus({ preventScroll: true }),
    });
    const { toolbar, screen, stage, overview } = this;
    this.root.replaceChildren(toolbar.element, screen.element, stage, overview.element, toolbar.maps);
  }

  #listen() {
    listenToPointers(this.stage, {
      dragged: (dxPx) => this.#go(this.view, -dxPx / this.geometry.pxPerS),
      magnified: (factor, atX) => this.magnify(factor, atX),
      pressed: (event) => (this.calipers.measuring ? this.calipers.begin(event) : null),
    });
    this.stage.addEventListener("dblclick", (event) => {
      if (this.calipers.measuring || event.target.closest(".ecg-caliper-box, .ecg-caliper-handle")) return;
      const { left, top } = this.stage.getBoundingClientRect();
      const trace = traceAt(this.geometry, this.view, event.clientX - left, event.clientY - top);
      this.magnifyLead(this.view.only === undefined ? trace : undefined);
    });
    this.root.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => {
      if (this.root.clientWidth !== this.widthPx) this.#repaint(true);
    }).observe(this.root);
    window.addEventListener("resize", () => {
      // Another screen, or the page zoomed.
      if (window.devicePixelRatio !== this.geometry.ratio) this.#repaint(true);
    });
    window.addEventListener("beforeprint", () => this.#print(true));
    window.addEventListener("afterprint", () => this.#print(false));
  }

  #key(event) {
    if (event.target instanceof HTMLInputElement) return;
    const command = commandOf(event);
    const { measuring, count } = this.calipers;
    if (!command || (command.kind === "escape" && !measuring && !count && !this.whole)) return;
    event.preventDefault();
    if (command.kind === "move") this.#go(this.view, (command.squares * SQUARE_MM) / this.view.speed);
    else if (command.kind === "pages") this.#go(this.view, command.count * this.overview.seenS);
    else if (command.kind === "end") this.#go(this.view, command.last ? Infinity : -Infinity);
    else if (command.kind === "zoom") this.magnify(command.factor);
    else if (command.kind === "lead") this.#nextLead();
    else if (command.kind === "caliper") this.toggleCaliper();
    else this.#escape();
  }

  /** First the calipers, then the magnified lead; after that Escape is the page's. */
  #escape() {
    if (this.calipers.measuring || this.calipers.count) {
      this.calipers.clear();
      this.stage.focus({ preventScroll: true });
    } else this.magnifyLead(undefined);
  }

  #nextLead() {
    const next = this.view.only === undefined ? 0 : this.view.only + 1;
    this.magnifyLead(next < this.recording.traces.length ? next : undefined);
  }

  /** Show one lead, twice as large, on consecutive strips; or all again. @param {number | undefined} trace its place */
  magnifyLead(trace) {
    const whole = this.whole ?? this.view;
    if (trace === undefined) {
      this.view = { ...whole, startS: this.view.startS };
      this.whole = null;
    } else {
      this.view = { ...whole, only: trace, zoom: boundedZoom(whole.zoom * LEAD_ZOOM), offsetS: 0 };
      this.whole = whole;
    }
    this.calipers.clear();
    this.#repaint(true);
  }

  /** @param {Partial<import("./geometry.js").View>} patch of layout, speed or gain */
  choose(patch) {
    if ("layout" in patch && this.whole) this.magnifyLead(undefined);
    this.view = { ...this.view, ...patch };
    if (this.whole) this.whole = { ...this.whole, ...patch };
    this.#remember();
    this.#repaint(true);
  }

  #remember() {
    const choice = { ...(this.whole ?? this.view), fits: this.fits };
    remember(browserStorage(), this.layouts, choice);
    this.root.dispatchEvent(new CustomEvent("ecg:chosen", { detail: choice }));
  }

  /** Take over layout, speed, gain and zoom of another viewer. */
  follow({ layout, speed, gain, zoom, fits }) {
    const known = this.layouts.includes(layout) ? { layout } : {};
    this.view = { ...this.view, ...known, speed, gain, zoom };
    this.fits = fits;
    this.#repaint(true);
  }

  /** Show the recording from this second on. @param {number} seconds */
  goTo(seconds) {
    this.#go({ ...this.view, startS: 0, offsetS: 0 }, seconds);
  }

  /** @param {number} factor @param {number} [atX] CSS pixels: what is there stays there */
  magnify(factor, atX = GUTTER_MM * this.geometry.pxPerMm) {
    if (this.plain) return;
    const zoom = boundedZoom(this.view.zoom * factor, largestZoom(this.view, this.geometry));
    const heldS = rowSecondsAt(this.geometry, this.view, atX);
    const view = { ...this.view, zoom: Math.abs(zoom - 1) < 0.01 ? 1 : zoom, offsetS: 0 };
    const geometry = geometryOf(view, this.recording, this.#surface());
    this.view = panned(view, geometry, heldS - rowSecondsAt(geometry, view, atX));
    if (!this.whole) {
      this.fits = false;
      this.#remember();
    }
    this.#repaint(true);
  }

  fit() {
    if (this.whole) this.magnifyLead(undefined);
    this.fits = true;
    this.#repaint(true);
    this.#remember();
  }

  toggleCaliper() {
    if (this.calipers.measuring) {
      this.calipers.leave();
      this.stage.focus({ preventScroll: true });
    } else {
      this.calipers.open();
    }
    this.#showState();
  }

  /** Ask for the maps; they come when the reader may see them. @param {string} url */
  async reveal(url) {
    this.maps = await loadMaps(url);
    if (!this.maps) return;
    this.toolbar.offerMaps(this.maps.members.map(({ name }) => name));
    this.showMap(0);
  }

  /** @param {number | null} member its place among the members; null shows none */
  showMap(member) {
    this.member = member;
    this.bands = member === null ? null : new Bands(this.maps, this.maps.members[member]);
    this.#showState();
    this.#repaint();
  }

  #go(view, seconds) {
    this.view = panned(view, this.geometry, seconds);
    this.#repaint();
  }

  #surface() {
    if (this.printing) return PRINT;
    const ratio = window.devicePixelRatio;
    const pxPerMm = screenPxPerMm(browserStorage(), ratio);
    return { widthPx: this.root.clientWidth, pxPerMm, ratio, linePx: 1, leastS: PAGE_S };
  }

  #repaint(stale = false) {
    this.stale ||= stale;
    this.frame ??= requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    const context = this.ink.getContext("2d");
    // A canvas of a new size is clear; clearing it once more would, when printed, take away the grid below it.
    if (this.stale) this.#layOut();
    else context.clearRect(0, 0, this.ink.width, this.ink.height);
    const { view, geometry, recording, tiles } = this;
    drawTraces({ context, view, geometry, recording, tiles }, this.bands);
    this.overview.draw(view);
    const atS = view.startS + view.offsetS;
    if (atS !== this.atS) this.root.dispatchEvent(new CustomEvent("ecg:moved", { detail: atS }));
    this.atS = atS;
    this.calipers.draw();
  }

  #layOut() {
    this.stale = false;
    this.widthPx = this.root.clientWidth;
    this.root.classList.toggle("ecg-narrow", window.innerWidth <= this.narrowPx);
    if (this.fits && !this.whole && !this.printing) {
      this.view = { ...this.view, zoom: fittingZoom(this.view, this.recording, this.#surface()), offsetS: 0 };
    }
    this.geometry = geometryOf(this.view, this.recording, this.#surface());
    this.view = bounded(this.view, this.geometry);
    this.tiles = new Tiles(this.recording, this.geometry);
    resize(this.grid, this.geometry);
    resize(this.ink, this.geometry);
    drawPaper(this.grid, this.geometry);
    this.stage.style.height = this.grid.style.height;
    this.overview.layOut(this.geometry);
    this.#showState();
  }

  #showState() {
    this.toolbar.update(this.view, {
      caliper: this.calipers.measuring,
      calipers: this.calipers.count,
      screen: !this.screen.element.hidden,
      member: this.member,
    });
    this.stage.classList.toggle("ecg-measuring", this.calipers.measuring);
    const names = this.recording.traces.map(({ name }) => name).join(", ");
    this.ink.setAttribute("aria-label", `ECG: ${names}; ${printedScale(this.view)}`);
  }

  /** On paper a CSS millimetre is one: no magnification and no correction for a screen. */
  #print(printing) {
    if (printing === this.printing) return;
    if (printing) this.onScreen = this.view;
    this.view = printing ? { ...this.view, zoom: 1, offsetS: 0 } : this.onScreen;
    this.printing = printing;
    this.stale = true;
    this.#paint();
  }
}
