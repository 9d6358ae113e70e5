// What runs in a worker: the engine of a page that would not answer while it computes, see
// ui/engine.js. Choices that come while it does are taken together, so that only the last ones are
// computed. Whatever fails, the page is told.

import { loaded } from "./load.js";
import { engine_here, merged, packed } from "./ui/engine.js";

let engine = null;
let waiting = null; // [changes, goes] that are not yet computed
let [latest, answered] = [0, 0]; // numbers of requests: the last one, the last that is computed

function begin(model, choices) {
  let sent = {};
  const arrive = (state, goes) => {
    postMessage({ changed: packed(state, sent), goes, answered });
    sent = state;
  };
  const report = (progress) => postMessage({ progress });
  engine = engine_here(loaded(JSON.parse(model)), choices, arrive, report);
}

function update(changes, goes) {
  if (!waiting) {
    setTimeout(() => told_of_failure(compute));
  }
  const [earlier, went] = waiting ?? [{}, false];
  waiting = [merged(earlier, changes), went || goes];
}

function compute() {
  answered = latest;
  if (waiting) {
    const now = waiting;
    waiting = null;
    engine.update(...now);
  }
}

async function told_of_failure(work) {
  try {
    await work();
  } catch (error) {
    postMessage({ failed: true });
    throw error;
  }
}

onmessage = ({ data: { what, given, number } }) => {
  latest = number;
  const act = { begin, update }[what];
  told_of_failure(() => {
    if (act) {
      return act(...given);
    }
    compute();
    return engine[what](...given);
  });
};
