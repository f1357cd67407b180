// The plot of costs by day. uPlot, which draws it, is loaded with the first one.

import { html, useEffect, useRef } from "./vendor/preact.js";
import { count, money } from "./parts.js";

const DAY_S = 86_400;

const uplot = () => new Promise((done) => {
  const script = document.getElementById("uplot").content.firstElementChild.cloneNode();
  script.onload = done;
  document.head.append(script);
});

function draw(box, days) {
  const isPaid = days.some((day) => day.cost > 0);
  const text = isPaid ? money : count;
  const colour = (name) => () => getComputedStyle(box).getPropertyValue(name);
  const times = days.map(({ name }) => new Date(`${name}T00:00`) / 1000);
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 } };
  const size = () => ({ width: box.clientWidth, height: 180 });
  const plot = new uPlot({
    ...size(),
    cursor: { y: false, drag: { x: false } },
    scales: { x: { range: (_, first, last) => [first - DAY_S, last + DAY_S] }, y: { range: (_, first, last) => [0, last * 1.05 || 1] } },
    axes: [{ ...axis, incrs: [1, 2, 7, 14, 30, 90].map((each) => each * DAY_S) }, { ...axis, size: 70, values: (_, marks) => marks.map(text) }],
    series: [{ label: "day", value: "{YYYY}-{MM}-{DD}" }, { label: isPaid ? "cost" : "tokens", fill: colour("--link"), paths: uPlot.paths.bars(), points: { show: false }, value: (_, at) => (at === null ? "" : text(at)) }],
  }, [times, days.map((day) => (isPaid ? day.cost : day.tokens))], box);
  new ResizeObserver(() => plot.setSize(size())).observe(box);
  return plot;
}

/** The costs of days as bars; their tokens if no cost is known. */
export function Days({ days }) {
  const box = useRef(null);
  useEffect(() => {
    let plot = null;
    (window.uPlot ? Promise.resolve() : uplot()).then(() => box.current && (plot = draw(box.current, days)));
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.onchange = () => plot?.redraw();
    return () => plot?.destroy();
  }, [days]);
  return html`<div class="days" ref=${box} role="img" aria-label="Cost by day"></div>`;
}
