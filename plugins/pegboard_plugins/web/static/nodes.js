// The server's trees of content: only known elements and attributes, never HTML.

import { h } from "./vendor/preact.js";

const TAGS = new Set(
  ("a article blockquote br code dd del details div dl dt em footer h1 h2 h3 h4 h5 h6 header hr img " +
    "li ol p pre s section span strong summary table tbody td th thead tr ul").split(" "),
);
const ATTRIBUTES = new Set(["class", "id", "open", "alt", "title", "start", "rel"]);
const LINK = /^(https?:\/\/|mailto:|#)/i;
const IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/;

function attributes(tag, given) {
  const found = {};
  for (const [name, value] of Object.entries(given)) {
    if (ATTRIBUTES.has(name)) found[name] = name === "open" ? true : value;
    if (tag === "a" && name === "href" && LINK.test(value) && !value.startsWith("#")) {
      Object.assign(found, { href: value, rel: "noreferrer noopener", target: "_blank" });
    }
    if (tag === "img" && name === "src" && IMAGE.test(value)) found.src = value;
  }
  if (tag === "pre") found.tabIndex = 0; // one that scrolls is reached by keyboard
  return found;
}

export function draw(node) {
  if (typeof node === "string") return node;
  const [tag, given, ...inner] = node;
  if (!TAGS.has(tag)) return inner.map(draw);
  return h(tag, attributes(tag, given), ...inner.map(draw));
}
