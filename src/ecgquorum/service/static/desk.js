/** Shared by all pages: API requests with the CSRF token, live updates, and messages. */

const csrf = document.querySelector("meta[name=csrf]").content;

/**
 * Send a request to the API; returns its JSON, or null if the response is empty.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 */
export async function ask(method, path, body) {
  const headers = { "X-CSRF-Token": csrf };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await response.text();
  const answer = text ? JSON.parse(text) : null;
  if (!response.ok) throw Object.assign(new Error(errorText(answer) ?? response.statusText), { status: response.status });
  return answer;
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

/** Show a message for a few seconds. */
export function say(text) {
  const toast = document.getElementById("toast");
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (toast.hidden = true), 6000);
}

/** Call back whenever anything has changed, at most twice a second; also at first and after a lost connection. */
export function onChange(callback) {
  const news = new EventSource("/api/events");
  let timer = null;
  news.addEventListener("changed", () => {
    timer ??= setTimeout(() => {
      timer = null;
      callback();
    }, 500);
  });
  window.addEventListener("pagehide", () => news.close());
}

/** Replace the named parts of this page by fresh ones from the server. */
export async function refresh(...parts) {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) throw new Error(response.statusText);
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of parts) {
    const now = document.querySelector(`[data-live="${part}"]`);
    const then = fresh.querySelector(`[data-live="${part}"]`);
    if (now && then) now.replaceWith(document.adoptNode(then));
  }
}

/** Whether a key event belongs to a form field. */
export function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea");
}

document.getElementById("sign-out")?.addEventListener("click", async () => {
  await ask("DELETE", "/api/session").catch(() => {});
  location.assign("/login");
});
