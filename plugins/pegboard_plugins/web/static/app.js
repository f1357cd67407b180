// The shell: sign-in, navigation, the state of the connection.

import { html, render, useEffect, useErrorBoundary, useState } from "./vendor/preact.js";
import { connection, directory, entering, follow, newest, onConnection, signIn } from "./client.js";
import { Changes, Cost, Hooks, PluginPage, Plugins, Requests, Sessions } from "./pages.js";
import { useRequests, watchRequests } from "./requests.js";
import { SessionView } from "./session.js";
import { Alert, useLoaded } from "./parts.js";

const PAGES = { "": Sessions, requests: Requests, cost: Cost, hooks: Hooks, plugins: Plugins };

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
  return error ? html`<div class="page"><h1>This page has failed</h1><${Alert} text=${String(error)} /></div>` : html`<${Page} path=${path} />`;
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
  const { value: pages } = useLoaded("pages");
  useEffect(() => {
    const keys = (event) => {
      const search = document.getElementById("search");
      if (event.key !== "/" || !search || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      search.focus();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  useEffect(() => {
    document.title = requests.length ? `(${requests.length}) Pegboard` : "Pegboard";
  }, [requests.length]);
  const current = path[0] === "session" ? "" : path.join("/");
  const link = (to, title) => html`<a href=${`#/${to}`} aria-current=${current === to ? "page" : null}>${title}${to === "requests" && requests.length ? html` <span class="badge">${requests.length}</span>` : null}</a>`;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the content</a>
    <header class="top"><span class="name">Pegboard</span><nav aria-label="Pages">${Object.entries(PAGES).map(([name, page]) => link(name, page.name))}
      ${pages?.map((page) => link(`page/${page.plugin}/${page.name}`, page.title))}</nav>
      <span class="facts folder" title=${directory()}>${directory().split("/").pop()}</span></header>
    <${Notice} state=${state} />
    <main id="main" tabindex="-1"><${Guarded} key=${path.join("/")} path=${path} /></main>`;
}

async function start() {
  const root = document.getElementById("app");
  for (let isIn = await entering; !isIn; isIn = await signIn()) {
    render(html`<main id="main"><${SignedOut} /></main>`, root);
    await new Promise((done) => setTimeout(done, 2000));
  }
  begin(root);
}

/** Draw the pages once the next event is known, so that no event is lost. */
function begin(root) {
  const draw = () => {
    end();
    render(html`<${App} />`, root); // its data first
    watchRequests().catch(() => {});
  };
  const end = onConnection(draw);
  if (newest !== null) draw();
  follow();
}

start();
