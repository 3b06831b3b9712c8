import { isTyping, onChange, refresh, say } from "./desk.js";

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

function move(step) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((row) => row.dataset.id === chosen);
  const next = now < 0 ? 0 : Math.min(all.length - 1, Math.max(0, now + step));
  choose(all[next].dataset.id);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.activeElement?.blur();
  if (isTyping(event)) return;
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

choose(chosen, false);
onChange(() =>
  refresh("states", "rows").then(
    () => choose(chosen, false),
    () => say("The server does not respond."),
  ),
);
