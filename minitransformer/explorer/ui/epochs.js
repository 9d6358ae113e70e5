// Which epoch of the training the model is of, where the page has those before its end. To see how
// an attention forms, the model can be made to say the same pieces after each.

import { h } from "./dom.js";

export function epochs_view(update) {
  return {
    id: "epochs",
    depends: ({ epoch, steps, held, language }) => [epoch, steps, held, language],
    draw: (state) => (state.page.epochs.length > 0 ? [slider(state, update)] : []),
  };
}

function slider(state, update) {
  const { say, page, epoch, steps, learned } = state;
  const last = page.epochs.length; // behind them all, the model of the run
  const words = (at) =>
    at < last ? say("after_epoch", { epoch: page.epochs[at].epoch }) : say("of_the_run");
  const value = epoch ?? last;
  const box = h("input", {
    id: "epoch",
    type: "range",
    min: 0,
    max: last,
    value,
    "aria-valuetext": words(value),
    oninput: () => {
      label.textContent = words(Number(box.value));
      box.setAttribute("aria-valuetext", label.textContent);
    },
    onchange: () => update(of_epoch(Number(box.value), last)),
  });
  const label = h("output", { for: "epoch" }, words(value));
  return h(
    "div",
    { class: "row" },
    h("div", { class: "slider" }, h("label", { for: "epoch" }, say("epoch")), box, label),
    steps && hold(state, update),
    value < last && h("span", { class: "hint" }, say("epoch_rounded")),
    learned.length > 0 && h("span", { class: "hint" }, say("epoch_forgets")),
  );
}

// Another epoch is another model, which has not learned here.
function of_epoch(at, last) {
  return { epoch: at < last ? at : null, learned: [], learning: null };
}

function hold({ say, steps, held }, update) {
  const box = h("input", {
    id: "hold",
    type: "checkbox",
    checked: held !== null,
    onchange: () => {
      update({ held: box.checked ? steps.map(({ id }) => ({ id, chosen: false })) : null });
    },
  });
  return h("label", { for: "hold" }, box, " ", say("hold"));
}
