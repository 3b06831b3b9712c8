/**
 * The buttons above the paper. Buttons and no lists: a list would take the digits and letters that are the page's.
 *
 * @typedef {object} Actions
 * @property {(patch: Partial<import("./geometry.js").View>) => void} choose
 * @property {(factor: number) => void} zoom
 * @property {() => void} trueSize @property {() => void} fit
 * @property {() => void} clearCalipers @property {() => void} showAll after one lead was magnified
 * @property {() => void} toggleCaliper @property {() => void} toggleScreen
 * @property {(member: number | null) => void} showMap
 * @property {() => void} done after a click, so that the next key is not the button's
 */

import { make } from "./elements.js";
import { GAINS_MM_PER_MV, SPEEDS_MM_PER_S } from "./scale.js";

export class Toolbar {
  /** @param {string[]} layouts @param {Actions} actions */
  constructor(layouts, actions) {
    this.actions = actions;
    this.groups = [
      choices("layout", "Layout", "", layouts, (name) => name.replace("x", "×")),
      choices("speed", "Paper speed", "mm/s", SPEEDS_MM_PER_S),
      choices("gain", "Gain", "mm/mV", GAINS_MM_PER_MV),
    ];
    this.size = button("", "Back to true size");
    this.caliper = button("Caliper", "Caliper: measures ms, mV and beats a minute");
    this.caliper.setAttribute("aria-keyshortcuts", "c");
    this.clear = button("Clear", "Clear all calipers");
    this.all = button("All leads", "Show all leads again");
    this.all.hidden = true;
    this.more = button("More", "More settings: speed, gain, screen size");
    this.more.classList.add("ecg-more");
    this.screen = button("Screen size", "Screen size: make a millimetre true on this screen");
    /** Below the paper, so that it does not move when they come. */
    this.maps = group("Attribution map", [], "ecg-apart ecg-maps");
    this.maps.hidden = true;
    const zoomOut = button("−", "Smaller");
    const zoomIn = button("+", "Larger");
    const fit = button("Fit", "Fit ten seconds to the width");
    const zooms = group("Magnification", [zoomOut, this.size, zoomIn, fit]);
    const tools = group("Measuring", [this.caliper, this.clear, this.all], "ecg-apart");
    const settings = group("Screen", [this.screen], "ecg-apart ecg-extra");
    for (const { key, element } of this.groups) element.classList.toggle("ecg-extra", key !== "layout");
    const shown = this.groups.filter(({ values }) => values.length > 1).map(({ element }) => element);
    this.element = make("div", { class: "ecg-toolbar" }, [...shown, zooms, tools, settings, this.more]);
    this.#on(this.more, () => press(this.more, this.element.classList.toggle("ecg-expanded")), false);
    press(this.more, false);
    this.#on(this.clear, actions.clearCalipers);
    this.#on(this.all, actions.showAll);
    for (const { key, values, buttons } of this.groups) {
      buttons.forEach((each, index) => this.#on(each, () => actions.choose({ [key]: values[index] })));
    }
    this.#on(zoomOut, () => actions.zoom(0.8));
    this.#on(zoomIn, () => actions.zoom(1.25));
    this.#on(this.size, actions.trueSize);
    this.#on(fit, actions.fit);
    this.#on(this.caliper, actions.toggleCaliper, false);
    this.#on(this.screen, actions.toggleScreen, false);
  }

  /** Show a switch with the members' names. @param {string[]} members */
  offerMaps(members) {
    const words = make("span", { class: "ecg-unit", "aria-hidden": "true" }, ["Attribution"]);
    this.mapButtons = ["none", ...members].map((name) => button(name, `Attribution: ${name}`));
    this.mapButtons.forEach((each, index) => this.#on(each, () => this.actions.showMap(index === 0 ? null : index - 1)));
    this.maps.replaceChildren(words, ...this.mapButtons);
    this.maps.hidden = false;
  }

  /**
   * @param {import("./geometry.js").View} view
   * @param {{caliper: boolean, calipers: number, screen: boolean, member: number | null}} state
   */
  update(view, { caliper, calipers, screen, member }) {
    for (const { key, values, buttons } of this.groups) {
      const shown = key === "layout" && view.only !== undefined ? null : view[key];
      buttons.forEach((each, index) => press(each, values[index] === shown));
    }
    this.all.hidden = view.only === undefined;
    this.clear.disabled = calipers === 0;
    const percent = `${Math.round(view.zoom * 100)} %`;
    this.size.textContent = percent;
    this.size.setAttribute("aria-label", `${percent}, back to true size`);
    press(this.size, Math.abs(view.zoom - 1) < 1e-6);
    press(this.caliper, caliper);
    press(this.screen, screen);
    this.screen.setAttribute("aria-expanded", String(screen));
    this.mapButtons?.forEach((each, index) => press(each, (member ?? -1) === index - 1));
  }

  #on(element, act, done = true) {
    element.addEventListener("click", (event) => {
      act();
      if (done && event.detail > 0) this.actions.done();
    });
  }
}

function choices(key, label, unit, values, wordOf = String) {
  const buttons = values.map((value) => button(wordOf(value), `${label} ${wordOf(value)} ${unit}`.trim()));
  const words = unit === "" ? [] : [make("span", { class: "ecg-unit", "aria-hidden": "true" }, [unit])];
  return { key, values, buttons, element: group(label, [...buttons, ...words]) };
}

function group(label, children, more = "") {
  return make("div", { class: `ecg-choices ${more}`.trim(), role: "group", "aria-label": label }, children);
}

function button(words, label) {
  return make("button", { type: "button", "aria-label": label, title: label }, [words]);
}

function press(element, pressed) {
  element.setAttribute("aria-pressed", String(pressed));
}
