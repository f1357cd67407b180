// Texts that a model still writes, painted once a frame in separate pieces.

const PIECE_LETTERS = 2000;

/** The live texts of a session in `root`; one without its start is requested again. */
export class LiveTail {
  constructor(root) {
    this.root = root;
    this.parts = new Map();
    this.frame = 0;
  }

  /** Begin a text; all its deltas follow. */
  begin(message, part, kind) {
    if (!this.parts.has(part)) this.make(message, part, kind, true);
  }

  make(message, part, kind, whole) {
    const box = document.createElement("div");
    box.className = `live ${kind}`;
    this.root.append(box);
    this.parts.set(part, { message, box, pending: "", text: null, letters: 0, whole });
    return this.parts.get(part);
  }

  /** Put a text that began before this page was there. */
  put({ message, part, kind, text }) {
    const known = this.parts.get(part);
    if (known?.whole) return;
    const entry = known ?? this.make(message, part, kind, false);
    if (entry.length === text.length) return;
    entry.length = text.length;
    entry.box.replaceChildren();
    entry.text = null;
    entry.pending = text;
    this.paintSoon();
  }

  /** Add a delta; false for a text of which this page lacks the beginning. */
  add(part, delta) {
    const entry = this.parts.get(part);
    if (!entry?.whole) return false;
    entry.pending += delta;
    this.paintSoon();
    return true;
  }

  paintSoon() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.frame = 0;
    const box = this.root.closest(".scroll");
    const isAtEnd = box && box.scrollHeight - box.scrollTop - box.clientHeight < 80;
    for (const entry of this.parts.values()) {
      let pending = entry.pending;
      entry.pending = "";
      while (pending) {
        if (entry.text === null || entry.letters >= PIECE_LETTERS) {
          entry.text = document.createTextNode("");
          entry.letters = 0;
          const piece = document.createElement("span");
          piece.className = "piece";
          piece.append(entry.text);
          entry.box.append(piece);
        }
        const next = pending.slice(0, PIECE_LETTERS);
        entry.text.appendData(next);
        entry.letters += next.length;
        pending = pending.slice(next.length);
      }
    }
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  }

  /** Whether a text of the message is still open, and not complete in this page. */
  lacks(message) {
    return [...this.parts.values()].some((each) => each.message === message && !each.whole);
  }

  /** Take texts away that the message itself now has; `open` are those that go on. */
  settle(message, open) {
    for (const [part, entry] of this.parts) {
      if (entry.message === message && !open.includes(part)) {
        entry.box.remove();
        this.parts.delete(part);
      }
    }
  }

  clear() {
    for (const entry of this.parts.values()) entry.box.remove();
    this.parts.clear();
  }
}
