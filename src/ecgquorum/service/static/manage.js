/** Urgency, assignment and name of a case; erasing it. */

import { ask, say } from "./desk.js";

const { id } = document.getElementById("case").dataset;
const path = `/api/recordings/${id}`;
const field = (name) => document.getElementById(name);

document.addEventListener("submit", async (event) => {
  try {
    if (event.target.id === "manage") {
      event.preventDefault();
      const name = field("new-name")?.value;
      const [urgent, assigned, changes] = [field("urgent"), field("assigned"), {}];
      if (urgent.checked !== urgent.defaultChecked) changes.urgent = urgent.checked;
      if (assigned.value !== assigned.dataset.before) changes.assigned_to = assigned.value;
      if (name && name !== document.querySelector("h1").textContent) changes.name = name;
      const now = await ask("PATCH", path, changes);
      urgent.defaultChecked = urgent.checked;
      assigned.dataset.before = assigned.value;
      document.querySelector("h1").textContent = now.name;
      say("Saved.");
    } else if (event.target.id === "erase") {
      event.preventDefault();
      await ask("DELETE", `${path}?${new URLSearchParams({ reason: field("erase-reason").value })}`);
      location.assign("/");
    }
  } catch (error) {
    say(error.message);
  }
});
