// What is in a box of the architecture: its shape, its numbers, their gradient, and the functions
// that compute both.

import { PAIRS } from "../boxes.js";
import { choice, h, worded } from "./dom.js";
import { box_name, file_of, own_names, parts_of, shape_letters } from "./names.js";
import { picture } from "./picture.js";
import { piece_text } from "./state.js";
import { selected_words } from "./translation.js";

export function panel_view(state, update) {
  const { say, run, box, model } = state;
  const parts = parts_of(run, box);
  const name = state.part ?? parts.at(-1);
  const shown = run.state(name);
  const [rows] = row_and_column(name, state.page);
  return [
    h(
      "div",
      { class: "row spread" },
      h("h2", { id: "box-title", tabindex: -1 }, box_name(say, box, model.kinds)),
      h(
        "button",
        { id: "close", type: "button", class: "quiet", onclick: () => update({ box: null }) },
        say("close"),
      ),
    ),
    h("p", {}, say(`about_${run.state(box).kind}`)),
    parts.length > 1 && inside(state, parts, name, update),
    facts(state, shown),
    shown.shape.length === 3 && head_choice(state, update),
    h("p", { class: "hint" }, say(rows === "S" ? "rows_source" : "rows_target")),
    picture(state, { ...described(state, shown), id: "numbers", title: say("numbers") }),
    gradient_picture(state, shown),
    own_code(state, shown),
    code(state, shown),
  ];
}

function inside({ say, box }, parts, name, update) {
  const items = parts.map((value) =>
    worded(value, say(value === box ? "output" : value.split(".").at(-1))),
  );
  return choice("parts", say("inside"), items, name, (part) => update({ part }), {
    class: "segments",
  });
}

function facts({ say, page }, { name, shape, functions, kind, lesson }) {
  const letters = shape_letters(name, page);
  const place = page.lessons[lesson];
  const named = say("lesson", { number: lesson });
  return h(
    "dl",
    { class: "facts" },
    h("dt", {}, say("shape")),
    h(
      "dd",
      {},
      `(${letters.join(", ")}) = (${shape.join(", ")})`,
      h("small", {}, explained(say, letters)),
    ),
    h("dt", {}, say("computed_by")),
    h("dd", {}, h("code", {}, functions), h("small", {}, h("code", {}, file_of(kind)))),
    h("dt", {}, say("derived_in")),
    h("dd", {}, place ? h("a", { href: place }, named) : named),
  );
}

function explained(say, letters) {
  return [...new Set(letters)].map((letter) => `${letter} ${say(`letter_${letter}`)}`).join(", ");
}

function row_and_column(name, page) {
  return shape_letters(name, page).slice(-2);
}

function head_choice({ say, head, page }, update) {
  const items = Array.from({ length: page.config.num_heads }, (_, value) =>
    worded(value, say("head", { number: value + 1 })),
  );
  return choice("box-head", say("head_choice"), items, head, (head) => update({ head }), {
    class: "segments",
  });
}

// Of an array (M, N), or of the selected head of one (H, M, N), or of its group: what a picture
// needs.
function described(state, { name, shape, value, kind }) {
  const { source, target, steps, page, say } = state;
  const text = (id) => piece_text(state, id);
  const sources = source?.map(text);
  const targets = target?.map((id, t) => `${text(id)} → ${text(steps[t].id)}`);
  const [height, width] = shape.slice(-2);
  const size = height * width;
  const of_head = Math.floor((state.head * shape[0]) / page.config.num_heads);
  const first = shape.length === 3 ? of_head * size : 0;
  const array = { shape: [height, width], data: value.data.subarray(first, first + size) };
  const labels = { S: sources, T: targets };
  const [rows, columns] = row_and_column(name, page);
  const piece = (j) => (columns === "V" ? text(j) : labels[columns]?.[j]);
  const column = (j) => piece(j) ?? say("column", { number: j + 1 });
  return {
    array,
    rows: labels[rows],
    column,
    scale: kind === "softmax" ? "weights" : "signed",
  };
}

function gradient_picture(state, shown) {
  const { say, gradient } = state;
  if (shown.name === "probabilities") {
    return h("p", { class: "hint" }, say("no_gradient"));
  }
  const value = gradient.of(shown.name);
  const given = described(state, { ...shown, value });
  const title = say("gradient_of", selected_words(state));
  return picture(state, { ...given, scale: "signed", id: "gradient", title });
}

function code({ say }, { kind }) {
  return folded("code", say("show_code"), PAIRS[kind].pair.map(String));
}

// What a learner wrote for a box, in Python.
function own_code({ say, page }, { kind }) {
  const { sources, file } = page.own ?? { sources: {} };
  const names = own_names(kind).filter((name) => Object.hasOwn(sources, name));
  const written = names.map((name) => sources[name]);
  return names.length > 0 && folded("own-code", say("show_own", { file }), written);
}

function folded(id, title, functions) {
  const source = h("code", {}, functions.join("\n\n"));
  return h("details", { id }, h("summary", {}, title), h("pre", { tabindex: 0 }, source));
}
