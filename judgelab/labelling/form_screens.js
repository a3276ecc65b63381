// What stands above the form, and its screens without a task.

const makeStart = (form) => {
  const { reviewers, reviewer, confirm } = form.view;
  const input = el("input", {
    type: "text",
    "aria-label": "Your name",
    maxlength: 80,
    autocomplete: "off",
    spellcheck: "false",
  });
  input.value = reviewer || "";
  const start = (name) => (name.trim() ? form.send("start", { reviewer: name.trim() }) : input.focus());
  const known = (reviewers || []).map((name) => button(`Go on as ${name}`, "", () => start(name)));
  form.start = () => start(input.value);
  form.first = input;
  return [
    el(
      "div",
      { class: "jl-start" },
      el("label", {}, el("span", { text: "Your name (a to z, digits, _ . -)" }), input),
      button(confirm ? `Go on as ${reviewer}` : "Start", "Enter", form.start, { class: "jl-button jl-main" }),
      !confirm && known.length > 0 && el("div", { class: "jl-known" }, ...known),
    ),
  ];
};

const makeDone = (form) => {
  const { can, screen } = form.view;
  if (screen === "closed") return [];
  // Asked without a confirmation, the session tells what would be closed and what is unfinished.
  const tell = () => (form.confirm(true), form.send("close_labels"));
  const ask = button("Close the labels …", "", tell, { class: "jl-button jl-ask" });
  const sure = el("p", { text: "After this no label of the study can be added or changed. Close them?" });
  const yes = button("Close the labels", "", () => form.send("close_labels", { confirmed: true }));
  const confirm = el(
    "div",
    { class: "jl-confirm" },
    sure,
    button("Not yet", "Esc", () => form.confirm(false), { class: "jl-button jl-main" }),
    yes,
  );
  confirm.hidden = true;
  form.parts.push(() => {
    const shown = can?.close_labels && form.confirming && !form.pending; // once it is told what would be closed
    const appears = shown && confirm.hidden;
    ask.hidden = !can?.close_labels || form.confirming;
    confirm.hidden = !shown;
    if (appears) confirm.querySelector("button").focus();
  });
  const back = can?.back && button("Back", "←", () => form.act("back"));
  const undo = can?.undo && button("Undo", "u", () => form.act("undo"));
  return [el("div", { class: "jl-done" }, el("div", { class: "jl-actions" }, back, undo, ask), confirm)];
};

const makeHead = (form) => {
  const { title, progress, reviewer, screen, markdown } = form.view;
  const share = progress?.total ? Math.min(progress.done / progress.total, 1) : 0;
  const bar = { class: "jl-bar", role: "progressbar", "aria-label": "Progress", "aria-valuemin": 0 };
  const values = {
    "aria-valuemax": progress?.total,
    "aria-valuenow": progress?.done,
    "aria-valuetext": progress?.text,
  };
  const filled = el("div", { style: `width: ${(100 * share).toFixed(1)}%` });
  const shows = progress?.total > 0 && !["start", "stopped"].includes(screen);
  const started = !["start", "stopped", "closed"].includes(screen);
  return [
    el("h3", { text: title || "Labelling" }),
    shows &&
      el(
        "div",
        { class: "jl-progress" },
        el("div", { ...bar, ...values }, filled),
        el("span", { text: progress.text }),
      ),
    el("span", { class: "jl-space" }),
    reviewer && started && el("span", { class: "jl-faint jl-who", text: reviewer }),
    form.atTask &&
      button("Markdown", "r", () => form.markdown(), {
        "aria-pressed": String(Boolean(markdown)),
        class: "jl-button jl-small",
      }),
    button("Keys", "?", () => form.toggleHelp(), { class: "jl-button jl-small", "aria-expanded": String(form.help) }),
    started && button("Stop", "", () => form.send("stop"), { class: "jl-button jl-small" }),
  ];
};
