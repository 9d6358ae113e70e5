// What computes the state from the choices: an engine has
//
//   update(changes, goes)     other choices; `goes` says whether a person went from place to place
//   teach, stop, go_back      see teacher.js
//
// and tells `arrive(state, goes, is_last)` of each state, and whether nothing is asked for beyond
// it; the first comes of an update without changes. One works at once, in the page's own thread.
// Where the model is so large that the page would not answer meanwhile, one works beside it, in a
// worker, and the page is only sent what has changed.

import { Gradient, Run } from "../boxes.js";
import { state_maker } from "./state.js";
import { make_teacher } from "./teacher.js";
import { speaker } from "./words.js";

// Changes after others; a note is of what was done last.
export function merged(earlier, changes) {
  return { ...earlier, note: null, ...changes };
}

export function engine_here(page, first_choices, arrive, report) {
  const state_of = state_maker(page, report);
  let choices = first_choices;
  let state = null;
  const update = (changes, goes = false) => {
    const chosen = merged(choices, changes);
    state = state_of(chosen);
    choices = chosen;
    arrive(state, goes, true);
  };
  return { update, ...make_teacher(update, () => state) };
}

// `page` here has a model without numbers, `program` is the text of worker.js, and `model` that of
// what page.py has put into the page. `report` is told how far the worker is, see state.js, and
// { stage: "failed" } when it is no more.
export function engine_beside(program, model, page, first_choices, arrive, report) {
  let state = { page, model: page.model };
  let asked = 0; // how many requests there were
  let worker = null;
  const fail = () => {
    worker?.terminate();
    worker = null;
    report({ stage: "failed" });
  };
  const ask = (what, ...given) => {
    asked += 1;
    worker?.postMessage({ what, given, number: asked });
  };
  const take = ({ data: { failed, progress, changed, goes, answered } }) => {
    if (failed) {
      fail();
    } else if (progress) {
      report(progress);
    } else {
      state = { ...state, ...unpacked(changed) };
      state.say = speaker(state.language, page.config.kind);
      arrive(state, goes, answered === asked);
    }
  };
  report({ stage: "reading" });
  try {
    const address = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
    worker = Object.assign(new Worker(address), { onmessage: take, onerror: fail });
    ask("begin", model, first_choices);
  } catch {
    fail(); // where a browser lets no page have a worker
  }
  const requests = ["update", "teach", "stop", "go_back"];
  return Object.fromEntries(requests.map((what) => [what, (...given) => ask(what, ...given)]));
}

// What of a state is not as in `sent`, the one before, as it can be sent: without functions, and
// without what the model alone needs.
export function packed(state, sent) {
  const names = Object.keys(state).filter((name) => state[name] !== sent[name]);
  const { page, model, say, ...changed } = Object.fromEntries(
    names.map((name) => [name, state[name]]),
  );
  const { run, gradient, learned } = changed;
  if (run) {
    const { off, kinds, states } = run;
    changed.run = { off, kinds, states };
  }
  if (gradient) {
    const boxes = Object.entries(gradient.gradients).filter(
      ([name]) => !(name in state.model.parameters),
    );
    changed.gradient = { ...gradient, gradients: Object.fromEntries(boxes) };
  }
  if (learned) {
    changed.learned = learned.map(({ model, ...what }) => what);
  }
  return changed;
}

function unpacked({ run, gradient, ...others }) {
  return {
    ...others,
    ...(run !== undefined && { run: run && Object.assign(new Run(), run) }),
    ...(gradient !== undefined && { gradient: gradient && Object.assign(new Gradient(), gradient) }),
  };
}
