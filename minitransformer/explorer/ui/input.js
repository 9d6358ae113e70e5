// The sentence: a box to type in, and examples to choose from.

import { h } from "./dom.js";
import { sampling_controls } from "./sampling.js";

export function input_views(update) {
  let typed = ""; // what is in the box, translated or not
  let translated = "";
  let submitted = null; // what is to be translated; who goes on typing meanwhile keeps that
  return [
    {
      id: "input",
      depends: ({ language, text, note, temperature, top_k, seed }) => {
        return [language, text, note, temperature, top_k, seed];
      },
      draw: (state) => {
        typed = [translated, submitted].includes(state.text) ? typed : state.text;
        translated = state.text;
        submitted = null;
        const keep = (text) => (typed = text);
        const submit = (text) => {
          submitted = text;
          update(new_text(text));
        };
        return [
          form(state, typed, { keep, submit, update }),
          examples(state, update),
          state.page.task.draws && sampling_controls(state, update),
          notes(state),
        ];
      },
    },
  ];
}

function form({ say, page }, typed, { keep, submit, update }) {
  const box = h("input", {
    id: "text",
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    lang: page.languages?.[0],
    oninput: () => keep(box.value),
  });
  box.value = typed;
  const onsubmit = (event) => {
    event.preventDefault();
    if (!page.task.draws && page.vocabulary.encode(box.value, 1).length === 0) {
      update({ note: "note_empty" });
    } else {
      submit(box.value);
    }
  };
  return h(
    "form",
    { onsubmit },
    h("label", { for: "text" }, sentence_label({ say, page })),
    h(
      "div",
      { class: "row" },
      box,
      h("button", { id: "translate", class: "main" }, say("translate")),
    ),
  );
}

// What changes with another sentence.
export function new_text(text) {
  const first = { forced: [], held: null, undo: [], wanted: null, step: null, source_row: null };
  return { text, note: null, ...first };
}

function examples({ say, text, page }, update) {
  if (page.examples.length === 0) {
    return null;
  }
  const options = page.examples.map((sentence) =>
    h("option", { value: sentence, selected: sentence === text }, sentence),
  );
  const none = h("option", { value: "", selected: !page.examples.includes(text) }, say("choose"));
  const onchange = ({ target }) => target.value && update(new_text(target.value));
  return h(
    "div",
    { class: "examples" },
    h("label", { for: "examples" }, say("examples")),
    h("select", { id: "examples", onchange }, none, options),
    h("span", { class: "hint" }, say("examples_hint")),
  );
}

function notes(state) {
  const { say, note, unknown, cut, missing } = state;
  const misread = note_of_misread(state, { unknown, cut: cut && !missing });
  // The last one may end without a dot.
  const sentences = note ? [say(note)] : [note_unseen(state), misread];
  return h("p", { class: "note" }, sentences.filter(Boolean).join(" "));
}

// What is said of a text of which something is lost.
export function note_of_misread({ say, page }, { unknown, cut }) {
  const sentences = [
    cut && say("note_cut", { most: page.task.most(page) }),
    unknown.length > 0 && say("note_unknown", { characters: first_few(unknown) }),
  ];
  return sentences.filter(Boolean).join(" ");
}

// What is said of words that the training had not; nothing where there are none.
export function note_unseen({ say, unseen }) {
  const words = [...new Set(unseen.filter(Boolean))];
  return words.length > 0 && say("note_unseen", { words: first_few(words, ", ") });
}

function first_few(texts, between = " ") {
  return texts.slice(0, 8).join(between) + (texts.length > 8 ? " …" : "");
}

function sentence_label({ say, page }) {
  const [source] = page.languages ?? [];
  return source ? say("sentence_in", { language: language_name(say, source) }) : say("sentence");
}

// What a language is called in the language of the page; what is no code of one stays as it is.
export function language_name(say, code) {
  try {
    return new Intl.DisplayNames([say("code")], { type: "language" }).of(code);
  } catch {
    return code;
  }
}
