import { ask, onChange, say, send } from "./desk.js";

const AT_ONCE = 4;
const table = document.getElementById("uploads");
const body = table.tBodies[0];
const drop = document.getElementById("drop");
const input = document.getElementById("files");
const waiting = [];
const following = new Map();
let running = 0;

function add(files) {
  for (const file of files) {
    const row = body.insertRow();
    table.hidden = false;
    row.insertCell().textContent = file.name;
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.value = 0;
    row.insertCell().append(bar);
    waiting.push({ file, bar, cell: row.insertCell() });
  }
  next();
}

async function next() {
  while (running < AT_ONCE && waiting.length) {
    running += 1;
    one(waiting.shift()).finally(() => {
      running -= 1;
      next();
    });
  }
}

async function one({ file, bar, cell }) {
  try {
    const path = `/api/recordings?name=${encodeURIComponent(file.name)}`;
    const answer = await send(file, path, (share) => (bar.value = share));
    bar.value = 1;
    show(cell, answer, answer.new ? "" : "uploaded before; ");
    following.set(cell, answer.id);
  } catch (error) {
    bar.removeAttribute("value");
    bar.hidden = true;
    cell.className = "error";
    cell.textContent = error.message;
  }
}

function show(cell, { id, state, missing }, before = "") {
  const link = document.createElement("a");
  link.href = table.dataset.opens === "yes" ? `/cases/${id}` : `/?q=${id}`;
  link.textContent = state;
  cell.replaceChildren(before, link, missing.length ? `, missing: ${missing.join(", ")}` : "");
}

input.addEventListener("change", () => {
  add(input.files);
  input.value = "";
});
for (const name of ["dragenter", "dragover"])
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("is-over");
  });
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("is-over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  add(event.dataTransfer.files);
});

onChange(async (ids) => {
  for (const [cell, id] of following) {
    if (ids !== null && !ids.has(id)) continue;
    try {
      const now = await ask("GET", `/api/recordings/${id}`, undefined, { automatic: true });
      show(cell, now);
      if (!["waiting", "incomplete"].includes(now.state)) following.delete(cell);
    } catch {
      say("The server does not respond.");
      return;
    }
  }
});
