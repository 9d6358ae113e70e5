// The address says what is looked at, after its #, so that a link leads to a view and can be passed
// on: #example=1&view=attention&attention=cross&layer=2&head=3. Numbers begin at 1, but for those
// of sampling, temperature=0.8&top_k=5&seed=0.

import { SAMPLING } from "./sampling.js";
import { layers_of } from "./state.js";

const WORDS_ALLOWED = {
  view: ["next", "attention", "gradients"],
  drawn: ["lines", "matrix"],
  language: ["en", "zh", "de"],
  theme: ["light", "dark"],
};

// The choices in a fragment; what makes no sense is passed over.
export function choices_of(fragment, page) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const choices = {};
  const words_allowed = { ...WORDS_ALLOWED, attention: page.task.attentions };
  for (const [name, allowed] of Object.entries(words_allowed)) {
    if (allowed.includes(given.get(name))) {
      choices[name] = given.get(name);
    }
  }
  const { num_heads, max_length } = page.config;
  const attention = choices.attention ?? page.task.attentions.at(-1);
  const numbers = { layer: layers_of({ attention, page }), head: num_heads, step: max_length };
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
  const example = page.examples[Number(given.get("example") ?? NaN) - 1];
  const text = given.get("text") ?? example;
  if (text !== undefined && text.trim() !== "") {
    choices.text = text;
  }
  if (is_box(given.get("box") ?? "", page.model)) {
    choices.box = given.get("box");
  }
  return choices;
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
  const { page, text, view, attention, layer, head, drawn, step, box } = state;
  const example = page.examples.indexOf(text) + 1;
  const sampled = state.temperature > 0 && Object.keys(SAMPLING).map((name) => [name, state[name]]);
  const choices = {
    ...(example > 0 ? { example } : { text }),
    step: step + 1,
    view,
    ...(view === "attention" && { attention, layer: layer + 1, head: head + 1, drawn }),
    ...(sampled && Object.fromEntries(sampled)),
    ...(box && { box }),
  };
  return `#${new URLSearchParams(choices)}`;
}
