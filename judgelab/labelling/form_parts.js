// The parts of the form. Each `make...` builds nodes from the view; each node's `refresh` brings its state up to date.

// A long text in pieces that end with a line: the browser lays out those in sight.
const pieces = (text) => {
  const cut = [];
  let from = 0;
  while (text.length - from > PIECE) {
    const to = text.indexOf("\n", from + PIECE) + 1;
    if (!to) break;
    cut.push(text.slice(from, to));
    from = to;
  }
  return [...cut, text.slice(from)].filter(Boolean);
};

const panel = (given, label, more = "") => {
  const node = el("div", { class: `jl-text ${more}`, role: "region", "aria-label": label, tabindex: 0, dir: "auto" });
  if (typeof given.html === "string") {
    node.classList.add("jl-rendered");
    node.innerHTML = given.html;
  } else {
    node.append(...pieces(given.text).map((piece) => el("div", { text: piece })));
  }
  if (!given.text.trim()) node.replaceChildren(el("em", { class: "jl-faint", text: "(empty)" }));
  return node;
};

const makeTexts = (form) => {
  const { texts, markdown } = form.view;
  const { task, context, answers } = texts;
  const given = [el("div", { class: "jl-card" }, el("h4", { text: "Task" }), panel(task, "Task"))];
  if (context && context.text) {
    const open = context.text.length < 1500;
    const fold = el(
      "details",
      { class: "jl-card", "aria-label": "Context, can be folded", open },
      el("summary", { text: "Context" }),
      panel(context, "Context"),
    );
    given.push(fold);
  }
  const columns = answers.map(({ letter, content }, at) => {
    const raw = markdown && typeof content.html !== "string";
    const title = el(
      "h4",
      {},
      el("span", { class: "jl-letter", text: letter }),
      raw && el("small", { text: "shown raw" }),
    );
    if (form.ranking) title.append(makeRank(form, letter, at));
    return el("div", { class: "jl-card" }, title, panel(content, `Answer ${letter}`, "jl-answer"));
  });
  const count = answers.length;
  const style = `--jl-columns: ${count < 4 ? count : Math.ceil(count / 2)}; --jl-all: ${Math.min(count, 4)}`;
  const rows = count > 3 ? "jl-answers jl-many" : "jl-answers";
  return el(
    "div",
    { class: "jl-texts" },
    el("div", { class: "jl-given" }, ...given),
    el("div", { class: rows, style }, ...columns),
  );
};

const makeRank = (form, letter, at) => {
  const count = form.view.texts.answers.length;
  const places = Array.from({ length: count }, (_, place) => el("option", { value: place + 1, text: place + 1 }));
  const field = el(
    "select",
    { "aria-label": `Rank of answer ${letter}` },
    el("option", { value: "", text: "–" }),
    ...places,
  );
  const set = (value) => {
    const ranks = [...form.entry.ranks];
    ranks[at] = value;
    form.change({ ranks, choice: "" });
  };
  field.addEventListener("change", () => set(field.value ? Number(field.value) : null));
  form.fields.push({
    node: field,
    focus: () => field.focus(),
    set,
    has: () => form.entry.ranks[at] !== null,
    low: 1,
    high: count,
  });
  form.parts.push(() => {
    field.value = form.entry.ranks[at] ?? "";
    field.disabled = form.still;
  });
  return el("label", { class: "jl-rank" }, el("span", { text: "Rank" }), field);
};

const makeChoices = (form) => {
  const box = el("div", {
    class: "jl-choices",
    role: form.ranking ? "group" : "radiogroup",
    "aria-label": "Your decision",
  });
  for (const { value, key: letter, label } of form.view.choices) {
    const type = form.ranking ? "checkbox" : "radio";
    const input = el("input", { type, name: `${form.uid}-choice`, value, "aria-keyshortcuts": letter });
    input.addEventListener("change", () => form.choose(value));
    const row = el("label", { class: "jl-choice" }, input, el("span", { text: label }), key(letter));
    form.parts.push(() => {
      input.checked = form.entry.choice === value;
      input.disabled = form.still;
      row.classList.toggle("jl-chosen", input.checked);
      row.classList.toggle("jl-off", form.still);
    });
    box.append(row);
  }
  return box;
};

const makeScore = (form, { name }, side, letter) => {
  const { minimum, maximum } = form.view.scale;
  const label = `${name}, answer ${letter}, ${minimum} to ${maximum}`;
  const set = (value) => {
    const { scores } = form.entry;
    form.change({ scores: { ...scores, [side]: { ...scores[side], [name]: value } } });
  };
  const value = () => form.entry.scores[side][name];
  const low = Math.ceil(minimum);
  const high = Math.floor(maximum);
  if (high - low > 10) {
    const input = el("input", { type: "number", min: minimum, max: maximum, step: "any", "aria-label": label });
    input.addEventListener("input", () => set(input.value === "" ? undefined : Number(input.value)));
    form.fields.push({ node: input, focus: () => input.focus(), set, has: () => value() !== undefined, low, high });
    form.parts.push(() => {
      if (document.activeElement !== input) input.value = value() ?? "";
      input.disabled = form.still;
    });
    return input;
  }
  const group = el("div", { class: "jl-score", role: "radiogroup", "aria-label": label });
  const inputs = Array.from({ length: high - low + 1 }, (_, place) => {
    const input = el("input", { type: "radio", name: `${form.uid}-${side}-${digest(name)}`, value: low + place });
    input.addEventListener("change", () => set(low + place));
    group.append(el("label", {}, input, el("span", { text: low + place })));
    return input;
  });
  const focus = () => (inputs.find((input) => input.checked) || inputs[0]).focus();
  form.fields.push({ node: group, focus, set, has: () => value() !== undefined, low, high });
  form.parts.push(() => {
    for (const input of inputs) {
      input.checked = Number(input.value) === value();
      input.disabled = form.still || form.entry.choice === "cannot_judge";
    }
  });
  return group;
};

const makeRubric = (form) => {
  const { rubric, scale, texts, tie_meaning: tie } = form.view;
  const box = el("div", { class: "jl-rubric" });
  if (scale) box.classList.add("jl-scored");
  const letters = texts.answers.map((answer) => answer.letter);
  const heads = scale
    ? letters.slice(0, 2).map((letter) => el("div", { class: "jl-side", "aria-hidden": "true", text: letter }))
    : [];
  if (rubric.length || tie) box.append(el("h4", { text: scale ? "Rubric and scores" : "Rubric" }), ...heads);
  for (const one of rubric) {
    const text = el(
      "div",
      { class: "jl-criterion" },
      el("strong", { text: one.name }),
      el("span", { text: one.description }),
    );
    box.append(text, ...(scale ? SIDES.map((side, at) => makeScore(form, one, side, letters[at])) : []));
  }
  if (tie)
    box.append(el("div", { class: "jl-criterion jl-tie" }, el("strong", { text: "tie" }), el("span", { text: tie })));
  return box;
};

const makeAdjudication = (form) => {
  const { labels, rule } = form.view;
  const box = el("div", { class: "jl-adjudication" });
  box.append(el("h4", { text: "Initial labels" }));
  for (const { label, text, note, scores } of labels || []) {
    const more = [
      scores && el("span", { class: "jl-faint", text: scores }),
      note && el("q", { dir: "auto", text: note }),
    ];
    box.append(el("p", {}, el("strong", { text: `Label ${label}: ${text}` }), ...more));
  }
  if (rule) box.append(el("h4", { text: "Rule" }), el("p", { dir: "auto", text: rule }));
  return box;
};

const makeField = (form, name, label, keys) => {
  const area = el("textarea", { rows: 2, dir: "auto", "aria-label": label, spellcheck: "false" });
  area.addEventListener("input", () => form.change({ [name]: area.value }, true));
  form.parts.push(() => {
    const text = form.entry[name];
    if (area.value !== text) area.value = text;
    area.readOnly = form.still;
  });
  return el(
    "label",
    { class: `jl-field jl-${name}` },
    el("span", {}, el("span", { text: label }), keys && key(keys)),
    area,
  );
};

const makeEntry = (form) => {
  const reason = makeField(form, "reason", "Why it cannot be judged");
  const note = makeField(form, "note", "Note", "n");
  const order = form.ranking && el("p", { class: "jl-order", "aria-live": "polite" });
  const acts = [
    ["back", button("Back", "←", () => form.act("back")), () => form.view.can.back],
    ["undo", button("Undo", "u", () => form.act("undo")), () => form.view.can.undo],
    ["save", button("Save", "↵", () => form.act("enter"), { class: "jl-button jl-main" }), () => !form.locked],
    ["next", button("Next", "→", () => form.act("forward")), () => form.locked || form.view.can.forward],
  ];
  form.parts.push(() => {
    reason.hidden = form.entry.choice !== "cannot_judge";
    if (order) order.textContent = orderOf(form);
    for (const [name, node, can] of acts) {
      node.setAttribute("aria-disabled", String(Boolean(form.pending) || !can()));
      if (name === "next") {
        node.classList.toggle("jl-main", form.locked);
        node.lastChild.textContent = form.locked ? "↵" : "→";
      }
    }
  });
  const told = el("p", { class: "jl-status", "aria-hidden": "true" });
  form.parts.push(() => form.show(told, toldOf(form)));
  const actions = el("div", { class: "jl-actions" }, ...acts.map(([, node]) => node));
  return el("div", { class: "jl-entry" }, order, reason, note, told, actions);
};

// The order that the ranks make, in words.
const orderOf = (form) => {
  const { answers } = form.view.texts;
  const { ranks, choice } = form.entry;
  if (choice === "cannot_judge") return "No order: cannot judge.";
  const places = [...new Set(ranks.filter((rank) => rank !== null))].sort((x, y) => x - y);
  const named = (rank) => answers.filter((_, at) => ranks[at] === rank).map((answer) => answer.letter);
  const told = places.map(named).map((letters) => letters.join(" = "));
  const open = named(null);
  return `Order: ${told.join(", then ") || "none yet"}.${open.length ? ` Without a rank: ${open.join(", ")}.` : ""}`;
};

// What happened and what comes next, in a sentence: for the eyes and for a screen reader.
const toldOf = (form) => {
  const { screen, choices, decision, can } = form.view;
  if (form.pending?.slow) return "Waiting for the kernel …";
  const { choice } = screen === "task" ? form.entry : decision || {};
  const label = choices?.find((one) => one.value === choice)?.label;
  if (screen === "task") {
    const open = choice === "cannot_judge" ? 0 : form.fields.filter((field) => !field.has()).length;
    if (form.ranking && !choice) return open ? `Ranks missing: ${open}.` : "All ranked. Enter: save.";
    if (!label) return "Choose, then Enter to save.";
    return `Chosen: ${label}.${open ? ` Scores missing: ${open}.` : " Enter: save."}`;
  }
  if (form.atTask) {
    const what = label || (form.ranking ? orderOf(form) : "your decision");
    return `Saved: ${what.replace(/\.$/, "")}. Enter: next.${can?.undo ? " u: undo." : ""}`;
  }
  return "";
};

const makeFeedback = (form) => {
  const { agrees, expected, explanation } = form.view.feedback;
  const title = agrees ? `As expected: ${expected}` : `Expected: ${expected}`;
  const more = explanation && el("span", { dir: "auto", text: explanation });
  return el("div", { class: `jl-feedback ${agrees ? "jl-agrees" : ""}` }, el("strong", { text: title }), more);
};

const makeTask = (form) => {
  const { view } = form;
  const side = el("div", { class: "jl-side-column" });
  const texts = makeTexts(form);
  if (view.feedback) side.append(makeFeedback(form));
  const decides = view.mode === "adjudication";
  const label = decides ? "Initial labels, rule and rubric" : "Rubric";
  const reference = el("div", { class: "jl-reference", role: "region", "aria-label": label, tabindex: 0 });
  reference.append(...(decides ? [makeAdjudication(form)] : []), makeRubric(form));
  side.append(makeChoices(form), reference, makeEntry(form));
  return [texts, side];
};
