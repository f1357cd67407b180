// The page of a session.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { call, data, on } from "./client.js";
import { LiveTail } from "./livetail.js";
import { draw } from "./nodes.js";
import { ago, Alert, money, State, useLoaded, Waiting } from "./parts.js";
import { Request, useRequests } from "./requests.js";

const STEP = 40;
const AGAIN_MS = 120;
const POLL_MS = 500;

/** What the page knows of a session, and how events change it. */
class Conversation {
  constructor(id, paint) {
    this.id = id;
    this.paint = paint;
    this.page = null;
    this.error = "";
    this.last = STEP;
    this.dirty = new Set();
    this.tail = null;
    this.timer = 0;
    this.busy = false;
    this.warnings = new Set();
  }

  async load() {
    try {
      const page = await data(`session/${this.id}?last=${this.last}`);
      this.page = page;
      this.error = "";
      this.tail?.clear();
      page.live.forEach((each) => this.tail?.put(each));
      if (page.live.length) this.mark(page.live[0].message, POLL_MS);
    } catch (error) {
      this.error = error.message;
    }
    this.paint();
  }

  mark(message, after = AGAIN_MS) {
    this.dirty.add(message);
    if (!this.timer && !this.busy) this.timer = setTimeout(() => this.refresh(), after);
  }

  /** Ask again for the messages that have changed, one after the other. */
  async refresh() {
    this.timer = 0;
    this.busy = true;
    let pause = AGAIN_MS;
    const [message] = this.dirty;
    this.dirty.delete(message);
    try {
      const { message: found, live } = await data(`session/${this.id}/message/${message}`);
      const at = this.page.messages.findIndex((each) => each.id === message);
      const messages = [...this.page.messages];
      if (at < 0) messages.push(found);
      else messages[at] = found;
      messages.sort((one, other) => (one.id < other.id ? -1 : 1));
      this.page = { ...this.page, messages };
      this.tail?.settle(message, live.map((each) => each.part));
      live.forEach((each) => this.tail?.put(each));
      this.paint();
      if (live.length && this.tail?.lacks(message)) {
        if (this.dirty.size === 0) pause = POLL_MS;
        this.dirty.add(message);
      }
    } catch (error) {
      console.warn(error); // the message is gone, or the connection: a resync loads all again
    }
    this.busy = false;
    if (this.dirty.size) this.timer = setTimeout(() => this.refresh(), pause);
  }

  hear(type, event) {
    if (this.page === null || event.sessionID !== this.id) return;
    if (type === "message.part.delta") {
      if (!this.tail?.add(event.partID, event.delta)) this.mark(event.messageID, POLL_MS);
    } else if (type === "message.part.updated") {
      const { part } = event;
      const isText = part.type === "text" || part.type === "reasoning";
      if (isText && part.time && !part.time.end && !part.text) this.tail?.begin(part.messageID, part.id, part.type);
      else this.mark(part.messageID);
    } else if (type === "message.updated") {
      this.mark(event.info.id);
    } else if (type === "todo.updated") {
      this.page = { ...this.page, todos: event.todos };
      this.paint();
    } else if (type === "session.status") {
      this.page = { ...this.page, info: { ...this.page.info, state: event.status.type } };
      this.paint();
    } else if (type === "session.warning") {
      this.warnings.add(event.message);
      this.paint();
    } else if (type === "session.updated") {
      const { title } = event.info;
      this.page = { ...this.page, info: { ...this.page.info, title, cost: event.info.cost ?? null } };
      this.paint();
    }
  }

  removeMessage({ sessionID, messageID }) {
    if (this.page === null || sessionID !== this.id) return;
    this.page = { ...this.page, messages: this.page.messages.filter((each) => each.id !== messageID) };
    this.paint();
  }
}

const HEARD = ["message.part.delta", "message.part.updated", "message.updated", "todo.updated", "session.status", "session.updated", "session.warning"];

function useConversation(id, tailBox) {
  const [, setTurn] = useState(0);
  const ref = useRef(null);
  if (ref.current?.id !== id) ref.current = new Conversation(id, () => setTurn((turn) => turn + 1));
  const conversation = ref.current;
  useEffect(() => {
    conversation.tail = new LiveTail(tailBox.current);
    const ends = [
      on(HEARD, (event, type) => conversation.hear(type, event)),
      on(["message.removed"], (event) => conversation.removeMessage(event)),
      on(["server.resync"], () => conversation.load()),
      on(["session.created"], (event) => event.info.parentID === id && conversation.load()),
    ];
    conversation.load();
    return () => {
      ends.forEach((end) => end());
      clearTimeout(conversation.timer);
      conversation.tail.clear();
    };
  }, [id]);
  return conversation;
}

function PromptBox({ id, isBusy }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    try {
      await call(`/session/${id}/prompt_async`, { body: { parts: [{ type: "text", text }] } });
      setText("");
      setError("");
    } catch (failure) {
      setError(failure.message);
    }
  };
  const stop = () => call(`/session/${id}/abort`, { body: {} }).catch((failure) => setError(failure.message));
  const keys = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  return html`<form class="prompt-box" onSubmit=${send}>
    <${Alert} text=${error} />
    <textarea aria-label="Prompt" rows="2" placeholder=${`${isBusy ? "Steer the agent: " : ""}Enter sends, Shift+Enter starts a line`}
      value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${keys}></textarea>
    <button disabled=${!text.trim()}>Send</button>
    <button type="button" class="no" disabled=${!isBusy} onClick=${stop}>Stop</button>
  </form>`;
}

const MARKS = { completed: "✓", in_progress: "▸", cancelled: "✗" };

function Side({ page }) {
  const { value: panels } = useLoaded(`session/${page.info.id}/panels`, ["session.idle"]);
  return html`<aside aria-label="About the session">
    ${page.todos.length ? html`<section><h2>Todo</h2><ul class="todos">${page.todos.map((todo) => html`<li class=${todo.status}>${MARKS[todo.status] ?? "·"} ${todo.content}</li>`)}</ul></section>` : null}
    ${page.children.length ? html`<section><h2>Subagents</h2><ul>${page.children.map((child) => html`<li><a href=${`#/session/${child.id}`}>${child.title}</a> <${State} state=${child.state} /> <span class="facts">${money(child.cost)}</span></li>`)}</ul></section>` : null}
    ${panels?.map((panel) => html`<section class="panel"><h2>${panel.title}</h2><${Alert} text=${panel.error} />${panel.nodes?.map(draw)}</section>`)}
  </aside>`;
}

export const SessionHead = ({ info, page }) => html`<div class="session-head">
  <h1>${info.title}</h1>
  <p class="facts">${[info.agent, info.model, money(info.cost), ago(info.updated)].filter(Boolean).join(" · ")} <${State} state=${info.state} /></p>
  <nav aria-label="Pages of the session">${[["", "Conversation"], ["/changes", "Changes"], ["/hooks", "Hooks"]].map(([path, title]) => html`<a href=${`#/session/${info.id}${path}`} aria-current=${path === page ? "page" : null}>${title}</a>`)}
    ${info.parent ? html`<a href=${`#/session/${info.parent}`}>Parent session</a>` : null}</nav>
</div>`;

export function SessionView({ id }) {
  const tailBox = useRef(null);
  const scroll = useRef(null);
  const conversation = useConversation(id, tailBox);
  const { page, error } = conversation;
  const requests = useRequests([id, ...(page?.children ?? []).map((child) => child.id)]);
  const ended = useRef(true);
  const box = scroll.current;
  if (box) ended.current = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  useEffect(() => {
    if (ended.current && scroll.current) scroll.current.scrollTop = scroll.current.scrollHeight;
  });
  const earlier = () => {
    conversation.last += STEP;
    conversation.load();
  };
  return html`<div class="session">
    ${page ? html`<${SessionHead} info=${page.info} page="" />` : html`<${Waiting} error=${error} />`}
    <div class="columns">
      <div class="scroll" ref=${scroll} tabindex="0" role="region" aria-label="Messages">
        ${page?.earlier ? html`<p><button onClick=${earlier}>${page.earlier} earlier messages</button></p>` : null}
        <div class="messages">${page?.messages.map((message) => html`<${Message} key=${message.id} message=${message} />`)}</div>
        <div ref=${tailBox} class="tail"></div>
        <div role="status">${[...conversation.warnings].map((text) => html`<p class="s-warning">${text}</p>`)}</div>
        ${page && !page.messages.length ? html`<p class="facts">No messages yet. Write the first prompt below.</p>` : null}
      </div>
      ${page ? html`<${Side} page=${page} />` : null}
    </div>
    <div class="requests" aria-live="polite">${requests.map((request) => html`<${Request} key=${request.id} request=${request} />`)}</div>
    ${page ? html`<${PromptBox} id=${id} isBusy=${page.info.state !== "idle"} />` : null}
  </div>`;
}

/** A message; it is drawn again only when the server sent it again. */
function Message({ message }) {
  const cached = useRef({ message: null, drawn: null });
  if (cached.current.message !== message) cached.current = { message, drawn: message.nodes.map(draw) };
  return cached.current.drawn;
}
