// The ten likeliest pieces at the selected step. Another one than the model's can be chosen.

import { h, with_arrows } from "./dom.js";
import { in_groups, percent } from "./numbers.js";
import { piece_text, selected } from "./state.js";

export function next_view(state, update) {
  const { say, steps, step, page, temperature } = state;
  const { id, candidates, chance } = selected(state);
  const length = (probability) => Math.sqrt(probability / candidates[0].probability);
  const sum = candidates.reduce((sum, { probability }) => sum + probability, 0);
  const others = Math.max(0, 1 - sum); // but for rounding
  const rows = candidates.map((candidate, i) => {
    const piece = piece_text(state, candidate.id);
    const attributes = {
      id: `candidate-${i}`,
      type: "button",
      class: `bar-row ${candidate.id === id ? "is-selected" : ""}`,
      tabindex: i === 0 ? 0 : -1,
      "aria-current": candidate.id === id && "true",
      "aria-label": say("candidate_label", { piece, percent: percent(candidate.probability) }),
      onclick: () => update(with_piece(state, candidate.id)),
    };
    return h(
      "button",
      attributes,
      h("span", { class: "piece" }, piece),
      bar(length(candidate.probability), "forward"),
      h("span", { class: "number" }, percent(candidate.probability)),
    );
  });
  const said = page.vocabulary.decode(steps.slice(0, step).map(({ id }) => id));
  return [
    h("p", {}, say("next_text", { said: said || `‹${say("start")}›` })),
    h(
      "div",
      {
        class: "bars",
        role: "group",
        "aria-label": say("view_next"),
        onkeydown: with_arrows(rows, () => {}),
      },
      rows,
    ),
    h("p", { class: "hint", id: "others" }, say("next_others", { percent: percent(others) })),
    temperature > 0 &&
      h(
        "p",
        { class: "hint", id: "chance" },
        say("chance", { piece: piece_text(state, id), temperature, percent: percent(chance) }),
      ),
    h("p", { class: "hint" }, say("next_hint")),
    h("p", { class: "hint" }, say("next_bars")),
    state.learned.length === 0 && ceiling(state), // to be taught a piece is no such training
  ];
}

// Why no step is quite sure: with label smoothing ε over V pieces the right one is to have the
// probability 1 − ε + ε / V in training, and each other one ε / V.
function ceiling({ say, page }) {
  const smoothing = page.label_smoothing;
  if (!smoothing || page.task.has_gaps) { // in a gap they are shares of some pieces alone
    return null;
  }
  const count = page.vocabulary.pieces.length;
  const share = smoothing / count;
  const words = {
    most: percent(1 - smoothing + share),
    share: percent(share),
    smoothing,
    count: in_groups(count),
  };
  return h("p", { class: "hint", id: "ceiling" }, say("ceiling", words));
}

// What another piece at the selected step changes.
function with_piece(state, id) {
  const { page, steps, step, forced, undo } = state;
  if (steps[step].id === id) {
    return {};
  }
  const now = { forced: page.task.chosen(state, id), held: null };
  return { ...now, undo: [...undo, { forced, step }], step };
}

// A bar of a share of the width: of what is computed forward, or backward.
export function bar(share, direction) {
  const inner = h("span", {
    class: `bar ${direction}`,
    style: `width:${(100 * share).toFixed(2)}%`,
  });
  return h("span", { class: "track" }, inner);
}
