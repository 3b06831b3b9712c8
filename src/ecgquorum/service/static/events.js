/** A shared worker: one event stream for all tabs of this browser, open while any of them is visible. */

const tabs = new Map(); // port -> whether its tab is visible
let stream = null;
let number = -1; // the last change that is known

function open() {
  if (stream) return;
  stream = new EventSource(`/api/events?since=${number}`);
  stream.addEventListener("changed", ({ data }) => {
    const change = JSON.parse(data);
    number = change.number;
    for (const [port, visible] of tabs) if (visible) port.postMessage(change);
  });
  stream.addEventListener("error", () => {
    // A stream that was refused does not come back by itself.
    if (stream?.readyState !== EventSource.CLOSED) return;
    stream = null;
    for (const [port, visible] of tabs) if (visible) port.postMessage({ lost: true });
    setTimeout(settle, 5000);
  });
}

function settle() {
  if ([...tabs.values()].some(Boolean)) open();
  else {
    stream?.close();
    stream = null;
  }
}

self.addEventListener("connect", ({ ports: [port] }) => {
  tabs.set(port, false);
  port.addEventListener("message", ({ data }) => {
    if (data.closed) tabs.delete(port);
    else tabs.set(port, data.visible);
    if (data.visible && data.number < number) port.postMessage({ number, ids: null });
    else if (data.visible && !stream) number = Math.max(number, data.number);
    settle();
  });
  port.start();
});
