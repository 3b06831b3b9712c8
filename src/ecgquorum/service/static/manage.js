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
      const changes = { urgent: field("urgent").checked, assigned_to: field("assigned").value };
      if (name && name !== document.querySelector("h1").textContent) changes.name = name;
      const now = await ask("PATCH", path, changes);
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
