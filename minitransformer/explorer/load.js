import { array } from "./arrays.js";
import { CharacterVocabulary } from "./characters.js";
import { LanguageModel, MaskedLanguageModel } from "./language_model.js";
import { ScoredVocabulary } from "./scored.js";
import { Vocabulary } from "./subwords.js";
import { TASKS } from "./tasks.js";
import { Transformer } from "./transformer.js";

const MODELS = {
  transformer: Transformer,
  "language-model": LanguageModel,
  "masked-language-model": MaskedLanguageModel,
};
const VOCABULARIES = {
  subwords: ({ pieces }, max_length) => new Vocabulary(pieces, max_length),
  "subwords and a mask": ({ pieces }, max_length) => new Vocabulary(pieces, max_length, true),
  characters: ({ pieces }) => new CharacterVocabulary(pieces),
  scored: ({ pieces, scores }) => new ScoredVocabulary(pieces, scores),
};

// What page.py has put into the page: config, vocabulary, model, task (see tasks.js), and
//   examples                      texts
//   first                         { example, step } to open it on, or null
//   languages                     the codes of what is read and written, or null
//   lessons                       where the page of a lesson is, by its number, "07"
//   version, parameters           of what made the page; how many numbers the model has
//   corpus, label_smoothing       of its training; the name is "" and the number 0 if unknown
//   words                         of the training's source sentences, each once, or null
//   own                           null, or of a learner's functions: { file, sources, compared,
//                                 differ, certificate }, see Own in page.py
export function load_model(document) {
  const contents = JSON.parse(document.getElementById("model").textContent);
  const { config, vocabulary: said, shapes, numbers, ...others } = contents;
  const vocabulary = VOCABULARIES[said.unit](said, config.max_length);
  const model = new MODELS[config.kind](config, named_arrays(shapes, from_float32(numbers)));
  return { config, vocabulary, model, task: TASKS[config.kind], ...others };
}

// The arrays of the shapes, by name, that lie one after the other in `data`.
function named_arrays(shapes, data) {
  let start = 0;
  const arrays = Object.entries(shapes).map(([name, shape]) => {
    const size = shape.reduce((product, n) => product * n, 1);
    start += size;
    return [name, array(shape, data.subarray(start - size, start))];
  });
  return Object.fromEntries(arrays);
}

// The numbers in base64 of little-endian float32.
function from_float32(base64) {
  const text = atob(base64);
  const bytes = new DataView(new ArrayBuffer(text.length));
  for (let i = 0; i < text.length; i++) {
    bytes.setUint8(i, text.charCodeAt(i));
  }
  return Float64Array.from({ length: text.length / 4 }, (_, i) => bytes.getFloat32(4 * i, true));
}
