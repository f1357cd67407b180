// Pieces that several pages use.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { data, on } from "./client.js";

/** The amount in US dollars, or that it is not known. */
export const money = (cost) => (cost === null ? "cost unknown" : `$${cost.toFixed(cost < 0.1 && cost > 0 ? 4 : 2)}`);
export const count = (number) => number.toLocaleString("en");

const MINUTE = 60_000;

/** How long ago an instant in milliseconds was. */
export function ago(moment) {
  const minutes = Math.round((Date.now() - moment) / MINUTE);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 60 * 24) return `${Math.round(minutes / 60)} h ago`;
  return new Date(moment).toISOString().slice(0, 10);
}

/** The data at a path, none without one; loaded again at these events. */
export function useLoaded(path, events = []) {
  const [state, setState] = useState({ value: null, error: "" });
  const run = useRef(0);
  const reload = () => {
    const mine = (run.current += 1);
    (path ? data(path) : Promise.resolve(null)).then(
      (value) => run.current === mine && setState({ value, error: "" }),
      (error) => run.current === mine && setState((before) => ({ ...before, error: error.message })),
    );
  };
  useLayoutEffect(() => {
    setState({ value: null, error: "" });
    reload();
    return on(["server.resync", ...events], reload);
  }, [path]);
  return { ...state, reload };
}

/** A page that loads, or its error. */
export const Waiting = ({ error }) => (error ? html`<${Alert} text=${error} />` : html`<p class="facts" role="status">Loading…</p>`);

export const Alert = ({ text }) => text && html`<p class="s-error" role="alert">${text}</p>`;

/** A state by its name, never by its colour alone. */
export const State = ({ state }) => html`<span class=${`state ${state}`}>${state === "idle" ? "" : state}</span>`;

const ROOM = 6;

/** A list with only its visible rows in the page; arrow keys, Home and End move. */
export function LongList({ items, rowHeight, row, label }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(() => box.current && setHeight(box.current.clientHeight));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / rowHeight) - ROOM);
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + ROOM);
  const move = (event) => {
    const page = Math.max(1, Math.floor(height / rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -items.length, End: items.length };
    const step = steps[event.key];
    if (step === undefined || items.length === 0) return;
    event.preventDefault();
    const next = Math.min(items.length - 1, Math.max(0, active + step));
    setActive(next);
    const at = next * rowHeight;
    const element = box.current;
    if (at < element.scrollTop) element.scrollTop = at;
    if (at + rowHeight > element.scrollTop + height) element.scrollTop = at + rowHeight - height;
    setTop(element.scrollTop);
    requestAnimationFrame(() => requestAnimationFrame(() => element.querySelector(`[data-row="${next}"] a`)?.focus()));
  };
  return html`<div class="long-list" ref=${box} onScroll=${() => setTop(box.current.scrollTop)} onKeyDown=${move}>
    <ul aria-label=${label} style=${{ height: `${items.length * rowHeight}px` }}>
      ${items.slice(first, last).map((item, at) => {
        const place = first + at;
        return html`<li key=${item.id} data-row=${place} aria-setsize=${items.length} aria-posinset=${place + 1}
          style=${{ transform: `translateY(${place * rowHeight}px)`, height: `${rowHeight}px` }}>
          ${row(item, { tabIndex: place === active ? 0 : -1, onFocus: () => setActive(place) })}
        </li>`;
      })}
    </ul>
  </div>`;
}

/** A table of amounts with a bar for each; `counted` names what the rows count, if anything. */
export function Bars({ title, rows, link, counted = "requests" }) {
  if (rows.length === 0) return null;
  const sized = rows.some((row) => row.cost > 0) ? (row) => row.cost ?? 0 : (row) => row.tokens;
  const most = Math.max(...rows.map(sized), 1e-9);
  const number = (value) => html`<td class="number">${value}</td>`;
  const heads = ["cost", counted, "tokens"].filter(Boolean);
  return html`<section class="bars"><h2>${title}</h2><table>
    <thead><tr><th scope="col">name</th><th scope="col" class="bar-head">share</th>${heads.map((head) => html`<th scope="col" class="number">${head}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.name + row.id}>
      <th scope="row">${link ? html`<a href=${link(row)}>${row.name}</a>` : row.name}</th>
      <td class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width=${(100 * sized(row)) / most} height="10" /></svg></td>
      ${number(money(row.cost))}${counted ? number(count(row.requests)) : null}${number(count(row.tokens))}</tr>`)}</tbody>
  </table></section>`;
}
