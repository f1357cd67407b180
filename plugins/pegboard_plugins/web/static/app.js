// The shell: sign-in, navigation, the state of the connection.

import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/preact.js";
import { connection, data, directory, follow, onConnection, signIn } from "./client.js";
import { Changes, Cost, Hooks, PluginPage, Plugins, Requests, Sessions } from "./pages.js";
import { useRequests, watchRequests } from "./requests.js";
import { SessionView } from "./session.js";
import { useLoaded } from "./parts.js";

const PAGES = { "": Sessions, requests: Requests, cost: Cost, hooks: Hooks, plugins: Plugins };
const TITLES = [["", "Sessions"], ["requests", "Requests"], ["cost", "Cost"], ["hooks", "Hooks"], ["plugins", "Plugins"]];

function useHash() {
  const read = () => location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const [path, setPath] = useState(read());
  useEffect(() => {
    const change = () => {
      if (location.hash.startsWith("#k=")) signIn().then(() => setPath(read()));
      else setPath(read());
    };
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return path;
}

function Page({ path }) {
  const [first, second, third] = path;
  if (first === "session" && third === "changes") return html`<${Changes} key=${second} id=${second} />`;
  if (first === "session" && third === "hooks") return html`<${Hooks} key=${second} id=${second} />`;
  if (first === "session") return html`<${SessionView} key=${second} id=${second} />`;
  if (first === "page") return html`<${PluginPage} key=${second + third} plugin=${second} name=${third} />`;
  const Found = PAGES[first];
  return Found ? html`<${Found} />` : html`<div class="page"><h1>No such page</h1><p><a href="#/">Go to the sessions</a></p></div>`;
}

/** A page; an error in one leaves the others as they are. */
function Guarded({ path }) {
  const [error] = useErrorBoundary((failure) => console.error(failure));
  return error ? html`<div class="page"><h1>This page has failed</h1><p class="s-error" role="alert">${String(error)}</p></div>` : html`<${Page} path=${path} />`;
}

const SignedOut = () => html`<div class="page signed-out" role="alert"><h1>Signed out</h1>
  <p>Run <code>pegboard web</code> in the project's folder. This page goes on as soon as the new one is signed in.</p></div>`;

function Notice({ state }) {
  if (state === "open" || state === "starting") return null;
  const text = state === "lost" ? "The server does not answer. Trying again…" : "Signed out: run `pegboard web` in a terminal. This page then goes on.";
  return html`<p class="notice" role="alert">${text}</p>`;
}

function App() {
  const path = useHash();
  const [state, setState] = useState(connection);
  useEffect(() => onConnection(setState), []);
  const requests = useRequests();
  const { value: pages } = useLoaded(() => data("pages"), []);
  useEffect(() => {
    const keys = (event) => {
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key === "/" && !isTyping && document.getElementById("search")) {
        event.preventDefault();
        document.getElementById("search").focus();
      }
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  useEffect(() => {
    const waiting = requests.length ? `(${requests.length}) ` : "";
    document.title = `${waiting}Pegboard`;
  }, [requests.length]);
  const current = path[0] === "session" ? "" : path[0];
  const link = (name, title) => html`<a href=${`#/${name}`} aria-current=${current === name ? "page" : null}>${title}${name === "requests" && requests.length ? html` <span class="badge">${requests.length}</span>` : null}</a>`;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <header class="top"><span class="name">Pegboard</span><nav aria-label="Pages">${TITLES.map(([name, title]) => link(name, title))}
      ${(pages ?? []).map((page) => html`<a href=${`#/page/${page.plugin}/${page.name}`} aria-current=${path[0] === "page" && path[1] === page.plugin && path[2] === page.name ? "page" : null}>${page.title}</a>`)}</nav>
      <span class="facts folder" title=${directory()}>${directory().split("/").pop()}</span></header>
    <${Notice} state=${state} />
    <main id="main" tabindex="-1"><${Guarded} key=${path.join("/")} path=${path} /></main>`;
}

async function start() {
  const root = document.getElementById("app");
  const isIn = await signIn();
  if (!isIn) {
    render(html`<main id="main"><${SignedOut} /></main>`, root);
    const waiting = setInterval(async () => {
      if (await signIn()) {
        clearInterval(waiting);
        begin(root);
      }
    }, 2000);
    return;
  }
  begin(root);
}

/** Draw the pages once the events are followed, so that none falls between two requests. */
function begin(root) {
  const end = onConnection((state) => {
    if (state === "starting") return;
    end();
    if (state === "open") watchRequests().catch(() => {});
    else onConnection((next) => next === "open" && watchRequests().catch(() => {}));
    render(html`<${App} />`, root);
  });
  follow();
}

start();
