// The address says what is looked at, after its #, so that a link opens exactly that and can be
// passed on: #example=1&step=3&view=attention&attention=cross&layer=2&head=3. Numbers begin at 1, but
// for those of sampling, temperature=0.8&top_k=5&seed=0; `epoch` is that of the training. `forced`
// are the ids of the pieces that the translation begins with, with a * the chosen ones, and - for a
// gap in which none was chosen, and `held` those that it is made to have; `off` the heads that are
// off, by their names. What the model has learned on the page is in no address.

import { SAMPLING } from "./sampling.js";
import { FIRST_CHOICES, heads_of, layers_of } from "./state.js";

const WORDS_ALLOWED = {
  drawn: ["lines", "matrix"],
  language: ["en", "zh", "de"],
  theme: ["light", "dark"],
};

// The choices in a fragment; what makes no sense is passed over.
export function choices_of(fragment, page) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const choices = {};
  const { views, attentions } = page.task;
  const words_allowed = { ...WORDS_ALLOWED, view: views, attention: attentions };
  for (const [name, allowed] of Object.entries(words_allowed)) {
    if (allowed.includes(given.get(name))) {
      choices[name] = given.get(name);
    }
  }
  const { num_heads, max_length } = page.config;
  const attention = choices.attention ?? attentions.at(-1);
  const layers = layers_of({ attention, page });
  const numbers = { layer: layers, head: num_heads, step: max_length, source_row: max_length };
  for (const [name, most] of Object.entries(numbers)) {
    const number = Number(given.get(name) ?? NaN);
    if (Number.isInteger(number) && 1 <= number && number <= most) {
      choices[name] = number - 1;
    }
  }
  for (const [name, { allows }] of Object.entries(page.task.draws ? SAMPLING : {})) {
    if (allows(Number(given.get(name) ?? NaN))) {
      choices[name] = Number(given.get(name));
    }
  }
  const epoch = page.epochs.findIndex(({ epoch }) => String(epoch) === given.get("epoch"));
  if (epoch >= 0) {
    choices.epoch = epoch;
  }
  const example = page.examples[Number(given.get("example") ?? NaN) - 1];
  const text = given.get("text") ?? example;
  if (text !== undefined && (text.trim() !== "" || page.task.draws)) {
    choices.text = text;
  }
  if (is_box(given.get("box") ?? "", page.model)) {
    choices.box = given.get("box");
    choices.part = given.get("part"); // of which the state knows whether it is in the box
  }
  const forced = forced_in(given.get("forced") ?? "", page);
  if (forced.length > 0) {
    choices.forced = forced;
    choices.undo = [{ forced: [], step: choices.step ?? FIRST_CHOICES.step }];
  }
  const held = forced_in(given.get("held") ?? "", page);
  if (held.length > 0 && !held.includes(null)) {
    choices.held = held.map(({ id }) => ({ id, chosen: false }));
  }
  const named = (given.get("off") ?? "").split(" ");
  const off = heads_of(page.model).filter((head) => named.includes(head));
  if (off.length > 0) {
    choices.off = new Set(off);
  }
  return choices;
}

// What a page shows that is opened with these choices, and looks at `text`, step and source row
// where they name no text. All else that they leave out is as it is at first.
export function opened(choices, { page, text, step, source_row, language, theme }) {
  const where = choices.text === undefined ? { text, step, source_row } : {};
  const attention = page.task.attentions.at(-1);
  return { ...FIRST_CHOICES, attention, language, theme, ...where, ...choices };
}

function forced_in(text, { vocabulary, config, task }) {
  const forced = text.split(" ").map((piece) => {
    const [, id, star] = /^(\d+)(\*?)$/.exec(piece) ?? [null, NaN, ""];
    return piece === "-" && task.has_gaps ? null : { id: Number(id), chosen: star === "*" };
  });
  const may_be_said = (piece) =>
    piece === null ||
    (piece.id < vocabulary.pieces.length && !task.never_forced.includes(piece.id));
  return forced.length <= config.max_length && forced.every(may_be_said) ? forced : [];
}

function is_box(name, model) {
  const sides = Object.keys(model.stacks);
  const inputs = Object.values(model.stacks).map(({ input }) => input);
  const blocks = sides.flatMap((side) => model.blocks(side));
  const ends = inputs.flatMap((input) => [
    `${input}.embedding`,
    ...(model.added_positions ? [`${input}.positions`] : []),
  ]);
  const stacks = model.pre_norm ? sides.map((side) => `${side}.norm`) : [];
  const within = blocks.flatMap((block) => [block, `${block}.norm`, `${block}.residual`]);
  return [...within, ...ends, ...stacks, "logits", "probabilities"].includes(name);
}

// The fragment of a state.
export function fragment_of(state) {
  const { page, text, forced, off, view, attention, drawn, box, part, language, theme } = state;
  const example = page.examples.indexOf(text) + 1;
  const pieces = forced.map((piece) => (piece ? `${piece.id}${piece.chosen ? "*" : ""}` : "-"));
  const sampled = state.temperature > 0 && Object.keys(SAMPLING).map((name) => [name, state[name]]);
  const choices = {
    ...(example > 0 ? { example } : { text }),
    ...(forced.length > 0 && { forced: pieces.join(" ") }),
    ...(state.held && { held: state.held.map(({ id }) => id).join(" ") }),
    ...(off.size > 0 && { off: [...off].join(" ") }),
    ...(state.epoch !== null && { epoch: page.epochs[state.epoch].epoch }),
    step: state.step + 1,
    source_row: state.source_row + 1,
    view,
    attention,
    layer: state.layer + 1,
    head: state.head + 1,
    drawn,
    ...(sampled && Object.fromEntries(sampled)),
    ...(box && { box }),
    ...(part && { part }),
    language,
    theme,
  };
  return `#${new URLSearchParams(choices)}`;
}
