// Permission requests and questions that wait, and the cards that answer them.

import { html, useEffect, useState } from "./vendor/preact.js";
import { call, mayApprove, on } from "./client.js";
import { draw } from "./nodes.js";
import { Alert, useLoaded, Waiting } from "./parts.js";

let waiting = [];
const watchers = new Set();

function set(next) {
  waiting = next;
  for (const watch of watchers) watch(next);
}

async function load() {
  const [permissions, questions] = await Promise.all([call("/permission"), call("/question")]);
  set([...permissions.map((each) => ({ kind: "permission", ...each })), ...questions.map((each) => ({ kind: "question", ...each }))]);
}

/** Keep the list of what waits, from now on. */
export function watchRequests() {
  const add = (kind) => (request) => set([...waiting.filter((each) => each.id !== request.id), { kind, ...request }]);
  const drop = ({ requestID }) => set(waiting.filter((each) => each.id !== requestID));
  on(["permission.asked"], add("permission"));
  on(["question.asked"], add("question"));
  on(["permission.replied", "question.replied", "question.rejected"], drop);
  on(["server.resync"], () => load().catch(() => {}));
  return load();
}

/** What waits now, in all sessions or in one and its subagents. */
export function useRequests(sessions = null) {
  const [found, setFound] = useState(waiting);
  useEffect(() => {
    setFound(waiting);
    watchers.add(setFound);
    return () => watchers.delete(setFound);
  }, []);
  return sessions === null ? found : found.filter((each) => sessions.includes(each.sessionID));
}

function useAnswer(request) {
  const [error, setError] = useState("");
  const [sent, setSent] = useState(false);
  const answer = async (path, body) => {
    setSent(true);
    try {
      await call(`/${request.kind}/${request.id}/${path}`, { body });
      set(waiting.filter((each) => each.id !== request.id));
    } catch (failure) {
      setSent(false);
      setError(failure.message);
      load().catch(() => {}); // another client may have answered
    }
  };
  return { answer, error, sent };
}

/** A permission request, with buttons once its content is on the page. */
function Permission({ request, where }) {
  const { value, error: unread } = useLoaded(`permission/${request.id}`);
  const { answer, error, sent } = useAnswer(request);
  const [why, setWhy] = useState("");
  const button = (text, body, kind) => html`<button class=${kind} disabled=${sent} onClick=${() => answer("reply", body)}>${text}</button>`;
  const always = request.always.join(", ");
  return html`<section class="request" aria-label=${`permission ${request.permission}`}>
    <h3>Allow ${request.permission}?</h3>${where}
    ${value === null ? html`<${Waiting} error=${unread} />` : html`${value.nodes.map(draw)}
    <p class="facts why">${[value.agent && `agent ${value.agent}`, value.reason].filter(Boolean).join(" · ")}</p>
    <${Alert} text=${error} />
    <div class="choices">
      ${button("Allow once", { reply: "once" })}
      ${always && button(`Allow in this session: ${always}`, { reply: "always", scope: "session" })}
      ${always && mayApprove() && button(`Allow always in this project: ${always}`, { reply: "always", scope: "project" })}
      ${button("Reject", { reply: "reject" }, "no")}
    </div>
    <form class="choices" onSubmit=${(event) => { event.preventDefault(); answer("reply", { reply: "reject", message: why }); }}>
      <input aria-label="Reason for the model" placeholder="Reason for the model" value=${why} onInput=${(event) => setWhy(event.target.value)} />
      <button class="no" disabled=${sent || !why}>Reject with this reason</button>
    </form>`}
  </section>`;
}

function Questions({ request, where }) {
  const { answer, error, sent } = useAnswer(request);
  const [chosen, setChosen] = useState(request.questions.map(() => []));
  const [own, setOwn] = useState(request.questions.map(() => ""));
  const pick = (at, label, many) =>
    setChosen(chosen.map((each, n) => (n !== at ? each : !many ? [label] : each.includes(label) ? each.filter((one) => one !== label) : [...each, label])));
  const answers = chosen.map((each, at) => (own[at] ? [...each, own[at]] : each));
  const send = (event) => {
    event.preventDefault();
    answer("reply", { answers });
  };
  return html`<section class="request" aria-label="question"><form onSubmit=${send}>
    ${where}
    ${request.questions.map((question, at) => html`<fieldset>
      <legend>${question.header ? `${question.header}: ` : ""}${question.question}</legend>
      ${question.options.map((option) => html`<label>
        <input type=${question.multiple ? "checkbox" : "radio"} name=${`${request.id}-${at}`} checked=${chosen[at].includes(option.label)} onChange=${() => pick(at, option.label, question.multiple)} />
        <span>${option.label}${option.description ? html` <span class="facts">${option.description}</span>` : null}</span></label>`)}
      ${question.custom === false ? null : html`<input aria-label="Another answer" placeholder="Another answer" value=${own[at]}
        onInput=${(event) => setOwn(own.map((each, n) => (n === at ? event.target.value : each)))} />`}
    </fieldset>`)}
    <${Alert} text=${error} />
    <div class="choices"><button disabled=${sent || answers.every((each) => each.length === 0)}>Answer</button>
      <button type="button" class="no" disabled=${sent} onClick=${() => answer("reject", {})}>Do not answer</button></div>
  </form></section>`;
}

export const Request = (props) => html`<${props.request.kind === "permission" ? Permission : Questions} ...${props} />`;
