import { ask } from "./desk.js";

const form = document.getElementById("login");
const error = document.getElementById("login-error");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  error.hidden = true;
  try {
    await ask("POST", "/api/session", { token: form.token.value.trim() });
    location.assign(form.dataset.back);
  } catch (problem) {
    error.textContent = problem.status === 401 ? "This token is not valid." : problem.message;
    error.hidden = false;
  }
});
