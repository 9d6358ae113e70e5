// What a person has chosen, and what follows from it: one object, from which all views are drawn.

import { bare } from "../subwords.js";
import { parts_of } from "./names.js";
import { speaker } from "./words.js";

const ALL_HEADS_ON = new Set();

// What can be chosen, and what it is before anybody does.
export const FIRST_CHOICES = {
  text: "", // the sentence that is translated, or what else tasks.js makes of a text
  note: null, // a word about what was typed and cannot be translated
  temperature: 0, // of sampling, see sampling.js
  top_k: 0,
  seed: 0,
  forced: [], // { id, chosen }: what the translation has to begin with
  held: null, // what it is made to write in place of all that, likewise; see epochs.js
  undo: [], // earlier values of `forced`
  epoch: null, // the number of an entry of page.epochs, or null for the run's model
  learned: [], // what the model has learned here, see teacher.js; the last is what it is now
  learning: null, // or what it is learning
  off: ALL_HEADS_ON, // names of heads, such as "encoder.0.self.2"
  step: null, // which piece of the translation is looked at; null is as the task says
  source_row: null, // which source piece's looking is shown; likewise
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
  part: null, // name of the array of it that is shown, or null for the last one
  language: "en",
  theme: "light",
};

// What follows from choices where nothing has been read.
export const NOTHING_YET = {
  source: null,
  cut: false,
  unknown: [],
  unseen: [],
  prompt: null,
  missing: "working_reading",
  steps: null,
  target: null,
  run: null,
  gradient: null,
  all_on: null,
};

// A function of the choices that gives the state: the choices and what follows from them. What the
// same choices led to before is not computed again, so that views see what has changed. `report` is
// told how far it is, { stage, count }: "said" so many pieces, or at "forward" or "backward".
//
//   page, say                     what load_model gives; the words of the language
//   model                         that of the page or of an epoch, or what has become of it
//   source, cut                   ids; whether the text is too long
//   unknown, unseen               characters the model does not know; for each piece of the source
//                                 the word that it is of, if the training had no such word, or null
//   prompt, missing               see tasks.js
//   steps, target, run, gradient  see translate.js and transformer.js; null where there is no text
//   all_on                        where heads are off: { steps, log_probability } with all of them
export function state_maker(page, report = () => {}) {
  const { vocabulary, task } = page;
  const known = page.words && new Set(page.words);
  const read = remembered((text) => task.read(page, text));
  const words_of = remembered((text) => vocabulary.read(text, vocabulary.max_length));
  const said = (model, reading, forced, off, temperature, top_k, seed) =>
    task.steps({ ...page, model, report }, reading, { forced, off, temperature, top_k, seed });
  const [translated, translated_all_on] = [remembered(said), remembered(said)];
  const to_target = remembered(
    ({ start }, steps) => start && [...start, ...steps.slice(0, -1).map(({ id }) => id)],
  );
  const all_boxes = (...given) => {
    report({ stage: "forward" });
    return task.forward(...given);
  };
  const [forward, forward_all_on] = [remembered(all_boxes), remembered(all_boxes)];
  const backward = remembered((model, ...given) => {
    report({ stage: "backward" });
    return model.gradient(...given);
  });
  const words_in = remembered(speaker);

  return (choices) => {
    const trained = page.epochs[choices.epoch]?.model() ?? page.model;
    const model = choices.learned.at(-1)?.model ?? trained;
    const say = words_in(choices.language, page.config.kind);
    const state = { ...choices, ...NOTHING_YET, page, model, say };
    state.layer = Math.min(state.layer, layers_of(state) - 1);
    state.unknown = vocabulary.unknown(task.words(state.text));
    const reading = read(state.text);
    Object.assign(state, { cut: reading.cut, missing: reading.missing, prompt: reading.prompt });
    if (reading.missing) {
      return state;
    }
    const { off, temperature, top_k, seed } = state;
    const forced = state.held ?? state.forced;
    state.source = reading.source;
    if (known) {
      state.unseen = words_of(state.text).map(({ id, word }) => {
        const seen = known.has(bare(word)) || bare(vocabulary.pieces[id]) === "";
        return seen ? null : bare(word); // marks beside a word are no part of it
      });
    }
    state.steps = translated(model, reading, forced, off, temperature, top_k, seed);
    state.step = Math.min(state.step ?? task.first_step(reading), state.steps.length - 1);
    const row = state.source_row ?? task.first_row(selected(state));
    state.source_row = Math.min(row, (state.source?.length ?? 1) - 1);
    state.target = to_target(reading, state.steps);
    state.run = forward(model, state.source, state.target, off);
    const parts = state.box ? parts_of(state.run, state.box) : [];
    state.part = parts.slice(0, -1).includes(state.part) ? state.part : null;
    const { position, id, among } = selected(state);
    state.gradient = backward(model, state.run, position, id, among);
    if (off.size > 0) {
      const run = forward_all_on(model, state.source, state.target, ALL_HEADS_ON);
      const { log_probability } = model.gradient(run, position, id, among);
      const choices_of_it = [forced, ALL_HEADS_ON, temperature, top_k, seed];
      const steps = translated_all_on(model, reading, ...choices_of_it);
      state.all_on = { steps, log_probability };
    }
    return state;
  };
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

// What is lost of a text: its characters that the vocabulary does not know, `unknown`, and whether
// it is too long and is `cut`.
export function misread(vocabulary, text) {
  return { unknown: vocabulary.unknown(text), cut: vocabulary.cuts(text) };
}

// How a piece is written: without the sign for a space, and what is no text by a word for it.
export function piece_text({ page, say }, id) {
  const special = page.vocabulary.special[id];
  return special ? `‹${say(special)}›` : page.vocabulary.shown(id);
}

// The piece that is looked at.
export function selected(state) {
  return state.steps[state.step];
}

// The names of all heads, such as "encoder.0.self.2".
export function heads_of(model) {
  const blocks = Object.keys(model.stacks).flatMap((side) => model.blocks(side));
  const attentions = blocks.filter((name) => !name.endsWith("feed_forward"));
  const numbers = [...Array(model.config.num_heads).keys()];
  return attentions.flatMap((name) => numbers.map((number) => `${name}.${number}`));
}

// How many layers have the kind of attention that is looked at.
export function layers_of({ attention, page }) {
  return page.model.stacks[attention === "encoder" ? "encoder" : "decoder"].layers;
}

// The attention that is looked at, such as "decoder.1.cross".
export function attention_name({ attention, layer }) {
  return attention === "cross" ? `decoder.${layer}.cross` : `${attention}.${layer}.self`;
}
