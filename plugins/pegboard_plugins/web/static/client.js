// Requests to the server, the session of this browser, and the stream of events.

const channel = new BroadcastChannel("pegboard");
const kept = sessionStorage;
const ASK_MS = 300;
const HIDDEN_MS = 60_000;
const RETRY_MS = [250, 500, 1000, 2000, 5000];
let access = JSON.parse(kept.getItem("access") ?? "null");
const changed = new Set();

/** The state of the connection: "starting", "open", "lost" or "signed-out". */
export let connection = "starting";

/** The id of the newest event at the sign-in, null in a page that was loaded again. */
export let newest = null;

export const mayApprove = () => Boolean(access?.approve);
export const directory = () => access?.directory ?? "";

/** Call `heard` when the state of the connection changes; return what ends that. */
export function onConnection(heard) {
  changed.add(heard);
  return () => changed.delete(heard);
}

function become(state) {
  connection = state;
  for (const heard of changed) heard(state);
}

function keep(next, { tell }) {
  access = next;
  kept.setItem("access", JSON.stringify(access));
  if (tell) channel.postMessage({ access });
}

// All tabs of a server share a sign-in.
channel.onmessage = ({ data }) => {
  if (data.ask && access) channel.postMessage({ access });
  if (data.access && data.access.proof !== access?.proof) {
    keep(data.access, { tell: false });
    wake();
  }
};

let wake = () => {};

/** Sign in by the key in the address, or by another tab. */
export async function signIn() {
  const words = new URLSearchParams(location.hash.slice(1));
  const key = words.get("k");
  if (key) {
    history.replaceState(null, "", `${location.pathname}#/`);
    const response = await fetch("/pegboard/browser/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key }),
    });
    if (response.ok) {
      const { event, ...rights } = await response.json();
      newest = event;
      keep({ ...rights, directory: words.get("d") ?? "" }, { tell: true });
      wake();
    }
  }
  if (access === null) {
    channel.postMessage({ ask: true });
    await new Promise((done) => setTimeout(done, ASK_MS));
  }
  return access !== null;
}

/** The first sign-in, which begins before the other modules are there. */
export const entering = signIn();

function headers(more) {
  const found = { "x-pegboard-proof": access?.proof ?? "", ...more };
  if (access?.directory) found["x-opencode-directory"] = encodeURIComponent(access.directory);
  return found;
}

const CONTROLS = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const spell = (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`;

/** Return the value of a JSON text, with bidirectional controls spelt out. */
const parsed = (text) => JSON.parse(text, (_, value) => (typeof value === "string" ? value.replace(CONTROLS, spell) : value));

/** Return the JSON of an answer; an error of the server is thrown with its text. */
export async function call(path, { body, method = body === undefined ? "GET" : "POST" } = {}) {
  const more = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(path, {
    method,
    headers: headers(more),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    redirect: "error",
  });
  if (response.status === 401) become("signed-out");
  if (!response.ok) throw new Error(await problem(response));
  return response.status === 204 ? null : parsed(await response.text());
}

async function problem(response) {
  const text = await response.text();
  try {
    const found = parsed(text);
    return found.data?.message ?? found.message ?? text;
  } catch {
    return `${response.status} ${text.slice(0, 200)}`;
  }
}

export const data = (path) => call(`/plugin/web/data/${path}`);

const listeners = new Map();

/** Call `heard` with the properties of each event of these types; return what ends that. */
export function on(types, heard) {
  for (const type of types) {
    if (!listeners.has(type)) listeners.set(type, new Set());
    listeners.get(type).add(heard);
  }
  return () => types.forEach((type) => listeners.get(type).delete(heard));
}

function tell(event) {
  for (const heard of listeners.get(event.type) ?? []) heard(event.properties, event.type);
}

// A browser has few connections to a server: a hidden tab releases its own.
let current = null;
let hiding = 0;

/** Wait until the tab is seen; a tab that stays hidden has its stream ended. */
function seen() {
  return document.visibilityState === "visible" ? Promise.resolve() : new Promise((done) => (wake = done));
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.visibilityState === "visible") wake();
  else hiding = setTimeout(() => current?.abort(), HIDDEN_MS);
});

/** Follow the project's events for good; after a pause, go on from the last one. */
export async function follow() {
  let last = newest;
  for (let failures = 0; ; failures += 1) {
    if (connection !== "starting") await seen();
    current = new AbortController();
    try {
      const more = last === null ? {} : { "last-event-id": last };
      const { signal } = current;
      const response = await fetch("/event?ids=true", { headers: headers(more), cache: "no-store", signal });
      if (response.status === 401) {
        become("signed-out");
        await new Promise((done) => (wake = done));
        last = null;
        failures = 0;
        continue;
      }
      if (!response.ok) throw new Error(String(response.status));
      if (last === null) tell({ type: "server.resync", properties: {} });
      become("open");
      failures = 0;
      await read(response.body, (id) => (last = id));
    } catch (error) {
      if (!(error instanceof TypeError) && error.name !== "AbortError") console.warn(error);
    }
    if (current.signal.aborted) continue;
    if (connection !== "signed-out") become("lost");
    const pause = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
    await new Promise((done) => {
      wake = done;
      setTimeout(done, pause);
    });
  }
}

async function read(body, note) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      for (const line of frame.split("\n")) {
        if (line.startsWith("id: ")) note(line.slice(4));
        else if (line.startsWith("data: ")) tell(parsed(line.slice(6)));
      }
    }
  }
}
