/** Below the paper: measurements, the windows of a long recording, and earlier recordings at the same scale. */

import { ask } from "./desk.js";
import { showWindows } from "./windows.js";
import { make } from "./viewer/elements.js";
import { mountViewer } from "./viewer/mount.js";

const { id } = document.getElementById("case").dataset;
const path = `/api/recordings/${id}`;
const viewer = document.getElementById("viewer");

const FACTS = [
  ["Heart rate", "heart_rate_bpm", 0, "/min"],
  ["RR irregularity", "rr_irregularity", 2, ""],
  ["PR", "pr_ms", 0, "ms"],
  ["QRS", "qrs_ms", 0, "ms"],
  ["QT", "qt_ms", 0, "ms"],
  ["QTc (Bazett)", "qtc_bazett_ms", 0, "ms"],
  ["QTc (Fridericia)", "qtc_fridericia_ms", 0, "ms"],
];

async function showMeasurements(list) {
  const note = document.getElementById("measured-note");
  let found;
  try {
    found = await ask("GET", `${path}/measurements`);
  } catch (error) {
    note.textContent = error.message;
    return;
  }
  const rows = FACTS.map(([words, key, digits, unit]) => {
    const value = found[key];
    const text = value === null ? "–" : `${value.toFixed(digits)} ${unit}`.trim();
    return make("div", {}, [make("dt", {}, [words]), make("dd", { "data-key": key }, [text])]);
  });
  list.replaceChildren(...rows);
  note.textContent = found.note || "Measured by the program, not by a person.";
}

/** Draw an earlier recording on paper of the same scale, which follows that of the case. */
async function showEarlier(frame, earlierId) {
  for (const button of document.querySelectorAll("[data-earlier]")) {
    button.setAttribute("aria-pressed", String(button.dataset.earlier === earlierId));
    button.closest("li").classList.toggle("is-shown", button.dataset.earlier === earlierId);
  }
  const element = make("div", { "data-plain": "", "data-narrow": frame.dataset.narrow });
  element.dataset.trace = `/api/recordings/${earlierId}/trace`;
  element.dataset.samples = `/api/recordings/${earlierId}/samples`;
  frame.replaceChildren(element);
  const shown = await mountViewer(element);
  if (!shown) return;
  if (scale) shown.follow(scale);
  follower = shown;
}

let follower = null;
let scale = null;
viewer?.addEventListener("ecg:chosen", (event) => {
  scale = event.detail;
  follower?.follow(scale);
});

const measured = document.getElementById("measurements");
if (measured) showMeasurements(measured);

const windows = document.getElementById("windows");
if (windows && viewer) {
  const load = () => ask("GET", `${path}/windows`).then((found) => showWindows(windows, viewer, found), () => {});
  if ("revealed" in viewer.dataset) load();
  viewer.addEventListener("ecg:reveal", load);
}

const frame = document.getElementById("earlier");
const buttons = [...document.querySelectorAll("[data-earlier]")];
for (const button of buttons) button.addEventListener("click", () => showEarlier(frame, button.dataset.earlier));
if (buttons.length > 0) showEarlier(frame, buttons[0].dataset.earlier);
