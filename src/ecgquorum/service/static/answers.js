/** The answers to choose from: one class, several, none of these, cannot tell. */

const group = () => document.querySelector(".classes");
const all = () => [...(group()?.querySelectorAll("button") ?? [])];

export const checkedButtons = () => all().filter((one) => one.ariaChecked === "true");
export const isSeveral = () => document.getElementById("several")?.ariaPressed === "true";

/** Choose an answer; with several classes, a class is added or taken away. */
export function choose(button) {
  if (!button || button.disabled) return;
  const adds = isSeveral() && "label" in button.dataset;
  for (const one of all()) {
    if (one === button) one.ariaChecked = String(!adds || one.ariaChecked !== "true");
    else if (!adds || "kind" in one.dataset) one.ariaChecked = "false";
  }
  settle();
}

/** The next answer of the list, for arrow keys. */
export function chooseNext(from, step) {
  const free = all().filter((one) => !one.disabled);
  const next = free.at((free.indexOf(from.closest("button")) + step) % free.length);
  if (!next) return;
  if (!isSeveral()) choose(next);
  next.focus();
}

/** Turn the choice of one class into that of several, or back. */
export function setSeveral(several) {
  document.getElementById("several").ariaPressed = String(several);
  group().setAttribute("role", several ? "group" : "radiogroup");
  for (const one of all()) one.setAttribute("role", several ? "checkbox" : "radio");
  if (!several) for (const one of checkedButtons().slice(1)) one.ariaChecked = "false";
  settle();
}

/** What to send; null if nothing is chosen. */
export function payload() {
  const chosen = checkedButtons();
  const comment = document.getElementById("comment")?.value ?? "";
  if (!chosen.length) return null;
  const kind = chosen[0].dataset.kind;
  return kind ? { kind, comment } : { labels: chosen.map((one) => one.dataset.label), comment };
}

/** One of a radio group is reached by Tab, the others by arrow keys. */
function settle() {
  const several = isSeveral();
  const reached = checkedButtons()[0] ?? all()[0];
  for (const one of all()) one.tabIndex = several || one === reached ? 0 : -1;
  document.getElementById("submit").disabled = checkedButtons().length === 0;
}
