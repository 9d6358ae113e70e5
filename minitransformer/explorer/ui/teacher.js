// Teaching: a step, then the browser may draw, and so on; and then what that did to other sentences,
// one after the other. Models are values: what is undone is the model of before.

import { learn, lesson_of_sentence, recited } from "../learn.js";
import { PAD } from "../subwords.js";
import { translate } from "../translate.js";

// A teacher: teach(lesson) teaches a lesson (see learn.js) about the sentence of the page, and looks
// at the others; stop() ends early the one or the other, and go_back(count) leaves so many of the
// lessons learned. Meanwhile the state's `learning` is { number, lesson, losses, num_steps, stopped },
// numbers counting what was begun; who makes that null in between ends it without a trace. What came
// of it is added to `learned`:
//
//   number, text, lesson  what was taught
//   model                 what it has become
//   losses, num_steps     at first and after each step; how many there were to be
//   alone                 ids of the translation that nothing is forced on, { before, after }
//   changes, num_others   see change_of; how many other sentences there are
export function make_teacher(update, current) {
  let begun = 0;
  const teach = async (lesson) => {
    const { page, model: before, off, text, learned, optimizer, rates, num_steps } = current();
    begun += 1;
    const number = begun;
    const is_going_on = () => current().learning?.number === number;
    // Lets the browser draw, and others act; gives whether to go on.
    const may_go_on = async () => {
      await new Promise((resolve) => setTimeout(resolve));
      return is_going_on() && !current().learning.stopped;
    };
    let [after, losses] = [before, []];
    update({ learning: { number, lesson, losses, num_steps, stopped: false } });
    const options = { optimizer, learning_rate: rates[optimizer], off };
    for (const { model, loss } of learn(before, lesson, options)) {
      [after, losses] = [model, [...losses, loss]];
      update({ learning: { ...current().learning, losses } });
      if (!(await may_go_on()) || losses.length > num_steps) {
        break;
      }
    }
    const end = () => is_going_on() && update({ learning: null });
    if (!is_going_on() || losses.length === 1) {
      end();
      return;
    }
    if (losses.length <= num_steps) {
      update({ learning: { ...current().learning, stopped: false } }); // what follows can be, too
    }
    const said = (model) => Array.from(translate(model, lesson.source, { off }), ({ id }) => id);
    const alone = { before: said(before), after: said(after) };
    const brought = lesson.targets.filter((id) => id !== PAD && !alone.before.includes(id));
    const others = other_sentences(page, learned, { text, lesson });
    const num_others = others.length;
    const result = { number, text, lesson, model: after, losses, num_steps, alone, num_others };
    const changes = [];
    const tell = () => update({ learned: [...learned, { ...result, changes }] });
    tell();
    for (const other of others) {
      if (!(await may_go_on())) {
        break;
      }
      changes.push(change_of(page, other, { before, after, off, brought }));
      tell();
    }
    end();
  };
  const stop = () => {
    const { learning } = current();
    if (learning) {
      update({ learning: { ...learning, stopped: true } });
    }
  };
  const go_back = (count) => update({ learned: current().learned.slice(0, count), learning: null });
  return { teach, stop, go_back };
}

// What was learned before, and the examples that nothing was learned about.
function other_sentences({ examples }, learned, { text, lesson }) {
  const key = (one) => JSON.stringify([one.text, one.lesson.targets]);
  const earlier = new Map(learned.map((one) => [key(one), one]));
  earlier.delete(key({ text, lesson }));
  const taught = new Set([text, ...learned.map((one) => one.text)]);
  const untouched = examples.filter((example) => !taught.has(example));
  return [...earlier.values(), ...untouched.map((example) => ({ text: example, lesson: null }))];
}

// How another sentence has changed: its text and its lesson, if it has one, what came before and
// after of what is asked for (see `recited`), its lesson or else its translation before, a verdict:
//
//   learned      it says now what was asked for, and did not before
//   taken        it no longer says it, which nobody taught, but a piece that the lesson brought
//   forgotten    it no longer says it
//   better, worse, same      what was asked for is likelier now, less likely, neither
function change_of(page, { text, lesson }, { before, after, off, brought }) {
  const source = page.vocabulary.encode_source(text);
  const said = () => Array.from(translate(before, source, { off }), ({ id }) => id);
  const asked = lesson ?? lesson_of_sentence(source, said());
  const change = { text, before: recited(before, asked, off), after: recited(after, asked, off) };
  return { ...change, lesson, verdict: verdict_of(change, lesson ? [] : brought) };
}

function verdict_of({ before, after }, brought) {
  if (before.said !== after.said) {
    const taken = brought.some((id) => after.ids.includes(id) && !before.ids.includes(id));
    return after.said ? "learned" : taken ? "taken" : "forgotten";
  }
  const difference = after.log_probability - before.log_probability;
  return Math.abs(difference) < 0.0005 ? "same" : difference > 0 ? "better" : "worse";
}
