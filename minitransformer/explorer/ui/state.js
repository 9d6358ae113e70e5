// What a person has chosen, and what follows from it: one object, from which all views are drawn.

import { BOS, EOS, UNK } from "../subwords.js";
import { translate } from "../translate.js";
import { speaker } from "./words.js";

const ALL_HEADS_ON = new Set();

// What can be chosen, and what it is before anybody does.
export const FIRST_CHOICES = {
  text: "", // the sentence that is translated
  note: null, // a word about what was typed and cannot be translated
  forced: [], // { id, chosen }: what the translation has to begin with
  undo: [], // earlier values of `forced`
  learned: [], // what the model has learned here, see teacher.js; the last is what it is now
  learning: null, // or what it is learning
  off: ALL_HEADS_ON, // names of heads, such as "encoder.0.self.2"
  step: 1, // which piece of the translation is looked at
  source_row: 1, // which source piece's looking is shown
  view: "next", // or "attention", "gradients", "learn"
  attention: "cross", // or "encoder", "decoder"
  layer: 0,
  head: 0,
  drawn: "lines", // or "matrix"
  teaching: "piece", // or "sentence"
  wanted: null, // what was typed as the sentence to teach
  optimizer: "adam", // or "sgd"
  rates: { adam: 0.0003, sgd: 0.01 }, // the learning rate of each
  num_steps: 12,
  box: null, // name of the box that is open
  part: null, // name of the array of it that is shown
  language: "en",
  theme: "light",
};

// A function of the choices that gives the state: the choices and what follows from them. What the
// same choices led to before is not computed again, so that views see what has changed.
//
//   page, say                     what load_model gives; the words of the language
//   model                         that of the page, or what has become of it
//   source, unknown, cut          ids; characters the model does not know; whether it is too long
//   steps, target, run, gradient  see translate.js and transformer.js; null where there is no text
//   all_on                        where heads are off: { steps, log_probability } with all of them
export function state_maker(page) {
  const { vocabulary } = page;
  const read = remembered((text) => vocabulary.encode_source(text));
  const translated = remembered((...given) => Array.from(translation_of(...given)));
  const translated_all_on = remembered((...given) => Array.from(translation_of(...given)));
  const to_target = remembered((steps) => [BOS, ...steps.slice(0, -1).map(({ id }) => id)]);
  const forward = remembered((model, source, target, off) =>
    model.forward(source, target, { off }),
  );
  const forward_all_on = remembered((model, source, target) => model.forward(source, target));
  const backward = remembered((model, run, step, id) => model.gradient(run, step, id));
  const words_in = remembered(speaker);

  return (choices) => {
    const model = choices.learned.at(-1)?.model ?? page.model;
    const state = { ...choices, page, model, say: words_in(choices.language) };
    state.layer = Math.min(state.layer, layers_of(state) - 1);
    Object.assign(state, { source: null, steps: null, target: null, run: null, gradient: null });
    Object.assign(state, { all_on: null, ...misread(vocabulary, state.text) });
    if (state.text.trim() === "") {
      return state;
    }
    const { off, forced } = state;
    state.source = read(state.text);
    state.steps = translated(model, state.source, forced, off);
    state.step = Math.min(state.step, state.steps.length - 1);
    state.source_row = Math.min(state.source_row, state.source.length - 1);
    state.target = to_target(state.steps);
    state.run = forward(model, state.source, state.target, off);
    state.gradient = backward(model, state.run, state.step, state.steps[state.step].id);
    if (off.size > 0) {
      const run = forward_all_on(model, state.source, state.target);
      const { log_probability } = model.gradient(run, state.step, state.steps[state.step].id);
      const steps = translated_all_on(model, state.source, forced, ALL_HEADS_ON);
      state.all_on = { steps, log_probability };
    }
    return state;
  };
}

function translation_of(model, source, forced, off) {
  return translate(model, source, { forced: forced.map(({ id }) => id), off });
}

// f, which gives what it gave before if it is called with what it was called with before.
function remembered(f) {
  let before = null;
  let value;
  return (...given) => {
    if (!before || given.some((argument, i) => argument !== before[i])) {
      value = f(...given);
      before = given;
    }
    return value;
  };
}

// What is lost of a text: its characters that are in no piece of the vocabulary, `unknown`, and
// whether it is too long and is `cut`.
export function misread(vocabulary, text) {
  const characters = new Set(text.normalize("NFC").replace(/\s/gu, ""));
  return {
    unknown: [...characters].filter((character) => vocabulary.encode(character).includes(UNK)),
    cut: vocabulary.encode(text, vocabulary.max_length).length >= vocabulary.max_length,
  };
}

// How a piece is written: without the sign for a space, and what is no text by a word for it.
export function piece_text({ page, say }, id) {
  const special = { [BOS]: "start", [EOS]: "end", [UNK]: "unknown" }[id];
  return special ? `‹${say(special)}›` : page.vocabulary.pieces[id].replace(/^▁(?=.)/u, "");
}

// The piece that is looked at.
export function selected(state) {
  return state.steps[state.step];
}

// How many layers have the kind of attention that is looked at.
export function layers_of({ attention, page }) {
  return page.config[attention === "encoder" ? "num_encoder_layers" : "num_decoder_layers"];
}

// The attention that is looked at, such as "decoder.1.cross".
export function attention_name({ attention, layer }) {
  return attention === "cross" ? `decoder.${layer}.cross` : `${attention}.${layer}.self`;
}
