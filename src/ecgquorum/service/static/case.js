import { ask, hasDialog, isTyping, onChange, refresh, say } from "./desk.js";
import { checkedButtons, choose, chooseNext, isSeveral, payload, setSeveral } from "./answers.js";

const { id, me, reads, claimS, undoS } = document.getElementById("case").dataset;
const viewer = document.getElementById("viewer");
const path = `/api/recordings/${id}`;
// A key that bounces, or that a remote screen repeats as new ones, must not confirm what was just revealed.
const FRESH_MS = 400;
let state = document.getElementById("case").dataset.state;
let holds = false;
let holder = ""; // who has claimed the case: null for nobody, empty if unknown
let busy = false;
let revealedAt = -Infinity;

const review = () => document.getElementById("review");
const link = (name) => document.getElementById(name);

async function redraw() {
  const before = {
    chosen: checkedButtons().map(answerOf),
    several: isSeveral(),
    comment: link("comment")?.value,
    reason: link("reason")?.value,
    reopens: link("reason")?.closest("details").open,
  };
  const revealed = review().dataset.revealed;
  const hadFocus = review().contains(document.activeElement);
  await refresh("review", "comments");
  if (revealed === review().dataset.revealed && before.chosen.length) {
    if (before.several) setSeveral(true);
    for (const button of review().querySelectorAll("[role=radio], [role=checkbox]")) {
      if (before.chosen.includes(answerOf(button)) && button.ariaChecked !== "true") choose(button);
    }
  } else if (link("several")?.ariaPressed === "true") setSeveral(true);
  if (before.comment && link("comment")) link("comment").value = before.comment;
  if (before.reason !== undefined && link("reason")) {
    link("reason").value = before.reason;
    link("reason").closest("details").open = before.reopens;
  }
  if (review().dataset.revealed === "yes" && revealed !== "yes") {
    revealedAt = performance.now();
    viewer?.dispatchEvent(new CustomEvent("ecg:reveal"));
    const announcement = link("announcement");
    if (announcement) {
      link("spoken").textContent = announcement.textContent.trim();
      announcement.focus({ preventScroll: true });
    }
  } else if (hadFocus) checkedButtons()[0]?.focus({ preventScroll: true });
}

function answerOf(button) {
  return button.dataset.label ?? `/${button.dataset.kind}`;
}

/** Claim the case, and extend the claim while the page is visible. */
async function claim(automatic = false) {
  if (reads !== "yes" || state !== "open" || review().dataset.finished === "yes") return;
  try {
    holder = (await ask("PUT", `${path}/claim`, undefined, { automatic })).claimed_by;
    if (!holds) {
      holds = true;
      await redraw();
    }
  } catch (error) {
    holds = false;
    holder = "";
    await redraw();
    if (automatic || error.status !== 409) say(error.message);
  }
}

async function submit() {
  const verdict = payload();
  if (!verdict || busy) return;
  busy = true;
  try {
    const stage = review().dataset.revealed === "yes" ? "final" : "first";
    const now = await ask("POST", `${path}/verdicts`, { ...verdict, stage });
    [state, holder] = [now.state, now.claimed_by];
    const done = state !== "open" || now.finished;
    if (done) holds = false;
    await redraw();
    if (done) offerUndo(state === "open" ? "Stored" : state === "confirmed" ? "Confirmed" : "Amended");
  } catch (error) {
    say(error.message);
    await redraw();
  } finally {
    busy = false;
  }
}

/** For some seconds, here or on the next page, the last final verdict can be withdrawn. */
function offerUndo(word) {
  const name = document.querySelector("h1").textContent;
  sessionStorage.setItem("undo", JSON.stringify({ id, name, word, until: Date.now() + Number(undoS) * 1000 }));
  showUndo();
}

function lastVerdict() {
  const last = JSON.parse(sessionStorage.getItem("undo") ?? "null");
  return last && last.until > Date.now() ? last : null;
}

function showUndo() {
  const last = lastVerdict();
  if (!last) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "undo";
  button.textContent = "Undo (u)";
  button.addEventListener("click", undo);
  say(last.id === id ? `${last.word}. ` : `${last.name}: ${last.word.toLowerCase()}. `, [button], last.until - Date.now());
}

async function undo() {
  const last = lastVerdict();
  if (!last || busy) return;
  try {
    await ask("DELETE", `/api/recordings/${last.id}/verdicts`);
  } catch (error) {
    return say(error.message);
  }
  sessionStorage.removeItem("undo");
  if (last.id !== id) return location.assign(`/cases/${last.id}${location.search}`);
  [state, holds, holder] = ["open", true, me];
  await redraw();
  say("The verdict is withdrawn.");
}

async function skip() {
  const next = link("following");
  if (!next || !holds) return;
  holds = false;
  await ask("DELETE", `${path}/claim?skip=true`).catch(() => {});
  next.click();
}

async function enter(event) {
  const open = link("submit");
  if (!open) return link("following")?.click();
  const isFresh = performance.now() - revealedAt > FRESH_MS;
  if (!event.repeat && !open.disabled && isFresh) await submit();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".classes button");
  if (button) choose(button);
  else if (event.target.closest?.("#several")) setSeveral(!isSeveral());
  else if (event.target.closest?.("#submit")) submit();
  else if (event.target.closest?.("#skip")) skip();
});
document.addEventListener("submit", async (event) => {
  if (event.target.id !== "reopen") return;
  event.preventDefault();
  try {
    await ask("POST", `${path}/reopen`, { reason: link("reason").value });
    location.reload();
  } catch (error) {
    say(error.message);
  }
});

/** Choose by a key: Enter then confirms at once, since this was a fresh key. */
function answer(selector, place = 0) {
  revealedAt = -Infinity;
  choose(review().querySelectorAll(selector)[place]);
}

const byKey = {
  0: () => answer("[data-kind=none]"),
  x: () => answer("[data-kind=unclear]"),
  m: () => link("several") && setSeveral(!isSeveral()),
  t: () => link("comment")?.focus(),
  u: undo,
  s: skip,
  j: () => link("following")?.click(),
  k: () => (link("previous") ?? link("back")).click(),
  Escape: () => link("back").click(),
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.id === "comment") return link("submit")?.focus();
  if (event.defaultPrevented || hasDialog() || isTyping(event)) return;
  const inGroup = event.target.closest?.(".classes");
  if (/^[1-9]$/.test(event.key)) {
    if (!event.repeat) answer("[data-label]", Number(event.key) - 1);
  } else if (inGroup && /^Arrow(Up|Down|Left|Right)$/.test(event.key)) {
    revealedAt = -Infinity;
    chooseNext(event.target, /Down|Right/.test(event.key) ? 1 : -1);
  } else if (event.key === "Enter" && !event.target.closest("a, summary, button:not(.classes button):not(#submit)")) {
    if (event.repeat && !link("submit")) return event.preventDefault();
    enter(event);
  } else if (byKey[event.key]) {
    if (!event.repeat) byKey[event.key]();
  } else return;
  event.preventDefault();
});

await claim();
showUndo();
setInterval(() => document.visibilityState === "visible" && holds && claim(true), Math.max(1000, (Number(claimS) * 1000) / 3));
onChange(async (ids) => {
  if (ids !== null && !ids.has(id)) return;
  const now = await ask("GET", path, undefined, { automatic: true }).catch(() => null);
  if (!now || busy || (now.state === state && now.claimed_by === holder)) return;
  ({ state, claimed_by: holder } = now);
  holds = holder === me;
  if (state === "open" && !holder && document.visibilityState === "visible") await claim(true);
  await redraw();
});
window.addEventListener("pagehide", () => {
  if (!holds) return;
  const headers = { "X-CSRF-Token": document.querySelector("meta[name=csrf]").content };
  fetch(`${path}/claim`, { method: "DELETE", headers, keepalive: true });
});
