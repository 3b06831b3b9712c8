/** Shared by all pages: API requests with the CSRF token, live updates, and messages. */

const AUTOMATIC = { "X-Automatic": "yes" };
const csrf = document.querySelector("meta[name=csrf]").content;

/**
 * Send a request to the API; returns its JSON, or null if the response is empty.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {{automatic?: boolean}} [options] automatic: no person has asked for it; it does not extend the session
 */
export async function ask(method, path, body, { automatic = false } = {}) {
  const headers = { "X-CSRF-Token": csrf, ...(automatic ? AUTOMATIC : {}) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  const answer = text ? JSON.parse(text) : null;
  if (!response.ok) throw Object.assign(new Error(errorText(answer) ?? response.statusText), { status: response.status });
  return answer;
}

/** Whether a dialog is open: then the page's keys are not meant. */
export function hasDialog() {
  return document.querySelector("dialog[open]") !== null;
}

/** Send a file as the body of a PUT; `progressed` gets the fraction that was sent. */
export function send(file, path, progressed) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path);
    request.setRequestHeader("X-CSRF-Token", csrf);
    request.upload.addEventListener("progress", (event) => progressed(event.loaded / (event.total || 1)));
    request.addEventListener("error", () => reject(new Error("the server does not respond, or refuses a file of this size")));
    request.addEventListener("load", () => {
      let answer = null;
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        // not JSON: the status text is used
      }
      if (request.status < 300) resolve(answer);
      else reject(new Error(errorText(answer) ?? request.statusText));
    });
    request.send(file);
  });
}

function errorText(answer) {
  const detail = answer?.detail;
  return Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : detail;
}

/** Show a message for a few seconds, with buttons if there are any. */
export function say(text, buttons = [], forMs = 6000) {
  const toast = document.getElementById("toast");
  toast.replaceChildren(text, ...buttons);
  toast.hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (toast.hidden = true), forMs);
}

/**
 * Call back with the ids of the recordings that changed, or null for any, at most twice a second.
 *
 * All tabs share one event stream, since a browser has only six connections to a server. Nothing comes while the tab is
 * hidden; what changed meanwhile comes when it is shown again.
 */
export function onChange(callback) {
  let known = Number(document.body.dataset.change ?? -1);
  let ids = new Set();
  let timer = null;
  const changed = (change) => {
    if (change.lost) return checkSession();
    if (change.number <= known) return;
    known = change.number;
    ids = change.ids === null || ids === null ? null : new Set([...ids, ...change.ids]);
    timer ??= setTimeout(() => {
      const all = ids;
      [timer, ids] = [null, new Set()];
      callback(all);
    }, 500);
  };
  const tell = connect(changed);
  const show = () => tell({ visible: document.visibilityState === "visible", number: known });
  document.addEventListener("visibilitychange", show);
  window.addEventListener("pageshow", show); // also when the browser brings the page back
  show();
  window.addEventListener("pagehide", () => tell({ closed: true, number: known }));
}

function connect(changed) {
  if (window.SharedWorker) {
    const worker = new SharedWorker("/static/events.js", { name: "events" });
    worker.port.addEventListener("message", ({ data }) => changed(data));
    worker.port.start();
    return (message) => worker.port.postMessage(message);
  }
  let stream = null;
  let wanted = {};
  const settle = () => {
    if (wanted.visible && stream) return;
    stream?.close();
    stream = wanted.visible ? new EventSource(`/api/events?since=${wanted.number}`) : null;
    stream?.addEventListener("changed", ({ data }) => changed(JSON.parse(data)));
    stream?.addEventListener("error", () => {
      if (stream?.readyState !== EventSource.CLOSED) return;
      stream = null; // it was refused, and does not come back by itself
      changed({ lost: true });
      setTimeout(settle, 5000);
    });
  };
  return (message) => {
    wanted = message;
    settle();
  };
}

/** Go to the sign-in page if the session has ended. */
async function checkSession() {
  const response = await fetch("/api/recordings?limit=1", { headers: AUTOMATIC }).catch(() => null);
  if (response?.status === 401) location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
}

/** A part of a page from the server, parsed. */
export async function load(path) {
  const response = await fetch(path, { headers: { Accept: "text/html", ...AUTOMATIC } });
  if (!response.ok || response.redirected) throw new Error(response.statusText || "signed out");
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Replace the named parts of this page by those of another document. */
export function replaceParts(fresh, ...parts) {
  for (const part of parts) {
    const now = document.querySelector(`[data-live="${part}"]`);
    const then = fresh.querySelector(`[data-live="${part}"]`);
    if (now && then) {
      now.replaceWith(document.adoptNode(then));
      showLocalTimes(then);
    }
  }
}

/** Replace the named parts of this page by fresh ones from the server. */
export async function refresh(...parts) {
  replaceParts(await load(location.href), ...parts);
}

/** Show times in the reader's own time zone; the title keeps UTC. */
export function showLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.title = time.textContent;
    const date = new Date(time.dateTime);
    const options = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" };
    time.textContent = new Intl.DateTimeFormat("sv-SE", options).format(date);
  }
}

/** Whether a key event belongs to a form field. */
export function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea");
}

// On a phone the pages scroll sideways: the one that is open must be seen.
document.querySelector(".top nav [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });

/** The page's own keys are listed by `?`. */
const keys = document.getElementById("keys");
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && !isTyping(event) && !keys.open) {
    keys.showModal();
    event.preventDefault();
  }
});
document.getElementById("show-keys")?.addEventListener("click", () => keys.showModal());

showLocalTimes(document);
document.getElementById("sign-out")?.addEventListener("click", async () => {
  await ask("DELETE", "/api/session").catch(() => {});
  location.assign("/login");
});
