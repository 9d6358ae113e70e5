// Runs the explorer's modules: one request, JSON on standard input, one answer, JSON on standard
// output, in which an array is its shape and its numbers in base64.
//
//   node run.mjs FOLDER        of the modules
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(resolve(process.argv[2], name)));
const { load_model } = await load("load.js");
const { array } = await load("arrays.js");
const { IncrementalDecoder, translate } = await load("translate.js");
const learning = await load("learn.js");
const { LanguageModelDecoder } = await load("generate.js");
const { drawn, sampling_probabilities } = await load("sampling.js");
const { uniform_numbers } = await load("random.js");

const request = JSON.parse(readFileSync(0, "utf8"));
const page = load_model({ getElementById: () => ({ textContent: request.model }) });
const { vocabulary, model, task, config, examples } = page;

function encoded(x) {
  const numbers = Float64Array.from(x.data);
  return { shape: x.shape, numbers: Buffer.from(numbers.buffer).toString("base64") };
}

function looked_into({ source, target, off, position, piece, among }) {
  const run = task.forward(model, source, target, new Set(off));
  const mask = among ? array([1, among.length], Float64Array.from(among, Number)) : null;
  const gradient = model.gradient(run, position, piece, mask);
  const decoder = {
    transformer: () => new IncrementalDecoder(model, source, new Set(off)),
    "language-model": () => new LanguageModelDecoder(model, new Set(off)),
    "masked-language-model": () => null,
  }[config.kind]();
  return {
    boxes: run.states.map(({ name, functions, lesson }) => ({ name, functions, lesson })),
    states: run.states.map(({ name, value }) => [name, encoded(value)]),
    gradients: Object.entries(gradient.gradients).map(([name, value]) => [name, encoded(value)]),
    flow: gradient.flow.map(({ block, residual, sublayer, memory, ...norms }) => ({
      block,
      residual: encoded(residual),
      sublayer: encoded(sublayer),
      memory: memory ? encoded(memory) : null,
      norms,
    })),
    log_probability: gradient.log_probability,
    steps: decoder ? target.map((id) => encoded(decoder.step(id))) : [],
  };
}

// What the page makes of a text, and the gradient of each piece that it says.
function made_of({ text, off = [], ...choices }) {
  const all = { forced: [], off: new Set(off), ...choices };
  const reading = task.read(page, text);
  const steps = reading.missing ? [] : task.steps(page, reading, all);
  const target = reading.start && [...reading.start, ...steps.slice(0, -1).map(({ id }) => id)];
  const run = reading.missing ? null : task.forward(model, reading.source, target, all.off);
  return {
    ...reading,
    steps: steps.map(({ among, ...step }) => step),
    text: task.text(page, text, steps),
    log_probabilities: steps.map(
      ({ position, id, among }) => model.gradient(run, position, id, among).log_probability,
    ),
  };
}

// A lesson is of a piece, which is given, or of the pieces of a sentence.
function lesson_of({ source, target, position, piece, pieces }) {
  return pieces
    ? learning.lesson_of_sentence(source, pieces)
    : learning.lesson_of_piece(source, target, position, piece);
}

function learned({ steps, off, ...asked }) {
  const options = { ...asked, off: new Set(off) };
  const lesson = lesson_of(asked);
  const found = [];
  for (const { model: after, loss } of learning.learn(model, lesson, options)) {
    found.push({ loss, parameters: Object.values(after.parameters).map(encoded) });
    if (found.length > steps) {
      return { lesson, steps: found, recited: learning.recited(after, lesson, options.off) };
    }
  }
}

const answer = {
  learned: (request.learned ?? []).map(learned),
  examples,
  parameters: (request.parameters ?? []).map((name) => encoded(model.parameters[name])),
  epochs: page.epochs.map(({ epoch, model }) => [
    epoch,
    (request.parameters ?? []).map((name) => encoded(model().parameters[name])),
  ]),
  runs: (request.runs ?? []).map(looked_into),
  ids: (request.texts ?? []).map((text) => vocabulary.encode(text)),
  unknown: (request.texts ?? []).map((text) => vocabulary.unknown(text)),
  sources: (request.texts ?? []).map((text) => vocabulary.encode_source?.(text)),
  texts: (request.ids ?? []).map((ids) => vocabulary.decode(ids)),
  translations: (request.translations ?? []).map(({ source, forced, off }) => [
    ...translate(model, source, { forced, off: new Set(off) }),
  ]),
  made: (request.made ?? []).map(made_of),
  draws: (request.draws ?? []).map(({ logits, temperature, top_k, never, uniform }) => {
    const p = sampling_probabilities(Float64Array.from(logits), temperature, top_k, never);
    return { p: Array.from(p), drawn: drawn(p, uniform) };
  }),
  uniform: (request.seeds ?? []).map((seed) => {
    const numbers = uniform_numbers(seed);
    return Array.from({ length: 5 }, () => numbers.next().value);
  }),
};
process.stdout.write(JSON.stringify(answer));
