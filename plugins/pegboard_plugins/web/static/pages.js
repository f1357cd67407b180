// All pages but the one of a session.

import { html, useLayoutEffect, useMemo, useState } from "./vendor/preact.js";
import { call, on } from "./client.js";
import { draw } from "./nodes.js";
import { ago, Alert, Bars, count, LongList, money, State, useLoaded, Waiting } from "./parts.js";
import { Days } from "./plot.js";
import { Request, useRequests } from "./requests.js";
import { SessionHead } from "./session.js";

const ROW_PX = 60;

const rowOf = (info, known) => ({
  state: "idle",
  agent: info.agent,
  ...known,
  id: info.id,
  title: info.title,
  updated: info.time.updated,
  cost: info.cost ?? known?.cost ?? 0,
});

function changedRows(rows, type, event) {
  if (type === "session.status") return rows.map((row) => (row.id === event.sessionID ? { ...row, state: event.status.type } : row));
  if (event.info.parentID) return rows;
  const others = rows.filter((row) => row.id !== event.info.id);
  if (type === "session.deleted") return others;
  return [rowOf(event.info, rows.find((row) => row.id === event.info.id)), ...others];
}

export function Sessions() {
  const { value, error } = useLoaded("sessions");
  const [rows, setRows] = useState(null);
  const [search, setSearch] = useState("");
  const requests = useRequests();
  useLayoutEffect(() => setRows(value), [value]);
  useLayoutEffect(() => on(["session.created", "session.updated", "session.deleted", "session.status"], (event, type) => setRows((before) => before && changedRows(before, type, event))), []);
  const found = useMemo(() => {
    const words = search.toLowerCase();
    return (rows ?? []).filter((row) => !words || row.title.toLowerCase().includes(words) || row.id.startsWith(search));
  }, [rows, search]);
  const begin = async () => {
    location.hash = `#/session/${(await call("/session", { body: {} })).id}`;
  };
  const row = (item, props) => {
    const waiting = requests.filter((each) => each.sessionID === item.id).length;
    return html`<a class="row" href=${`#/session/${item.id}`} ...${props}>
      <span class="title">${item.title}</span>
      <span class="facts">${waiting ? html`<span class="state waiting">${waiting} waiting</span>` : html`<${State} state=${item.state} />`} ${ago(item.updated)} · ${item.agent || "no agent"} · ${money(item.cost)}</span>
    </a>`;
  };
  return html`<div class="page full"><div class="page-head"><h1>Sessions</h1>
    <input id="search" type="search" aria-label="Search sessions" placeholder="Search  ( / )" value=${search} onInput=${(event) => setSearch(event.target.value)} />
    <button onClick=${begin}>New session</button></div>
    ${rows === null ? html`<${Waiting} error=${error} />` : html`<p class="facts" role="status">${found.length === 1 ? "1 session" : `${count(found.length)} sessions`}</p>
      <${LongList} items=${found} rowHeight=${ROW_PX} row=${row} label="Sessions" />`}</div>`;
}

export function Requests() {
  const requests = useRequests();
  return html`<div class="page"><h1>Requests</h1>
    ${requests.length ? null : html`<p class="facts" role="status">Nothing waits for an answer.</p>`}
    ${requests.map((request) => html`<${Request} key=${request.id} request=${request} where=${html`<p class="facts"><a href=${`#/session/${request.sessionID}`}>Go to the session</a></p>`} />`)}</div>`;
}

const Files = ({ files, prefix }) => html`${files.map((file) => html`<details class="file" open=${files.length < 6} key=${prefix + file.file}>
  <summary>${file.file} <span class="s-added">+${file.additions}</span> <span class="s-removed">-${file.deletions}</span> <span class="facts">${file.status}</span></summary>${file.nodes.map(draw)}</details>`)}`;

export function Changes({ id }) {
  const { value, error } = useLoaded(`session/${id}/changes`, ["session.idle", "session.diff"]);
  const [byTurn, setByTurn] = useState(false);
  if (value === null) return html`<${Waiting} error=${error} />`;
  return html`<div class="page"><${SessionHead} info=${value.info} page="/changes" />
    <div class="choices" role="group" aria-label="Order"><button aria-pressed=${!byTurn} onClick=${() => setByTurn(false)}>By file</button><button aria-pressed=${byTurn} onClick=${() => setByTurn(true)}>By turn</button></div>
    ${byTurn
      ? value.turns.map((turn) => html`<section key=${turn.id}><h2>${turn.prompt}</h2><${Files} files=${turn.files} prefix=${turn.id} /></section>`)
      : html`<${Files} files=${value.total} prefix="" />`}
    ${(byTurn ? value.turns : value.total).length ? null : html`<p class="facts">The session changed no files.</p>`}</div>`;
}

export function Cost() {
  const [days, setDays] = useState(30);
  const { value, error } = useLoaded(`cost?days=${days}`, ["session.idle"]);
  const choose = html`<label>Last <select value=${days} onChange=${(event) => setDays(Number(event.target.value))}>${[1, 7, 30, 90, 365].map((each) => html`<option value=${each}>${each}</option>`)}</select> days</label>`;
  return html`<div class="page"><div class="page-head"><h1>Cost</h1>${choose}</div>
    ${value === null ? html`<${Waiting} error=${error} />` : html`
      ${value.unread ? html`<p class="s-warning">The tables by model, agent and plugin leave out the ${count(value.unread)} oldest sessions.</p>` : null}
      ${value.byDay.length > 1 ? html`<${Days} days=${value.byDay} />` : null}
      <${Bars} title="By day" rows=${value.byDay} />
      <${Bars} title="By model" rows=${value.models} />
      <${Bars} title="By agent" rows=${value.agents} />
      <${Bars} title="By plugin whose tools the answer calls" rows=${value.plugins} />
      <${Bars} title="By session" rows=${value.sessions} counted="" link=${(row) => `#/session/${row.id}`} />
      ${value.sessions.length ? null : html`<p class="facts">No session has cost anything in these days.</p>`}`}</div>`;
}

const Table = ({ title, head, rows, empty, kind }) => html`<section><h2>${title}</h2>${rows.length
  ? html`<div class="wide" tabindex="0" role="region" aria-label=${title}><table class=${kind}><thead><tr>${head.map((each) => html`<th scope="col">${each}</th>`)}</tr></thead><tbody>${rows.map((row) => html`<tr>${row.map((each) => html`<td>${each}</td>`)}</tr>`)}</tbody></table></div>`
  : html`<p class="facts">${empty}</p>`}</section>`;

export function Hooks({ id }) {
  const { value, error, reload } = useLoaded(`hooks?session=${id ?? ""}`, ["session.idle"]);
  const head = useLoaded(id && `session/${id}?last=1`);
  if (value === null) return html`<${Waiting} error=${error} />`;
  const ms = (number) => number.toFixed(1);
  return html`<div class="page">${head.value ? html`<${SessionHead} info=${head.value.info} page="/hooks" />` : html`<h1>Hooks</h1>`}
    ${value.traced ? null : html`<p>Changes are not recorded yet. <button onClick=${() => call("/pegboard/trace", { body: {} }).then(reload)}>Record changes from now on</button></p>`}
    ${value.system.length ? html`<${Table} title="System prompt" kind="authors" head=${["author", "line"]} rows=${value.system.map((line) => [line.plugin || "agent", html`<code>${line.text}</code>`])} />` : null}
    <section><h2>Changes</h2>${value.changes.map((each) => html`<details><summary>${each.plugin} · ${each.hook} <span class="facts">${ms(each.ms)} ms</span></summary>${each.nodes.map(draw)}</details>`)}
      ${value.changes.length ? null : html`<p class="facts">No plugin has changed anything since recording began.</p>`}</section>
    <${Table} title="Lost caches" head=${["plugin", "hook", "line", "tokens"]} rows=${value.losses.map((each) => [each.plugin, each.hook, each.line, count(each.tokens)])} empty=${id ? "No plugin has changed the beginning of a request." : "The page of a session has its own."} />
    <${Table} title="Time in hooks, of the whole project" head=${["plugin", "hook", "calls", "failures", "total ms", "longest ms"]} rows=${value.times.map((each) => [each.plugin, each.hook, count(each.calls), count(each.failures), ms(each.totalMs), ms(each.maxMs)])} empty="No hook was called yet." /></div>`;
}

export function Plugins() {
  const { value, error } = useLoaded("plugins", ["plugin.failed", "pegboard.plugin.failed"]);
  if (value === null) return html`<${Waiting} error=${error} />`;
  const order = ["failed", "quarantined", "blocked", "works"];
  const plugins = [...value.plugins].sort((one, other) => order.indexOf(one.state) - order.indexOf(other.state) || one.name.localeCompare(other.name));
  return html`<div class="page"><h1>Plugins</h1>
    ${value.untrusted.length ? html`<section><h2>Not trusted</h2><ul>${value.untrusted.map((path) => html`<li><code>${path}</code></li>`)}</ul><p class="facts"><code>pegboard trust allow</code> shows and trusts them.</p></section>` : null}
    ${value.problems.length ? html`<section><h2>Problems</h2><ul>${value.problems.map((text) => html`<li class="s-error">${text}</li>`)}</ul></section>` : null}
    <${Table} title="All plugins" head=${["plugin", "state", "from", "tools", "hooks", "import ms"]} empty="There are no plugins."
      rows=${plugins.map((each) => [html`${each.name} <span class="facts">${each.version}</span>`, html`<${State} state=${each.state} />${each.error ? html` <span class="s-error">${each.error}</span>` : null}${each.quarantined.length ? html` <span class="s-error">${each.quarantined.join(", ")}</span>` : null}`, each.origin, each.tools.join(", "), each.hooks.join(", "), each.loadMs.toFixed(1)])} /></div>`;
}

export function PluginPage({ plugin, name }) {
  const { value, error, reload } = useLoaded(`page/${encodeURIComponent(plugin)}/${encodeURIComponent(name)}`, ["session.idle"]);
  if (value === null) return html`<${Waiting} error=${error} />`;
  return html`<div class="page"><div class="page-head"><h1>${value.title}</h1><button onClick=${reload}>Load again</button></div>
    <${Alert} text=${value.error} />${value.nodes?.map(draw)}</div>`;
}
