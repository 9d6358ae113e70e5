// The source in pieces and the translation piece by piece. A piece of it can be selected.

import { length_of, row } from "../arrays.js";
import { style_of } from "./colours.js";
import { choice, h } from "./dom.js";
import { note_unseen } from "./input.js";
import { percent } from "./numbers.js";
import { piece_text } from "./state.js";

export function translation_views(update) {
  let animated = null; // the translation that has appeared already
  return [
    {
      id: "live", // unseen; what changes in it is read aloud
      depends: ({ steps, note }) => [steps, note],
      draw: (state) => [said_aloud(state)],
    },
    {
      id: "source",
      depends: ({ gradient, source, language, theme }) => [gradient, source, language, theme],
      draw: (state) => (state.source ? source_pieces(state) : []),
    },
    {
      id: "translation",
      depends: ({ steps, step, language, undo }) => [steps, step, language, undo],
      draw: (state) => {
        const fresh = state.steps !== animated;
        animated = state.steps;
        return state.steps ? target_pieces(state, update, fresh) : [];
      },
    },
  ];
}

function said_aloud(state) {
  const { say, steps, note } = state;
  if (note || !steps) {
    return note ? say(note) : "";
  }
  return [text_of(state, steps), note_unseen(state)].filter(Boolean).join(" ");
}

// The lengths of the rows of a gradient (S, D), one a piece.
export function lengths_of_rows(gradient) {
  return Array.from({ length: gradient.shape[0] }, (_, i) => length_of(row(gradient, i)));
}

function source_pieces(state) {
  const { say, theme, source, gradient } = state;
  const lengths = lengths_of_rows(gradient.source);
  const largest = Math.max(...lengths) || 1;
  const unseen = (id, i) => state.unseen[i] && !state.page.vocabulary.special[id];
  const chips = source.map((id, i) =>
    h(
      "li",
      {
        class: `chip ${joint(state, id, source[i - 1])} ${unseen(id, i) ? "never-seen" : ""}`,
        style: style_of((0.75 * lengths[i]) / largest, "lengths", theme),
        title: say("gradient_length", { length: lengths[i].toPrecision(2) }),
      },
      piece_text(state, id),
    ),
  );
  return [
    h("h2", {}, say("source_pieces")),
    h("ol", { class: "chips", "aria-label": say("source_pieces") }, chips),
    h("p", { class: "hint" }, say("source_hint", selected_words(state))),
  ];
}

function target_pieces(state, update, fresh) {
  const { say, steps, step, page, undo, prompt, forced } = state;
  const before = (position) => steps.find((other) => other.position === position - 1)?.id;
  const given = (i) =>
    i < Math.min(prompt?.length ?? 0, forced.length || Infinity) && !forced[i]?.chosen;
  const delay = Math.min(60, 700 / steps.length); // milliseconds
  const items = steps.map(({ id, probability, position }, i) => ({
    value: i,
    class: `chip ${joint(state, id, before(position))} ${
      fresh ? "appears" : ""
    } ${state.forced[i]?.chosen ? "chosen" : ""} ${given(i) ? "given" : ""}`,
    style: fresh && `animation-delay:${i * delay}ms`,
    label: say("piece_label", {
      piece: piece_text(state, id),
      number: i + 1,
      percent: percent(probability),
    }),
    content: [piece_text(state, id)],
  }));
  const chosen = steps.some((_, i) => state.forced[i]?.chosen);
  const stopped = !page.task.has_gaps && !page.vocabulary.ends.includes(steps.at(-1).id);
  return [
    h("h2", {}, say("translation")),
    h("p", { id: "sentence", lang: page.languages?.[1] }, text_of(state, steps)),
    choice(
      "steps",
      say("translation"),
      items,
      step,
      (value) => update({ step: value, ...page.task.on_step }),
      { class: "chips" },
    ),
    h(
      "p",
      { class: "hint" },
      say(state.held ? "held_hint" : chosen ? "forced_hint" : "translation_hint"),
      " ",
      stopped && `${say("stopped", { count: steps.length })} `,
      undo.length > 0 &&
        h(
          "button",
          { id: "undo", class: "quiet", onclick: () => update(undone(state)) },
          say("undo"),
        ),
    ),
  ];
}

export function text_of({ page, text }, steps) {
  return page.task.text(page, text, steps) || "—";
}

export function text_of_ids(page, ids) {
  return page.vocabulary.decode(ids) || "—";
}

function undone({ undo }) {
  const { forced, step } = undo.at(-1);
  return { forced, step, held: null, undo: undo.slice(0, -1) };
}

// A piece that goes on a word stands close to the one before it.
function joint({ page }, id, before) {
  return before !== undefined && page.vocabulary.joins(id, before) ? "joint" : "";
}

// What sentences about the selected step say of it.
export function selected_words(state) {
  const { id } = state.steps[state.step];
  return { piece: piece_text(state, id), number: state.step + 1 };
}
