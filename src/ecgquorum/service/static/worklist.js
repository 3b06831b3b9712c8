import { hasDialog, isTyping, load, onChange, refresh, replaceParts, say } from "./desk.js";

const REFRESH_MS = 4000;

let chosen = sessionStorage.getItem("chosen");
const rows = () => [...document.querySelectorAll(".worklist tbody tr")];

function choose(id, scroll = true) {
  chosen = id;
  if (id) sessionStorage.setItem("chosen", id);
  for (const row of rows()) {
    const is = row.dataset.id === id;
    row.setAttribute("aria-selected", is);
    if (is && scroll) row.scrollIntoView({ block: "nearest" });
  }
}

/** To the next row; beyond the last one to the next page. */
function move(step) {
  const all = rows();
  const now = all.findIndex((row) => row.dataset.id === chosen);
  const next = now < 0 ? 0 : now + step;
  if (all[next]) return choose(all[next].dataset.id);
  const page = document.getElementById(step > 0 ? "next-page" : "previous-page");
  if (!page) return;
  sessionStorage.setItem("entered", step > 0 ? "first" : "last");
  page.click();
}

/** The row to begin with on a page that was entered by `j` or `k`. */
function enter() {
  const entered = sessionStorage.getItem("entered");
  sessionStorage.removeItem("entered");
  const row = entered && rows().at(entered === "first" ? 0 : -1);
  if (row) choose(row.dataset.id);
  else choose(chosen, false);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.activeElement?.blur();
  if (isTyping(event) || hasDialog()) return;
  if (event.key === "j" || event.key === "ArrowDown") move(1);
  else if (event.key === "k" || event.key === "ArrowUp") move(-1);
  else if (event.key === "Enter" && !event.target.closest("a, button")) {
    const row = rows().find((one) => one.dataset.id === chosen);
    row?.querySelector("a")?.click();
    if (!row) return;
  } else if (event.key === "/") document.getElementById("search").focus();
  else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => {
  const row = event.target.closest?.(".worklist tbody tr");
  if (!row) return;
  choose(row.dataset.id, false);
  if (!event.target.closest("a") && !String(getSelection())) row.querySelector("a")?.click();
});

/** Replace the rows that changed; one that is not shown yet, or moves, needs the whole list, at most every few seconds. */
async function update(ids) {
  const shown = rows().filter((row) => ids.has(row.dataset.id));
  const query = new URLSearchParams(location.search);
  for (const row of shown) query.append("ids", row.dataset.id);
  const fresh = await load(`/rows?${query}`);
  replaceParts(fresh, "states");
  let moves = ids.size > shown.length;
  for (const row of shown) {
    const now = fresh.querySelector(`tr[data-id="${row.dataset.id}"]`);
    moves ||= now?.className !== row.className; // another state or urgency: another place, perhaps on another page
    if (now) row.replaceWith(document.adoptNode(now));
    else row.remove();
  }
  if (moves) refreshSoon();
  choose(chosen, false);
}

let refreshing = null;
let refreshedAt = 0;
function refreshSoon() {
  refreshing ??= setTimeout(async () => {
    [refreshing, refreshedAt] = [null, Date.now()];
    await refresh("states", "rows").catch(() => say("The server does not respond."));
    choose(chosen, false);
  }, Math.max(0, refreshedAt + REFRESH_MS - Date.now()));
}

enter();
onChange((ids) => {
  if (ids === null || ids.size > 100) refreshSoon();
  else update(ids).catch(() => say("The server does not respond."));
});
