// What runs in a worker: the engine of a page that would not answer while it computes, see
// ui/engine.js. Choices that come while it does are taken together, so that only the last ones are
// computed.

import { loaded } from "./load.js";
import { engine_here, packed } from "./ui/engine.js";

let engine = null;
let waiting = null; // [changes, goes] that are not yet computed

function begin(contents, choices) {
  let sent = {};
  const arrive = (state, goes) => {
    postMessage({ changed: packed(state, sent), goes });
    sent = state;
  };
  engine = engine_here(loaded(contents), choices, arrive, (progress) => postMessage({ progress }));
}

function update(changes, goes) {
  if (!waiting) {
    setTimeout(compute);
  }
  const [earlier, went] = waiting ?? [{}, false];
  waiting = [{ ...earlier, note: null, ...changes }, went || goes];
}

function compute() {
  if (waiting) {
    const now = waiting;
    waiting = null;
    engine.update(...now);
  }
}

onmessage = ({ data: { what, given } }) => {
  if (what === "begin") {
    begin(...given);
  } else if (what === "update") {
    update(...given);
  } else {
    compute();
    engine[what](...given);
  }
};
