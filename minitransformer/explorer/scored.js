// A vocabulary whose pieces have scores, as Llama's have (data/text/scored.py): the pair of
// neighbours is joined whose union has the highest score. A piece is its bytes, each a character
// below 256.

import { joined } from "./joining.js";

const [UNKNOWN, BEGIN, END, FIRST_BYTE] = [0, 1, 2, 3];
const FIRST_PIECE = FIRST_BYTE + 256;
const WORDS_WITH_BLANKS = / *[^ ]+| +$/g;

export class ScoredVocabulary {
  constructor(pieces, scores) {
    this.bytes = pieces.map((piece, id) =>
      id < FIRST_BYTE ? "" : id < FIRST_PIECE ? String.fromCharCode(id - FIRST_BYTE) : piece,
    );
    this.scores = scores;
    this.ids = new Map();
    for (let id = FIRST_PIECE; id < pieces.length; id++) {
      if (!this.ids.has(pieces[id])) {
        this.ids.set(pieces[id], id);
      }
    }
    this.across = pieces.slice(FIRST_PIECE).some((piece) => / /.test(piece.replace(/^ +/, "")));
    this.special = { [UNKNOWN]: "unknown", [BEGIN]: "start", [END]: "end" };
    this.never = [UNKNOWN];
    this.ends = [BEGIN, END];
    this.pieces = pieces.map((_, id) => this.shown(id));
  }

  // The ids of a text, before which a blank is put.
  encode(text) {
    if (text === "") {
      return [];
    }
    const parts = this.across ? [` ${text}`] : ` ${text}`.match(WORDS_WITH_BLANKS);
    return parts.flatMap((word) => this.split(word));
  }

  // No character is unknown: bytes are left.
  unknown() {
    return [];
  }

  split(word) {
    const ids = Array.from(word, utf_8).flatMap((character) => {
      const whole = this.ids.get(character);
      return whole === undefined ? Array.from(character, byte_id) : [whole];
    });
    return joined(ids, (a, b) => {
      const part = this.ids.get(this.bytes[a] + this.bytes[b]);
      return part === undefined ? null : { rank: -this.scores[part], part };
    });
  }

  // The text of ids up to the first at which one ends, without the blank before it.
  decode(ids) {
    const end = ids.findIndex((id) => this.ends.includes(id));
    const said = (end < 0 ? ids : ids.slice(0, end)).map((id) => this.bytes[id]).join("");
    return text_of_bytes(said).replace(/^ /, "");
  }

  before() {
    return [BEGIN];
  }

  // A blank before a word is not shown; bytes that are no text are shown by their numbers.
  shown(id) {
    const bytes = this.bytes[id];
    const text = text_of_bytes(bytes);
    if (text.includes("\uFFFD") || /^[\0-\x1f\x7f]$/.test(text)) {
      const code = (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
      return text === "\n" ? "↵" : Array.from(bytes, code).join("");
    }
    return text === " " ? "␣" : text.replace(/^ (?=.)/u, "");
  }

  joins(id) {
    return !(id in this.special) && !/^\s/.test(this.bytes[id]);
  }
}

// A character as its bytes in UTF-8, each a character below 256.
function utf_8(character) {
  return String.fromCharCode(...new TextEncoder().encode(character));
}

function byte_id(byte) {
  return FIRST_BYTE + byte.charCodeAt(0);
}

function text_of_bytes(bytes) {
  const numbers = Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(numbers);
}
