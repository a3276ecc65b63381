// One view of the widget: its state, what it sends, and its keys.
class Form {
  constructor(model, host) {
    this.model = model;
    this.clock = new Clock();
    this.drafts = readDrafts();
    this.pending = null; // the message that waits for its answer
    this.unanswered = null; // the last message without an answer, for sending it again
    this.problem = "";
    this.help = false;
    this.confirming = false;
    this.drawn = ""; // what the body was last built from
    this.build(host);
    this.draw();
  }

  get view() {
    return this.model.get("view");
  }
  get atTask() {
    return ["task", "saved", "feedback"].includes(this.view.screen);
  }
  get locked() {
    return this.view.screen !== "task";
  }
  get ranking() {
    return this.view.mode === "ranking";
  }

  build(host) {
    this.uid = `jl${Math.random().toString(36).slice(2)}`;
    this.head = el("div", { class: "jl-head" });
    this.alert = el("div", { class: "jl-problem", role: "alert" });
    this.note = el("div", { class: "jl-message" });
    this.body = el("div", { class: "jl-body" });
    this.live = el("div", { class: "jl-live", role: "status", "aria-live": "polite" });
    this.keys = el("div", { class: "jl-help", role: "region", "aria-label": "Keys", hidden: true });
    const list = HELP.flatMap(([keys, what]) => [
      el("dt", {}, el("kbd", { class: "jl-key", text: keys })),
      el("dd", { text: what }),
    ]);
    this.keys.append(el("dl", {}, ...list));
    this.root = el(
      "section",
      { class: "jl-form", role: "group", tabindex: 0, "data-lm-suppress-shortcuts": "true" },
      ...[this.head, this.alert, this.note, this.body, this.live, this.keys],
    );
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    for (const name of ["keyup", "keypress"]) this.root.addEventListener(name, (event) => event.stopPropagation());
    host.append(this.root);
  }

  // What stands for the task: the draft, or what was decided.
  get entry() {
    const { decision, texts } = this.view;
    const draft = this.locked ? null : this.drafts[this.name];
    const from = draft || decision || {};
    const scores = Object.fromEntries(SIDES.map((side) => [side, { ...from.scores?.[side] }]));
    const ranks = texts.answers.map((_, at) => from.ranks?.[at] ?? null);
    return { choice: from.choice || "", reason: from.reason || "", note: from.note || "", scores, ranks };
  }

  change(values, quiet = false) {
    if (this.locked) return;
    this.drafts[this.name] = { ...this.entry, ...values };
    keepDraft(this.name, this.drafts[this.name]);
    this.problem = "";
    if (!quiet) this.refresh();
  }

  send(action, more = {}) {
    if (this.pending) return;
    const body = { action, token: this.view.token, ...more };
    const same = JSON.stringify({ ...body, seconds: 0 });
    const again = this.unanswered?.same === same;
    const id = again ? this.unanswered.id : Math.random().toString(36).slice(2);
    this.unanswered = { same, id, action, name: this.name };
    if (this.hasFocus) this.focus(); // what had it may be disabled now, or gone
    const slow = setTimeout(() => this.slow(), SLOW);
    this.pending = { id, slow: false, clocks: [slow, setTimeout(() => this.giveUp(), PATIENCE)] };
    this.problem = "";
    this.refresh();
    try {
      this.model.send({ ...body, id });
    } catch {
      this.giveUp();
    }
  }

  slow() {
    this.pending.slow = true;
    this.refresh();
  }

  settle() {
    this.pending?.clocks.forEach(clearTimeout);
    this.pending = null;
  }

  giveUp() {
    this.settle();
    this.problem = SILENT;
    if (this.view.screen === "task") this.clock.go();
    this.refresh();
  }

  answered(id) {
    if (this.unanswered?.id === id) {
      const { action, name } = this.unanswered;
      if (action === "decide" && this.view.screen !== "task" && !this.view.problem) {
        delete this.drafts[name];
        keepDraft(name, null);
      }
      this.unanswered = null;
      this.problem = "";
    }
    if (this.pending?.id === id) this.settle();
  }

  decide() {
    const { choice, reason, note, scores, ranks } = this.entry;
    const cannot = choice === "cannot_judge";
    if (!choice && !this.ranking) {
      this.problem = `Choose first: ${this.view.choices.map((one) => `${one.key} (${one.label})`).join(", ")}.`;
      this.refresh();
      return;
    }
    this.clock.stop();
    const seconds = this.clock.seconds;
    const given = { scores: this.view.scale && !cannot ? scores : {}, ranks: this.ranking && !cannot ? ranks : [] };
    this.send("decide", { choice, reason: cannot ? reason : "", note, seconds, ...given });
  }

  act(what) {
    const { screen, can } = this.view;
    if (what === "enter") screen === "task" ? this.decide() : this.locked && this.atTask && this.send("next");
    else if (what === "forward" && this.locked && this.atTask) this.send("next");
    else if (can?.[what]) this.send(what);
  }

  choose(value) {
    if (this.locked || this.pending) return;
    const same = this.ranking && this.entry.choice === value;
    this.change({ choice: same ? "" : value });
    if (value === "cannot_judge" && !same) this.body.querySelector(".jl-reason textarea")?.focus();
  }

  toggleHelp(on = !this.help) {
    this.help = on;
    this.refresh();
  }

  markdown() {
    if (this.atTask) this.send("markdown", { value: !this.view.markdown });
  }

  focus() {
    this.root.focus({ preventScroll: true });
  }

  confirm(on) {
    this.confirming = on;
    this.refresh();
    this.body.querySelector(on ? ".jl-confirm button" : ".jl-ask")?.focus();
  }

  // Nothing can be entered: it is saved, or under way.
  get still() {
    return this.locked || Boolean(this.pending);
  }

  get hasFocus() {
    return this.root.contains(this.root.getRootNode().activeElement);
  }

  // Draw the view. Texts are built anew only for another task, so that they stay scrolled as they are.
  draw() {
    const { view } = this;
    const focused = this.hasFocus;
    const before = this.name;
    this.name = this.atTask ? taskName(view) : "";
    if (view.screen === "task") this.clock.start(this.name);
    else this.clock.stop();
    const { choices, rubric, scale, labels, rule, feedback, markdown, screen, reviewers, reviewer, confirm, can } =
      view;
    const task = [choices, rubric, scale, labels, rule, feedback, markdown];
    const shape = this.atTask ? task : [screen, reviewers, reviewer, confirm, can];
    const drawn = JSON.stringify([this.name, view.mode, ...shape]);
    if (drawn !== this.drawn) this.rebuild();
    this.drawn = drawn;
    this.head.replaceChildren(...makeHead(this).filter(Boolean));
    this.root.setAttribute(
      "aria-label",
      [view.title || "Labelling", this.atTask && view.progress?.text].filter(Boolean).join(": "),
    );
    this.root.classList.toggle("jl-tall", this.atTask);
    this.root.classList.toggle("jl-ranked", this.ranking);
    this.refresh();
    if (focused && !this.hasFocus) (this.first || this).focus();
    if (focused && this.name && this.name !== before) this.root.scrollIntoView({ block: "nearest" });
  }

  rebuild() {
    this.parts = [];
    this.fields = [];
    this.first = null;
    this.start = null;
    this.confirming = false;
    const { screen } = this.view;
    const make = this.atTask ? makeTask : ["start", "stopped"].includes(screen) ? makeStart : makeDone;
    this.body.replaceChildren(...make(this));
  }

  // Bring the state of what is drawn up to date.
  refresh() {
    const { view } = this;
    for (const part of this.parts) part();
    this.root.classList.toggle("jl-busy", Boolean(this.pending));
    this.keys.hidden = !this.help;
    this.show(this.alert, this.problem || view.problem);
    const earlier = view.earlier && this.atTask;
    const kept = "An earlier item: a new decision is kept beside the first one and does not change it.";
    this.show(this.note, [view.message, earlier && kept].filter(Boolean).join(" "));
    this.show(this.live, toldOf(this));
  }

  show(node, text) {
    if (node.textContent !== (text || "")) node.textContent = text || "";
    if (node === this.alert || node === this.note) node.hidden = !text;
  }

  onKey(event) {
    event.stopPropagation();
    if (event.isComposing) return;
    const { target } = event;
    const control = event.ctrlKey || event.metaKey;
    const press = event.key === "Enter" || event.key === " ";
    const done = this.keyed(event, target, control);
    if (done || (event.repeat && press && !isText(target)) || (control && event.key.toLowerCase() === "s"))
      event.preventDefault();
  }

  // Act on a key. True if it was one of the form's own.
  keyed(event, target, control) {
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.key === "Enter" && this.start && (isText(target) || target === this.root))
      return event.repeat || (this.start(), true);
    if (isText(target) || control) {
      if (name === "Enter" && control) return event.repeat || (this.act("enter"), true);
      if (name === "Escape") return (this.focus(), true);
      if (!target.matches("[type=number]") || !["ArrowUp", "ArrowDown"].includes(name)) return false;
    }
    if (event.altKey) return false;
    if (name === "Escape") {
      if (this.confirming) return (this.confirm(false), true);
      this.toggleHelp(false);
      return (this.focus(), true);
    }
    if (name === "?") return (this.toggleHelp(), true);
    if (name === "Enter") {
      if (target.closest("button, summary")) return false;
      return event.repeat || (this.act("enter"), true);
    }
    const walks = { ArrowLeft: "back", ArrowRight: "forward", u: "undo" };
    if (walks[name]) return event.repeat || (this.act(walks[name]), true);
    return this.atTask && this.taskKey(name, target);
  }

  taskKey(name, target) {
    if (name === "r") return (this.markdown(), true);
    const choice = this.view.choices.find((one) => one.key === name);
    if (choice) return (this.choose(choice.value), true);
    if (name === "n") return (this.body.querySelector(".jl-note textarea").focus(), true);
    if (/^\d$/.test(name)) return (this.setField(Number(name), target), true);
    if (name === "ArrowUp" || name === "ArrowDown") return this.moveField(name === "ArrowDown" ? 1 : -1, target);
    return false;
  }

  fieldAt(target) {
    return this.fields.findIndex((field) => field.node.contains(target));
  }

  moveField(step, target) {
    const at = this.fieldAt(target);
    if (!this.fields.length || (at < 0 && target !== this.root && !target.closest(".jl-choice"))) return false;
    const to =
      at < 0 ? (step > 0 ? 0 : this.fields.length - 1) : Math.max(0, Math.min(at + step, this.fields.length - 1));
    this.fields[to].focus();
    return true;
  }

  setField(digit, target) {
    if (this.still || !this.fields.length) return;
    const here = this.fieldAt(target);
    const at = here >= 0 ? here : this.fields.findIndex((field) => !field.has());
    const field = this.fields[at];
    if (!field) return;
    const value = digit === 0 && field.low > 0 ? 10 : digit;
    if (value < field.low || value > field.high) {
      this.problem = `Allowed are ${field.low} to ${field.high}.`;
      this.refresh();
      return;
    }
    field.set(value);
    if (at + 1 < this.fields.length) this.fields[at + 1].focus();
    else this.focus();
  }

  close() {
    this.clock.stop();
    this.settle();
  }
}

export default {
  render({ model, el: host }) {
    const form = new Form(model, host);
    const answered = (id) => {
      form.answered(id);
      form.draw();
    };
    const draw = () => answered(form.view.answered);
    const custom = (message) => answered(message?.answered);
    const sight = () => {
      if (document.visibilityState !== "visible") form.clock.stop();
      else if (form.view.screen === "task" && !form.pending) form.clock.go();
    };
    model.on("change:view", draw);
    model.on("msg:custom", custom);
    document.addEventListener("visibilitychange", sight);
    return () => {
      model.off("change:view", draw);
      model.off("msg:custom", custom);
      document.removeEventListener("visibilitychange", sight);
      form.close();
    };
  },
};
