/** What every page needs: requests that carry the page's token, news of changes, and a line to say what went wrong. */

const csrf = document.querySelector("meta[name=csrf]").content;

/**
 * Ask the API; gives its JSON, or null where it says nothing.
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
  if (!response.ok) throw Object.assign(new Error(told(answer) ?? response.statusText), { status: response.status });
  return answer;
}

/** Send a file as the body of a PUT; `progressed` gets the share that is behind us. */
export function send(file, path, progressed) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path);
    request.setRequestHeader("X-CSRF-Token", csrf);
    request.upload.addEventListener("progress", (event) => progressed(event.loaded / (event.total || 1)));
    request.addEventListener("error", () => reject(new Error("the desk does not answer, or refuses a file of this size")));
    request.addEventListener("load", () => {
      let answer = null;
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        // what is no JSON has nothing to tell
      }
      if (request.status < 300) resolve(answer);
      else reject(new Error(told(answer) ?? request.statusText));
    });
    request.send(file);
  });
}

function told(answer) {
  const detail = answer?.detail;
  return Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : detail;
}

/** Say something for a few seconds. */
export function say(text) {
  const toast = document.getElementById("toast");
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (toast.hidden = true), 6000);
}

/** Call back whenever anything has changed at the desk, at most twice a second; also at first, and when the line was cut:
 *  something may have changed since the page was made. */
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

/** Put fresh content from the server into the parts of this page that are named. */
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

/** Whether a key was meant for something that one types or chooses in. */
export function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea");
}

document.getElementById("sign-out")?.addEventListener("click", async () => {
  await ask("DELETE", "/api/session").catch(() => {});
  location.assign("/login");
});
