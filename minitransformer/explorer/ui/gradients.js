// What the selected piece depends on: gradients of its log-probability. On the pieces, and on their
// way back through the blocks.

import { h, with_arrows } from "./dom.js";
import { box_name } from "./names.js";
import { bar } from "./next.js";
import { percent, signed } from "./numbers.js";
import { piece_text } from "./state.js";
import { lengths_of_rows, selected_words } from "./translation.js";

export function gradients_view(state, update) {
  const { say, source, target, step, gradient } = state;
  const words = selected_words(state);
  const source_lengths = source && lengths_of_rows(gradient.source);
  const target_lengths = target && lengths_of_rows(gradient.target).slice(0, step + 1);
  const largest = Math.max(...(source_lengths ?? []), ...(target_lengths ?? [])) || 1;
  const bars = (side, ids, lengths) =>
    ids
      .slice(0, lengths.length)
      .map((id, i) =>
        bar_button(`${side}-${i}`, piece_text(state, id), lengths[i], largest, () =>
          update({ box: `${side}.embedding`, part: null }),
        ),
      );
  return [
    h(
      "p",
      {},
      say("gradients_text", {
        ...words,
        log: signed(gradient.log_probability),
        percent: percent(Math.exp(gradient.log_probability)),
      }),
    ),
    source && h("h2", {}, say("on_source")),
    source && group(say("on_source"), bars("source", source, source_lengths)),
    target && h("h2", {}, say("on_target")),
    target && group(say("on_target"), bars("target", target, target_lengths)),
    h("p", { class: "honest" }, say("honest")),
    h("h2", {}, say("flow")),
    h("p", {}, say("flow_text", words)),
    flow(state, update),
    h("p", { class: "hint" }, flow_sentence(state)),
  ];
}

function bar_button(id, piece, length, largest, onclick) {
  const number = length.toPrecision(2);
  return h(
    "button",
    {
      id: `gradient-${id}`,
      type: "button",
      class: "bar-row",
      "aria-label": `${piece}: ${number}`,
      onclick,
    },
    h("span", { class: "piece" }, piece),
    bar(length / largest, "backward"),
    h("span", { class: "number" }, number),
  );
}

// Bars as one stop of the tab key, with arrow keys among them.
function group(label, buttons) {
  buttons.forEach((button, i) => button.setAttribute("tabindex", i === 0 ? 0 : -1));
  const onkeydown = with_arrows(buttons, () => {});
  return h("div", { class: "bars", role: "group", "aria-label": label, onkeydown }, buttons);
}

// A block an entry, the last one first, as the gradient meets them.
function flow({ say, gradient }, update) {
  const { flow } = gradient;
  const largest =
    Math.max(...flow.flatMap((ways) => [ways.residual_norm, ways.sublayer_norm])) || 1;
  const blocks = flow.map(({ block, residual_norm, sublayer_norm }) => {
    const numbers = {
      residual: residual_norm.toPrecision(2),
      sublayer: sublayer_norm.toPrecision(2),
    };
    const name = box_name(say, block);
    return h(
      "button",
      {
        id: `flow-${block}`,
        type: "button",
        class: "bar-row two",
        "aria-label": `${name}: ${say("flow_label", numbers)}`,
        onclick: () => update({ box: block, part: null }),
      },
      h("span", { class: "piece" }, name),
      h(
        "span",
        {},
        bar(residual_norm / largest, "residual"),
        bar(sublayer_norm / largest, "backward"),
      ),
      h("span", { class: "number" }, numbers.residual, h("br"), numbers.sublayer),
    );
  });
  const key = h(
    "p",
    { class: "key" },
    h("span", { class: "swatch residual" }),
    say("past"),
    h("span", { class: "swatch backward" }),
    say("through"),
  );
  return h("div", { class: "flow" }, key, group(say("flow"), blocks));
}

// In how many blocks more goes past the sublayer, and where most goes through it.
function flow_sentence({ say, gradient }) {
  const { flow } = gradient;
  const share = ({ residual_norm, sublayer_norm }) =>
    sublayer_norm / (residual_norm + sublayer_norm || 1);
  const past = flow.filter((block) => share(block) <= 0.5).length;
  const most = flow.reduce((a, b) => (share(b) > share(a) ? b : a));
  return say("flow_sentence", { past, blocks: flow.length, most: box_name(say, most.block) });
}
