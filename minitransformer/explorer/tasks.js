// What is done with a text, by the kind of the model. A task has
//   views                 what can be looked at
//   attentions            the kinds of attention there are, the one to look at first at the end
//   has_gaps              whether `forced` has an entry for each gap, null where none was chosen
//   draws                 whether pieces can be drawn, and a text may begin with nothing
//   words(text)           what of a text the model is to know
//   read(page, text)      what the model is given of it: { source, start, prompt, cut, missing },
//                         the first three ids or null, with gaps `begins` in place of `prompt`;
//                         `cut` whether it is too long, `missing` a word about a text that there is
//                         nothing to be done with, or null
//   steps(page, reading, choices)
//                         what the model says, see translate.js, generate.js and fill.js; it tells
//                         `page.report`, if there is one, of each piece
//   first_step(reading)   the number of the step that is looked at before anybody has chosen
//   first_row(step)       and the row of the source, with a step of `steps`
//   forward(model, source, target, off)
//   text(page, text, steps)
//                         the text that has come of it
//   never_forced          ids that no text can be made to begin with
//   chosen(state, id)     `forced` with another piece at the selected step
//   on_step               choices that selecting another step takes back
//   most(page)            how many pieces are read at most

import { encode_with_gaps, fill, filled, framed, may_stand, without_gaps } from "./fill.js";
import { generate } from "./generate.js";
import { BOS, PAD } from "./subwords.js";
import { translate } from "./translate.js";

const MOST_SHOWN = 64; // pieces; of more than these a table of weights could not be read
const EVERY_VIEW = ["next", "attention", "gradients"];

const TRANSLATION = {
  views: [...EVERY_VIEW, "learn"],
  has_gaps: false,
  never_forced: [PAD, BOS],
  attentions: ["encoder", "decoder", "cross"],
  draws: false,
  words: (text) => text,
  read({ vocabulary }, text) {
    const cut = vocabulary.cuts(text);
    const missing = vocabulary.encode(text, 1).length === 0 ? "note_empty" : null;
    return { source: vocabulary.encode_source(text), start: [BOS], prompt: [], cut, missing };
  },
  steps({ model, report }, { source }, { forced, off }) {
    return reported(translate(model, source, { forced: ids_of(forced), off }), report);
  },
  first_step: () => 1,
  first_row: () => 1,
  forward: (model, source, target, off) => model.forward(source, target, { off }),
  text: said,
  chosen: with_what_stands_before,
  on_step: {},
  most: ({ vocabulary }) => vocabulary.max_length - 1,
};

const GENERATION = {
  views: EVERY_VIEW,
  has_gaps: false,
  never_forced: [],
  attentions: ["decoder"],
  draws: true,
  words: (text) => text,
  read(page, text) {
    const { vocabulary } = page;
    const ids = [...vocabulary.before(), ...vocabulary.encode(text)];
    const cut = ids.length > GENERATION.most(page);
    // Of what is too long the newer half is seen, so that there is room to go on. The command sees
    // as much of it as the model takes (decoding/whole.py), and may go on otherwise.
    const [first, ...prompt] = cut ? ids.slice(-Math.ceil(GENERATION.most(page) / 2)) : ids;
    return { source: null, start: [first], prompt, cut, missing: null };
  },
  steps(page, { start, prompt }, { forced, ...choices }) {
    const begin = forced.length > 0 ? ids_of(forced) : prompt;
    const options = { ...choices, forced: begin };
    const steps = generate(page.model, page.vocabulary, start, GENERATION.most(page), options);
    return reported(steps, page.report);
  },
  first_step: ({ prompt }) => prompt.length,
  first_row: () => 0,
  forward: (model, source, target, off) => model.forward(target, { off }),
  text: said,
  chosen: with_what_stands_before,
  on_step: {},
  most: ({ config }) => Math.min(config.max_length, MOST_SHOWN),
};

const FILLING = {
  views: EVERY_VIEW,
  has_gaps: true,
  never_forced: [],
  attentions: ["encoder"],
  draws: false,
  words: without_gaps,
  read(page, text) {
    const [ids, begins] = encode_with_gaps(page.vocabulary, text);
    const cut = ids.length > FILLING.most(page);
    const is_stuck = (begin) => !may_stand(page.vocabulary, begin).data.includes(1);
    const stuck = !cut && begins.some(is_stuck);
    const missing =
      begins.length === 0 ? "note_empty" : cut ? "note_cut" : stuck ? "note_no_piece" : null;
    return { source: framed(ids), start: null, begins, cut, missing };
  },
  steps({ model, vocabulary }, { source, begins }, { forced, off }) {
    const ids = forced.map((piece) => piece?.id);
    return fill(model, vocabulary, source, begins, { forced: ids, off });
  },
  first_step: () => 0,
  first_row: ({ position }) => position,
  forward: (model, source, target, off) => model.forward(source, { off }),
  text: ({ vocabulary }, text, steps) => filled(vocabulary, text, steps),
  chosen({ steps, step, forced }, id) {
    const chosen = (gap) => (gap === step ? { id, chosen: true } : forced[gap]);
    return steps.map((_, gap) => chosen(gap));
  },
  on_step: { source_row: null }, // which is then that of the gap
  most: ({ config }) => Math.min(config.max_length, 2 * MOST_SHOWN) - 2, // and BOS and EOS
};

export const TASKS = {
  transformer: TRANSLATION,
  "language-model": GENERATION,
  "masked-language-model": FILLING,
};

function said({ vocabulary }, text, steps) {
  return vocabulary.decode(ids_of(steps));
}

// What has been said before the selected step, and then this piece.
function with_what_stands_before({ steps, step, forced }, id) {
  const before = steps
    .slice(0, step)
    .map(({ id }, i) => ({ id, chosen: forced[i]?.chosen ?? false }));
  return [...before, { id, chosen: true }];
}

function reported(steps, report) {
  return Array.from(steps, (step, i) => {
    report?.({ stage: "said", count: i + 1 });
    return step;
  });
}

function ids_of(pieces) {
  return pieces.map(({ id }) => id);
}
