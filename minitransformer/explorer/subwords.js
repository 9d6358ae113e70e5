// The vocabulary: text in, ids of subword pieces out, and back, as data/text/vocabulary.py has them.

import { joined } from "./joining.js";

export const [PAD, UNK, BOS, EOS, MASK] = [0, 1, 2, 3, 4];
export const REPLACEMENT = "\uFFFD"; // what UNK is decoded to
export const BLANK = "\u2581"; // the sign for the space before a word

// What Python's str.split takes for blanks; JavaScript's \s differs from it. And what
// sentencepiece learns from no text, which counts as a blank.
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;
const RESERVED = /[\u2581\u2585\0]/gu;

export class Vocabulary {
  // `pieces`: the piece of each id; that of a lower id was learned earlier. With `has_mask` MASK is
  // the id of what is left out, and that of no text.
  constructor(pieces, max_length, has_mask = false) {
    this.pieces = pieces;
    this.max_length = max_length;
    const first = has_mask ? MASK + 1 : EOS + 1; // of text
    this.ids = new Map(pieces.slice(first).map((piece, i) => [piece, i + first]));
    this.special = { [BOS]: "start", [EOS]: "end", [UNK]: "unknown", [PAD]: "padding" };
    if (has_mask) {
      this.special[MASK] = "gap";
    }
    this.never = [PAD, UNK, BOS]; // ids that no text has
    this.ends = [EOS]; // and those at which one ends
  }

  // What a language model's text begins after: that a text before it has ended.
  before() {
    return [EOS];
  }

  // A piece of text as it is shown, without the sign for the space before it.
  shown(id) {
    return this.pieces[id].replace(/^▁(?=.)/u, "");
  }

  // Whether a piece goes on the word that the piece before it belongs to.
  joins(id) {
    return !(id in this.special) && !this.pieces[id].startsWith(BLANK);
  }

  // What a text is read as, without BOS and EOS, each { id, word }, the word that the piece is of:
  // the first `most` of them. Neighbouring unknown characters are one UNK.
  read(text, most = Infinity) {
    const found = [];
    for (const word of words(text)) {
      for (const piece of this.split(BLANK + word)) {
        const id = this.ids.get(piece) ?? UNK;
        if (id !== UNK || found.at(-1)?.id !== UNK) {
          found.push({ id, word });
        }
      }
      if (found.length >= most) {
        break;
      }
    }
    return found.slice(0, most);
  }

  // The ids alone.
  encode(text, most = Infinity) {
    return this.read(text, most).map(({ id }) => id);
  }

  // The characters of a text that are in no piece, each once.
  unknown(text) {
    const characters = new Set(words(text).join(""));
    return [...characters].filter((character) => !this.ids.has(character));
  }

  // Whether a text is longer than what a model takes of it.
  cuts(text) {
    return this.encode(text, this.max_length).length >= this.max_length;
  }

  // What a model is given of a text: all that it takes, and EOS.
  encode_source(text) {
    return [...this.encode(text, this.max_length - 1), EOS];
  }

  // Byte-pair encoding of a word: of all neighbours that make a piece together, those whose piece
  // was learned first are joined, the leftmost of them first, and again, until none make one.
  split(word) {
    return joined(Array.from(word), (a, b) => {
      const rank = this.ids.get(a + b);
      return rank === undefined ? null : { rank, part: a + b };
    });
  }

  // The text of ids up to the first EOS; UNK is REPLACEMENT, PAD, BOS and MASK are nothing.
  decode(ids) {
    const said = ids.includes(EOS) ? ids.slice(0, ids.indexOf(EOS)) : ids;
    const of_text = (id) => (id in this.special ? "" : this.pieces[id]);
    const pieces = said.map((id) => (id === UNK ? REPLACEMENT : of_text(id)));
    return pieces.join("").replaceAll(BLANK, " ").trimStart();
  }
}

// A word without the marks before and after it.
export function bare(word) {
  return word.replace(/^\p{P}+|\p{P}+$/gu, "");
}

// The words of a text, its accents composed with their letters (Unicode NFC).
export function words(text) {
  const plain = text.replace(RESERVED, " ").replace(/\p{Surrogate}/gu, "?").normalize("NFC");
  return plain.split(BLANKS).filter((word) => word !== "");
}
