// What computes the state from the choices: an engine has
//
//   update(changes, goes)     other choices; `goes` says whether a person went from place to place
//   teach, stop, go_back      see teacher.js
//
// and tells `arrive(state, goes)` of each state; the first comes of an update without changes. One
// works at once, in the page's own thread. Where the model is so large that the page would not answer
// meanwhile, one works beside it, in a worker, and the page is only sent what has changed.

import { Gradient, Run } from "../boxes.js";
import { state_maker } from "./state.js";
import { make_teacher } from "./teacher.js";
import { speaker } from "./words.js";

export function engine_here(page, first_choices, arrive, report) {
  const state_of = state_maker(page, report);
  let choices = first_choices;
  let state = null;
  const update = (changes, goes = false) => {
    choices = { ...choices, note: null, ...changes }; // a note is of what was done last
    state = state_of(choices);
    arrive(state, goes);
  };
  const teacher = make_teacher(update, () => state);
  return { update, ...teacher };
}

// `page` here has a model without numbers. `report` is told how far the worker is, see state.js, and
// { stage: "failed" } when it is no more.
export function engine_beside({ contents, program }, page, first_choices, arrive, report) {
  const address = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
  const worker = new Worker(address);
  let state = { page, model: page.model };
  worker.onmessage = ({ data: { progress, changed, goes } }) => {
    if (progress) {
      report(progress);
      return;
    }
    state = { ...state, ...unpacked(changed) };
    state.say = speaker(state.language, page.config.kind);
    arrive(state, goes);
  };
  worker.onerror = () => report({ stage: "failed" });
  const asked = ["update", "teach", "stop", "go_back"].map((what) => [
    what,
    (...given) => worker.postMessage({ what, given }),
  ]);
  report({ stage: "reading" });
  worker.postMessage({ what: "begin", given: [contents, first_choices] });
  return Object.fromEntries(asked);
}

// What of a state is not as in `sent`, the one before, as it can be sent: without functions, and
// without what the model alone needs. A lesson may stand in two entries, and is sent with both, as
// what is sent together stays one object.
export function packed(state, sent) {
  const together = ["learning", "learned"];
  const is_new = (name) => state[name] !== sent[name];
  const names = Object.keys(state).filter(
    (name) => is_new(name) || (together.includes(name) && together.some(is_new)),
  );
  const changed = Object.fromEntries(names.map((name) => [name, state[name]]));
  const { run, gradient, learned } = changed;
  for (const name of ["page", "model", "say"]) {
    delete changed[name];
  }
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
