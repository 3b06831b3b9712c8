import { ask, isTyping, onChange, refresh, say } from "./desk.js";

const { id, me, reads, claimS } = document.getElementById("case").dataset;
const viewer = document.getElementById("viewer");
const path = `/api/recordings/${id}`;
let state = document.getElementById("case").dataset.state;
let holds = false;
let holder = ""; // who has claimed the case: null for nobody, empty if unknown
let busy = false;

const review = () => document.getElementById("review");
const buttons = () => [...review().querySelectorAll("[data-label]")];

function choose(button) {
  if (!button || button.disabled) return;
  for (const one of buttons()) one.setAttribute("aria-checked", one === button);
  document.getElementById("submit").disabled = false;
}

async function redraw() {
  const chosen = buttons().find((one) => one.ariaChecked === "true")?.dataset.label;
  const revealed = review().dataset.revealed;
  await refresh("review");
  const again = buttons().find((one) => one.dataset.label === chosen);
  if (again && revealed === review().dataset.revealed) choose(again);
  if (review().dataset.revealed === "yes" && revealed !== "yes") viewer?.dispatchEvent(new CustomEvent("ecg:reveal"));
}

/** Claim the case, and extend the claim while the page is visible. */
async function claim() {
  if (reads !== "yes" || state !== "open") return;
  try {
    holder = (await ask("PUT", `${path}/claim`)).claimed_by;
    if (!holds) {
      holds = true;
      await redraw();
    }
  } catch (error) {
    holds = false;
    holder = "";
    await redraw();
    if (error.status !== 409) say(error.message);
  }
}

async function submit() {
  const label = buttons().find((one) => one.ariaChecked === "true")?.dataset.label;
  if (!label || busy) return;
  busy = true;
  try {
    const now = await ask("POST", `${path}/verdicts`, { label });
    state = now.state;
    if (state !== "open") holds = false;
    await redraw();
    if (state !== "open") say(state === "confirmed" ? "Confirmed." : "Amended.");
  } catch (error) {
    say(error.message);
    await redraw();
  } finally {
    busy = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-label]");
  if (button) choose(button);
  else if (event.target.closest?.("#submit")) submit();
});
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || isTyping(event)) return;
  if (/^[1-9]$/.test(event.key)) choose(buttons()[Number(event.key) - 1]);
  else if (event.key === "Enter" && !event.target.closest("a, button:not([data-label]):not(#submit)")) {
    const open = document.getElementById("submit");
    if (open && !open.disabled) submit();
    else if (!open) document.getElementById("following")?.click();
    else return;
  } else if (event.key === "j") document.getElementById("following")?.click();
  else if (event.key === "k") history.back();
  else if (event.key === "Escape") document.getElementById("back").click();
  else return;
  event.preventDefault();
});

await claim();
setInterval(() => document.visibilityState === "visible" && holds && claim(), Math.max(1000, (Number(claimS) * 1000) / 3));
onChange(async () => {
  const now = await ask("GET", path).catch(() => null);
  if (!now || busy || (now.state === state && now.claimed_by === holder)) return;
  ({ state, claimed_by: holder } = now);
  holds = holder === me;
  if (state === "open" && !holder && document.visibilityState === "visible") await claim();
  await redraw();
});
window.addEventListener("pagehide", () => {
  if (!holds) return;
  const headers = { "X-CSRF-Token": document.querySelector("meta[name=csrf]").content };
  fetch(`${path}/claim`, { method: "DELETE", headers, keepalive: true });
});
