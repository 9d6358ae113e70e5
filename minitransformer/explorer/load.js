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
//   epochs                        earlier ones of the model, { epoch, model() }
//   bits, works_beside            of each number; whether a worker computes, see ui/engine.js
//   corpus, label_smoothing       of its training; the name is "" and the number 0 if unknown
//   words                         of the training's source sentences, each once, or null
//   own                           null, or of a learner's functions: { file, sources, compared,
//                                 differ, certificate }, see Own in page.py
export function load_model(document) {
  return loaded(contents_of(document));
}

export function contents_of(document) {
  return JSON.parse(document.getElementById("model").textContent);
}

// The same of contents, models without their numbers, or none, if somebody else is to compute.
export function loaded(contents, has_numbers = true) {
  const { config, vocabulary: said, shapes, block, numbers, ...others } = contents;
  const vocabulary = VOCABULARIES[said.unit](said, config.max_length);
  const model_of = (parameters) => new MODELS[config.kind](config, parameters);
  const arrays = (base64, bits) => named_arrays(shapes, bits, block, base64);
  const epochs = others.epochs.map(({ epoch, numbers }) => {
    let model = null; // which nobody may want to see
    const made = () => (model ??= model_of(arrays(numbers, 8)));
    return { epoch, model: has_numbers ? made : () => null };
  });
  const model = model_of(has_numbers ? arrays(numbers, others.bits) : {});
  return { config, vocabulary, model, task: TASKS[config.kind], ...others, epochs };
}

// The arrays of the shapes, by name, whose numbers stand in base64 as stored.py has them.
function named_arrays(shapes, bits, block, base64) {
  const bytes = bytes_in(base64);
  const sizes = Object.values(shapes).map((shape) => shape.reduce((product, n) => product * n, 1));
  const numbers = bits === 8 ? from_8_bits(bytes, sizes, block) : from_float32(bytes, sizes);
  const arrays = Object.entries(shapes).map(([name, shape], i) => [name, array(shape, numbers[i])]);
  return Object.fromEntries(arrays);
}

function bytes_in(base64) {
  const text = atob(base64);
  const bytes = new DataView(new ArrayBuffer(text.length));
  for (let i = 0; i < text.length; i++) {
    bytes.setUint8(i, text.charCodeAt(i));
  }
  return bytes;
}

function from_float32(bytes, sizes) {
  let start = 0;
  return sizes.map((size) => {
    const first = start;
    start += size;
    return Float64Array.from({ length: size }, (_, i) => bytes.getFloat32(4 * (first + i), true));
  });
}

// Scales of all blocks, the upper halves of a float32, and then the whole numbers of all blocks, of
// which the last of an array is filled up.
function from_8_bits(bytes, sizes, block) {
  const count = sizes.reduce((sum, size) => sum + Math.ceil(size / block), 0);
  const float32 = new DataView(new ArrayBuffer(4));
  const scale_of = (number) => {
    float32.setUint16(0, bytes.getUint16(2 * number, true));
    return float32.getFloat32(0);
  };
  let number = 0; // of the block that is read
  return sizes.map((size) => {
    const numbers = new Float64Array(size);
    for (let start = 0; start < size; start += block, number++) {
      const scale = scale_of(number);
      const from = 2 * count + number * block;
      for (let i = 0; i < Math.min(block, size - start); i++) {
        numbers[start + i] = scale * bytes.getInt8(from + i);
      }
    }
    return numbers;
  });
}
