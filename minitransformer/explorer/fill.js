// Filling the gaps in a text (inference/filler.py).

import { array, row } from "./arrays.js";
import { softmax } from "./layers/softmax.js";
import { BLANK, BOS, EOS, MASK, UNK, words } from "./subwords.js";
import { likeliest } from "./translate.js";

const UNDERSCORES = /_{3,}/gu; // where a piece is left out of a text

// The ids of a text in which MASK stands where pieces are left out, and of each gap whether it
// begins a word: whether a blank or nothing stands before it.
export function encode_with_gaps(vocabulary, text) {
  const [ids, begins] = [[], []];
  const add = (part) => {
    const of_part = vocabulary.split(part).map((piece) => vocabulary.ids.get(piece) ?? UNK);
    ids.push(...of_part.filter((id, i) => id !== UNK || of_part[i - 1] !== UNK));
  };
  for (const word of words(text)) {
    const [head, ...rest] = word.split(UNDERSCORES);
    if (head !== "" || rest.length === 0) {
      add(BLANK + head);
    }
    rest.forEach((part, i) => {
      ids.push(MASK);
      begins.push(head === "" && i === 0);
      if (part !== "") {
        add(part);
      }
    });
  }
  return [ids, begins];
}

// What stands around the gaps of a text.
export function without_gaps(text) {
  return text.replace(UNDERSCORES, " ");
}

// What the model is given: BOS, the ids of a text with gaps, EOS.
export function framed(ids) {
  return [BOS, ...ids, EOS];
}

// The gaps in ids, all filled at once, each as a step of `translate` with `among`: the pieces that
// may stand there, (1, V), those that begin a word or those that do not. Of these alone
// probabilities are. Id and position say which piece of which row of the logits is looked at;
// `forced` has at the number of a gap the id that is looked at in place of the likeliest.
export function fill(model, vocabulary, ids, begins, { forced = [], off = new Set() } = {}) {
  const { logits } = model.forward(ids, { off });
  const gaps = [...ids.keys()].filter((position) => ids[position] === MASK);
  return gaps.map((position, gap) => {
    const among = may_stand(vocabulary, begins[gap]); // (1, V)
    const [p] = softmax(array(among.shape, row(logits, position)), among);
    const candidates = likeliest(p).filter(({ id }) => among.data[id] > 0);
    const is_forced = among.data[forced[gap]] > 0; // a link may name what cannot stand there
    const id = is_forced ? forced[gap] : candidates[0].id;
    return { position, id, probability: p.data[id], forced: is_forced, candidates, among };
  });
}

// 1 at each piece that may stand in a gap, one that begins a word or not, and 0 at others, (1, V).
export function may_stand(vocabulary, begins) {
  const fits = (piece, id) =>
    id > MASK && piece !== BLANK && piece.startsWith(BLANK) === begins ? 1 : 0;
  return array([1, vocabulary.pieces.length], Float64Array.from(vocabulary.pieces, fits));
}

// The text with the pieces of steps in its gaps.
export function filled(vocabulary, text, steps) {
  const pieces = steps.map(({ id }) => vocabulary.shown(id));
  return text.replace(UNDERSCORES, () => pieces.shift());
}
