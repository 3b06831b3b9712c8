/** Measuring this screen with a bank card, so that a millimetre of paper is one. */

import { make } from "./elements.js";
import { browserStorage, CARD_MM, CSS_PX_PER_MM, screenPxPerMm, storeScreen } from "./scale.js";

const RANGE_PX = [150, 700];

export class ScreenPanel {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.bar = make("div", { class: "ecg-card", "aria-hidden": "true" });
    const [min, max] = RANGE_PX.map(String);
    this.slider = make("input", { type: "range", min, max, step: "0.5", "aria-label": "Width of the bar" });
    const reset = make("button", { type: "button" }, ["Forget"]);
    this.element = make("div", { class: "ecg-screen", role: "group", "aria-label": "Screen size" }, [
      make("p", {}, [`Hold a bank card (${CARD_MM} mm) to the screen and make the bar as wide. This browser remembers it.`]),
      this.bar,
      make("div", { class: "ecg-choices" }, [this.slider, reset]),
    ]);
    this.element.hidden = true;
    this.slider.addEventListener("input", () => this.#store(Number(this.slider.value) / CARD_MM));
    reset.addEventListener("click", () => this.#store(null));
  }

  toggle() {
    this.element.hidden = !this.element.hidden;
    this.#draw();
    if (!this.element.hidden) this.slider.focus();
  }

  #store(pxPerMm) {
    storeScreen(browserStorage(), pxPerMm, window.devicePixelRatio);
    this.#draw(pxPerMm ?? CSS_PX_PER_MM);
    this.onChange();
  }

  #draw(pxPerMm = screenPxPerMm(browserStorage(), window.devicePixelRatio)) {
    this.slider.value = String(pxPerMm * CARD_MM);
    this.bar.style.width = `${pxPerMm * CARD_MM}px`;
  }
}
