// The vocabulary of single characters, as data/text/characters.py has it.

import { BOS, EOS, PAD, REPLACEMENT, UNK } from "./subwords.js";

const SEEN_AS = { " ": "␣", "\n": "↵", "\t": "⇥" }; // what could not be seen

export class CharacterVocabulary {
  constructor(pieces) {
    this.pieces = pieces;
    this.ids = new Map(pieces.slice(EOS + 1).map((piece, i) => [piece, i + EOS + 1]));
    this.special = { [BOS]: "start", [EOS]: "end", [UNK]: "unknown", [PAD]: "padding" };
    this.never = [PAD, UNK, BOS];
    this.ends = [EOS];
  }

  // The ids of a text, UNK for each unknown character.
  encode(text) {
    return Array.from(text, (character) => this.ids.get(character) ?? UNK);
  }

  // The characters of a text that have no id, each once, as they are shown.
  unknown(text) {
    const characters = [...new Set(text)].filter((character) => !this.ids.has(character));
    return characters.map((character) => SEEN_AS[character] ?? character);
  }

  // The text of ids up to the first EOS; PAD and BOS are nothing, UNK is REPLACEMENT.
  decode(ids) {
    const said = ids.includes(EOS) ? ids.slice(0, ids.indexOf(EOS)) : ids;
    return said
      .map((id) => (id === UNK ? REPLACEMENT : id > EOS ? this.pieces[id] : ""))
      .join("");
  }

  // A text begins after a line end, or where there is none after the end of another.
  before() {
    return [this.ids.get("\n") ?? EOS];
  }

  shown(id) {
    return SEEN_AS[this.pieces[id]] ?? this.pieces[id];
  }

  joins(id, before) {
    return ![id, before].some((i) => i in this.special || this.pieces[i] in SEEN_AS);
  }
}
