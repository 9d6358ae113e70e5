// The address says what is looked at, after its #, so that a link opens exactly that and can be
// passed on: #example=1&step=3&view=attention&attention=cross&layer=2&head=3. Numbers begin at 1.
// `forced` are the ids of the pieces that the translation begins with, with a * the chosen ones;
// `off` the heads that are off, by their names.

import { BOS, PAD } from "../subwords.js";
import { FIRST_CHOICES, heads_of } from "./state.js";

const WORDS_ALLOWED = {
  view: ["next", "attention", "gradients", "learn"],
  attention: ["encoder", "decoder", "cross"],
  drawn: ["lines", "matrix"],
  language: ["en", "zh", "de"],
  theme: ["light", "dark"],
};

// The choices in a fragment; what makes no sense is passed over.
export function choices_of(fragment, page) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const choices = {};
  for (const [name, allowed] of Object.entries(WORDS_ALLOWED)) {
    if (allowed.includes(given.get(name))) {
      choices[name] = given.get(name);
    }
  }
  const { num_encoder_layers, num_decoder_layers, num_heads, max_length } = page.config;
  const layers = choices.attention === "encoder" ? num_encoder_layers : num_decoder_layers;
  const numbers = { layer: layers, head: num_heads, step: max_length, source_row: max_length };
  for (const [name, most] of Object.entries(numbers)) {
    const number = Number(given.get(name) ?? NaN);
    if (Number.isInteger(number) && 1 <= number && number <= most) {
      choices[name] = number - 1;
    }
  }
  const example = page.examples[Number(given.get("example") ?? NaN) - 1];
  const text = given.get("text") ?? example;
  if (text !== undefined && text.trim() !== "") {
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
  const named = (given.get("off") ?? "").split(" ");
  const off = heads_of(page.model).filter((head) => named.includes(head));
  if (off.length > 0) {
    choices.off = new Set(off);
  }
  return choices;
}

// What a page shows that is opened with these choices, and looks at `text`, step and source row
// where they name no text. All else that they leave out is as it is at first.
export function opened(choices, { text, step, source_row, language, theme }) {
  const where = choices.text === undefined ? { text, step, source_row } : {};
  return { ...FIRST_CHOICES, language, theme, ...where, ...choices };
}

function forced_in(text, { vocabulary, config }) {
  const pieces = text.split(" ").map((piece) => /^(\d+)(\*?)$/.exec(piece));
  const forced = pieces.map((piece) => ({ id: Number(piece?.[1] ?? NaN), chosen: !!piece?.[2] }));
  const may_be_said = ({ id }) => id < vocabulary.pieces.length && id !== PAD && id !== BOS;
  return forced.length <= config.max_length && forced.every(may_be_said) ? forced : [];
}

function is_box(name, model) {
  const blocks = [...model.blocks("encoder"), ...model.blocks("decoder")];
  const ends = ["source", "target"].flatMap((side) => [`${side}.embedding`, `${side}.positions`]);
  const stacks = model.pre_norm ? ["encoder.norm", "decoder.norm"] : [];
  const within = blocks.flatMap((block) => [block, `${block}.norm`, `${block}.residual`]);
  return [...within, ...ends, ...stacks, "logits", "probabilities"].includes(name);
}

// The fragment of a state.
export function fragment_of(state) {
  const { page, text, forced, off, view, attention, drawn, box, part, language, theme } = state;
  const example = page.examples.indexOf(text) + 1;
  const pieces = forced.map(({ id, chosen }) => `${id}${chosen ? "*" : ""}`);
  const choices = {
    ...(example > 0 ? { example } : { text }),
    ...(forced.length > 0 && { forced: pieces.join(" ") }),
    ...(off.size > 0 && { off: [...off].join(" ") }),
    step: state.step + 1,
    source_row: state.source_row + 1,
    view,
    attention,
    layer: state.layer + 1,
    head: state.head + 1,
    drawn,
    ...(box && { box }),
    ...(part && { part }),
    language,
    theme,
  };
  return `#${new URLSearchParams(choices)}`;
}
