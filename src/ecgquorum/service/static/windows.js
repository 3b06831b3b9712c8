/** The windows of a long recording over time: a row for each class, the risk below, and where the paper is. */

import { make } from "./viewer/elements.js";

const SVG = "http://www.w3.org/2000/svg";
const ROW_PX = 16;
const RISK_PX = 34;
const WIDTH = 1000; // of the drawing, stretched to the page

/** @typedef {{start_s: number, seconds: number, label: string, probability: ?number, risk: ?number}} Window */

function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/** @param {number} seconds */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  const [h, min, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(min)}:${two(s)}` : `${min}:${two(s)}`;
}

/** Neighbouring windows of one class as one bar. @param {Window[]} windows */
function runs(windows) {
  const found = [];
  for (const one of windows) {
    const last = found.at(-1);
    if (last && last.label === one.label) last.end = one.start_s + one.seconds;
    else found.push({ label: one.label, start: one.start_s, end: one.start_s + one.seconds });
  }
  return found;
}

/**
 * @param {HTMLElement} frame @param {HTMLElement} viewer
 * @param {{windows: Window[], worst: ?number, urgent_class: string}} found
 */
export function showWindows(frame, viewer, { windows, worst, urgent_class: urgent }) {
  const total = Math.max(Number(frame.dataset.seconds), ...windows.map((one) => one.start_s + one.seconds));
  const present = new Set(windows.map((one) => one.label));
  const rows = frame.dataset.classes.split("|").filter((name) => present.has(name));
  const x = (seconds) => (WIDTH * seconds) / total;
  const height = rows.length * ROW_PX + RISK_PX;
  const chart = draw("svg", { viewBox: `0 0 ${WIDTH} ${height}`, height, preserveAspectRatio: "none", class: "windows" });
  for (const { label, start, end } of runs(windows)) {
    const y = rows.indexOf(label) * ROW_PX + 2;
    const kind = label === urgent ? "urgent-run" : "run";
    chart.append(draw("rect", { x: x(start), y, width: Math.max(1, x(end - start)), height: ROW_PX - 4, class: kind }));
  }
  const base = height - 2;
  for (const { start_s: start, seconds, risk } of windows) {
    const tall = (RISK_PX - 6) * (risk ?? 0);
    chart.append(draw("rect", { x: x(start), y: base - tall, width: Math.max(0.6, x(seconds) - 0.4), height: tall, class: "risk" }));
  }
  chart.append(draw("line", { x1: 0, x2: WIDTH, y1: base, y2: base, class: "scale" }));
  const here = draw("line", { y1: 0, y2: height, class: "here" });
  chart.append(here);
  chart.setAttribute("aria-hidden", "true"); // the buttons and the line of text say the same

  const words = make("p", { class: "window-words", role: "status" }, []);
  let place = 0;
  const describe = () => {
    const { start_s: start, seconds, label, probability, risk } = windows[place];
    const parts = [`${clock(start)} to ${clock(start + seconds)}: ${label}`];
    if (probability !== null) parts.push(`probability ${probability.toFixed(2)}`);
    if (risk !== null) parts.push(`risk ${risk.toFixed(2)}`);
    words.textContent = parts.join(", ");
  };
  const show = (number) => {
    place = Math.max(0, Math.min(windows.length - 1, number));
    describe();
    viewer.dispatchEvent(new CustomEvent("ecg:go", { detail: windows[place].start_s }));
  };
  const change = (step) => {
    for (let next = place + step; next >= 0 && next < windows.length; next += step) {
      if (windows[next].label !== windows[next - step].label) return show(next);
    }
  };
  const placeAt = (seconds) => Math.max(0, windows.findLastIndex((one) => one.start_s <= seconds + 1e-6));
  chart.addEventListener("click", (event) => {
    const { left, width } = chart.getBoundingClientRect();
    show(placeAt((total * (event.clientX - left)) / width));
  });
  viewer.addEventListener("ecg:moved", (event) => {
    for (const end of ["x1", "x2"]) here.setAttribute(end, String(x(event.detail)));
    const now = placeAt(event.detail);
    if (now !== place) {
      place = now;
      describe();
    }
  });

  const button = (text, act) => {
    const made = make("button", { type: "button", class: "quiet" }, [text]);
    made.addEventListener("click", act);
    return made;
  };
  const share = (name) => windows.filter((one) => one.label === name).length / windows.length;
  const names = rows.map((name) => make("span", {}, [`${name} ${Math.round(100 * share(name))} %`]));
  const labels = make("div", { class: "window-rows" }, [...names, make("span", { class: "quiet" }, ["risk"])]);
  const tools = [button("‹ change", () => change(-1)), button("change ›", () => change(1))];
  if (worst !== null) tools.unshift(button(urgent && windows[worst].label === urgent ? `Most probable ${urgent}` : "Highest risk", () => show(worst)));
  const ends = make("p", { class: "window-ends quiet" }, [make("span", {}, ["0:00"]), make("span", {}, [clock(total)])]);
  const drawing = make("div", { class: "window-drawing" }, [labels, make("div", {}, [chart, ends])]);
  frame.replaceChildren(drawing, make("div", { class: "window-tools" }, [...tools, words]));
  describe();
}
