import { ask, onChange, refresh, say } from "./desk.js";

const field = (name) => document.getElementById(name);

/** Do something and show what became of it. */
async function act(change, done) {
  try {
    const answer = await change();
    await refresh("status", "access");
    say(done(answer));
  } catch (error) {
    say(error.message);
  }
}

document.addEventListener("click", (event) => {
  const { free, revoke } = event.target.closest?.("button")?.dataset ?? {};
  if (free) act(() => ask("DELETE", `/api/admin/claims/${free}`), () => "The claim is freed.");
  if (revoke) act(() => ask("DELETE", `/api/admin/tokens/${revoke}`), () => "The token is revoked.");
});
field("new-token").addEventListener("submit", (event) => {
  event.preventDefault();
  const body = { name: field("token-name").value, role: field("token-role").value, days: Number(field("token-days").value) };
  act(
    () => ask("POST", "/api/admin/tokens", body),
    ({ token }) => {
      const secret = field("new-secret");
      secret.querySelector("code").textContent = token;
      secret.hidden = false;
      event.target.reset();
      return `A token for ${body.name} is added.`;
    },
  );
});
field("purge").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams({ state: field("purge-state").value, reason: field("purge-reason").value });
  act(() => ask("DELETE", `/api/recordings?${query}`), ({ erased }) => erased === 1 ? "1 recording erased." : `${erased} recordings erased.`);
});
onChange(() => refresh("status", "access").catch(() => say("The server does not respond.")));
