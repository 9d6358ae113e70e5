// Learning by steps of gradient descent, and what it does to other sentences.
//
// A lesson is { source, target, targets }: ids that are read, the decoder's input, BOS first, and
// for each of its positions the piece that is wanted next, PAD where any will do. Its loss is that
// of training, without smoothing and dropout.

import { Adam } from "./optim/adam.js";
import { SGD } from "./optim/sgd.js";
import { cross_entropy, cross_entropy_backward } from "./loss/cross_entropy.js";
import { BOS, PAD } from "./subwords.js";
import { Transformer } from "./transformer.js";
import { translate } from "./translate.js";

const OPTIMIZERS = { adam: Adam, sgd: SGD };

// Of source and what has been said, target[0 … position]: this piece should follow.
export function lesson_of_piece(source, target, position, piece) {
  const targets = [...Array(position).fill(PAD), piece];
  return { source, target: target.slice(0, position + 1), targets };
}

// All of these pieces should be said, each after those before it.
export function lesson_of_sentence(source, pieces) {
  return { source, target: [BOS, ...pieces.slice(0, -1)], targets: pieces };
}

// Learning a lesson without end, { model, loss } at first and after each step. A model is never
// changed: a step makes another one. `off` is as for forward.
export function* learn(model, lesson, { optimizer, learning_rate, off = new Set() }) {
  const { source, target, targets } = lesson;
  const descent = new OPTIMIZERS[optimizer](model.parameters);
  for (;;) {
    const run = model.forward(source, target, { off });
    const [loss, cache] = cross_entropy(run.logits, targets);
    yield { model, loss };
    const gradient = model.backward(cross_entropy_backward(1, cache), run);
    const parameters = descent.step(model.parameters, gradient, learning_rate);
    model = new Transformer(model.config, parameters);
  }
}

// What a model makes of a lesson: log_probability, of all that is wanted; ids, what it says, with
// the pieces forced that come before the first wanted one; and whether it says all that is wanted.
export function recited(model, { source, target, targets }, off = new Set()) {
  const wanted = targets.filter((piece) => piece !== PAD);
  const { logits } = model.forward(source, target, { off });
  const [loss] = cross_entropy(logits, targets);
  const forced = target.slice(1, targets.indexOf(wanted[0]) + 1);
  const ids = Array.from(translate(model, source, { forced, off }), ({ id }) => id);
  const said = targets.every((piece, t) => piece === PAD || piece === ids[t]);
  return { log_probability: -loss * wanted.length, ids, said };
}
