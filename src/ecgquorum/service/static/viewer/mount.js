/**
 * Puts the viewer into `<div id="viewer" data-trace data-samples data-maps>`.
 *
 * The element dispatches `ecg:ready` and `ecg:error` (detail: the message). Dispatch `ecg:reveal` on it when the reader may
 * see the maps, `ecg:go` (detail: seconds) to show another place; it dispatches `ecg:moved` (detail: seconds) and
 * `ecg:chosen` (detail: layout, speed, gain, zoom). With `data-plain` it has no toolbar and follows another viewer; with the attribute `data-revealed` they are asked for at once. Before that, nothing asks for them.
 */

import { make } from "./elements.js";
import { loadRecording } from "./recording.js";
import { Viewer } from "./viewer.js";

/**
 * @param {HTMLElement} element
 * @returns {Promise<Viewer | null>} null if the recording could not be shown; the element says why
 */
export async function mountViewer(element) {
  element.classList.add("ecg-viewer");
  const message = make("p", { class: "ecg-message", role: "status" }, ["Loading the recording…"]);
  element.replaceChildren(message);
  let revealed = "revealed" in element.dataset;
  let viewer = null;
  const reveal = () => viewer.reveal(element.dataset.maps).catch((error) => announce(element, "ecg:error", error.message));
  element.addEventListener("ecg:reveal", () => {
    revealed = true;
    if (viewer && element.dataset.maps) reveal();
  });
  try {
    viewer = new Viewer(element, await loadRecording(element.dataset.trace, element.dataset.samples));
  } catch (error) {
    message.setAttribute("role", "alert");
    message.textContent = error.message;
    announce(element, "ecg:error", error.message);
    return null;
  }
  element.addEventListener("ecg:go", (event) => viewer.goTo(event.detail));
  if (revealed && element.dataset.maps) await reveal();
  announce(element, "ecg:ready");
  return viewer;
}

function announce(element, name, detail = null) {
  element.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
}

const waiting = document.getElementById("viewer");
if (waiting) mountViewer(waiting);
