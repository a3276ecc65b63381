// The labelling form: draws the view that Python sends, keeps what was typed, and tells Python what was done.
// Every text is written with textContent; HTML comes from the field `html` alone, which Python has cleaned.

const PATIENCE = 10_000; // milliseconds until a kernel counts as silent
const SLOW = 1_000; // milliseconds until the form says that it waits
const SILENT =
  "The kernel does not answer. What you entered is still here: try again, " +
  "or reload the page and run all cells again.";
const PIECE = 5_000; // characters
const SIDES = ["left", "right"];
const STORE = "judgelab-labelling";
const KEPT = 40; // drafts that a browser tab remembers
const HELP = [
  ["a b t c", "choose"],
  ["Enter", "save; again: next"],
  ["u", "undo"],
  ["← →", "back, forward"],
  ["↑ ↓", "from score to score, or from rank to rank"],
  ["1 … 9", "score or rank; goes on to the next"],
  ["n", "write a note"],
  ["Esc", "leave a text field"],
  ["Ctrl+Enter", "save from a text field"],
  ["r", "Markdown rendered or raw"],
  ["Tab", "the next part of the form; after the last one, out of it"],
  ["?", "these keys"],
];

const el = (tag, given = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((child) => child));
  return node;
};

const key = (text) => el("kbd", { class: "jl-key", "aria-hidden": "true", text });

const button = (label, keys, onclick, given = {}) =>
  el(
    "button",
    { type: "button", class: "jl-button", onclick, ...given },
    el("span", { text: label }),
    keys && key(keys),
  );

const isText = (node) => node.matches?.("textarea, input:not([type=radio]):not([type=checkbox])");

// Drafts: what was typed and not yet saved, by task. They outlive a reload of the page.
const readDrafts = () => {
  try {
    return JSON.parse(sessionStorage.getItem(STORE)) || {};
  } catch {
    return {};
  }
};

const keepDraft = (name, draft) => {
  try {
    const drafts = readDrafts();
    delete drafts[name];
    if (draft) drafts[name] = draft;
    const last = Object.entries(drafts).slice(-KEPT);
    sessionStorage.setItem(STORE, JSON.stringify(Object.fromEntries(last)));
  } catch {
    // a browser that keeps nothing: the draft lives as long as the page
  }
};

const digest = (text) => {
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return `${text.length}.${hash >>> 0}`;
};

const taskName = (view) => {
  const { task, answers } = view.texts;
  const place = [view.mode, view.reviewer, view.progress?.text]; // a repeat has the texts of its first showing
  const parts = [...place, task.text, ...answers.map((answer) => answer.content.text)];
  return digest(JSON.stringify(parts));
};

// Seconds for which the task was in sight.
class Clock {
  constructor() {
    this.name = null;
    this.stop();
  }
  start(name) {
    if (this.name !== name) this.total = 0;
    this.name = name;
    this.go();
  }
  go() {
    if (this.since === null && document.visibilityState === "visible") this.since = performance.now();
  }
  stop() {
    if (this.since != null) this.total += performance.now() - this.since;
    this.since = null;
  }
  get seconds() {
    const running = this.since === null ? 0 : performance.now() - this.since;
    return Math.round((this.total || 0) + running) / 1000;
  }
}
