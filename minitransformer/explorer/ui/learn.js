// Learn this: the model takes steps towards a piece, or a sentence, that the reader wants it to say.
// How likely that becomes, what else changes, and the way back.

import { lesson_of_piece, lesson_of_sentence } from "../learn.js";
import { PAD } from "../subwords.js";
import { curve } from "./curve.js";
import { choice, h, worded } from "./dom.js";
import { language_name, note_of_misread } from "./input.js";
import { percent, signed } from "./numbers.js";
import { misread, piece_text, selected } from "./state.js";
import { selected_words, text_of_ids } from "./translation.js";

const RATES = {
  adam: [0.0001, 0.0003, 0.001, 0.003, 0.01],
  sgd: [0.003, 0.01, 0.03, 0.1],
};
const NUMBERS_OF_STEPS = [1, 4, 12, 40];
const VERDICTS = ["learned", "taken", "forgotten", "better", "worse", "same"];

export function learn_view(state, update, teacher) {
  return [h("p", {}, state.say("learn_text")), lesson_form(state, update, teacher)];
}

// That the model is another one, with the way back; and what is being learned, or was last. The
// latter changes with each step, and buttons that do not stay cannot be clicked.
export function learned_views(teacher) {
  let told = 0; // how much of what was learned has been told
  return [
    {
      id: "live-learned", // unseen, as `live`
      depends: ({ learned }) => [learned.length],
      draw: (state) => {
        const { learned } = state;
        const news = learned.length > told ? what_was_learned(state, learned.at(-1)) : "";
        told = learned.length;
        return [news];
      },
    },
    {
      id: "learned",
      depends: ({ learned, language }) => [learned.at(-1)?.number, language],
      draw: (state) => (state.learned.length > 0 ? [way_back(state, teacher)] : []),
    },
    {
      id: "lesson",
      depends: ({ learned, learning, view, box, language }) => {
        return [learned, learning, view, box, language];
      },
      draw: (state) => (state.view === "learn" && state.box === null ? lesson_shown(state) : []),
    },
  ];
}

// What has just been learned, in words.
function what_was_learned(state, { lesson, losses, num_steps }) {
  const step = losses.length - 1;
  const values = {
    ...lesson_words(state, { lesson }),
    before: percent(probability_of(losses[0])),
    after: percent(probability_of(losses.at(-1))),
    steps: step,
  };
  const learned = state.say(`learned_${kind_of(lesson)}`, values);
  const stopped = step < num_steps && state.say("stopped_at_step", { step, steps: num_steps });
  return [learned, stopped].filter(Boolean).join(" ");
}

function lesson_shown(state) {
  const { say, learning, learned } = state;
  const last = learned.at(-1);
  const shown = learning ?? last;
  if (!shown) {
    return [];
  }
  const { losses, num_steps } = shown;
  const kind = kind_of(shown.lesson);
  const is_over = shown.number === last?.number;
  const step = Math.max(losses.length - 1, 0);
  const progress = say("at_step", { step, steps: num_steps });
  const title = say(`curve_of_${kind}`);
  return [
    h("h2", {}, say("lesson_title", lesson_words(state, shown))),
    curve(state, title, losses.map(probability_of), is_over ? step : num_steps),
    ...(is_over ? outcome(state, last) : [h("p", { class: "hint" }, progress)]),
  ];
}

function way_back(state, { go_back }) {
  const { say, learned } = state;
  const names = learned.map((one) => say("quoted", lesson_words(state, one))).join(", ");
  const return_to = (count) => {
    go_back(count);
    if (count === 0) {
      document.getElementById("view-learn").focus({ preventScroll: true });
    }
  };
  const button = (id, count) =>
    h("button", { id, type: "button", class: "quiet", onclick: () => return_to(count) }, say(id));
  return h(
    "div",
    { class: "changed" },
    h("p", {}, say("is_changed", { names })),
    h(
      "div",
      { class: "row" },
      button("undo_learning", learned.length - 1),
      button("as_trained", 0),
    ),
  );
}

function lesson_form(state, update, { teach, stop }) {
  const { say, page, source, target, step, teaching, learning } = state;
  const { optimizer, rates, num_steps } = state;
  const box = teaching === "sentence" && sentence_box(state, update);
  const onsubmit = (event) => {
    event.preventDefault();
    if (learning) {
      return;
    }
    if (box) {
      const pieces = page.vocabulary.encode_source(box.value);
      if (pieces.length > 1) { // more than the end
        teach(lesson_of_sentence(source, pieces));
      }
    } else {
      teach(lesson_of_piece(source, target, step, selected(state).id));
    }
  };
  const kinds = ["piece", "sentence"].map((value) => worded(value, say(`teach_${value}`)));
  const optimizers = Object.keys(RATES).map((value) => worded(value, say(value)));
  const numbers = (values) => values.map((value) => worded(value, value));
  const setting = (id, items, chosen, choose) =>
    h(
      "div",
      {},
      h("span", { class: "hint", "aria-hidden": "true" }, say(id)),
      choice(id, say(id), items, chosen, choose, { class: "segments" }),
    );
  return h(
    "form",
    { class: "lesson", onsubmit },
    setting("teaching", kinds, teaching, (teaching) => update({ teaching })),
    box ? about_sentence(state, box) : about_piece(state),
    h(
      "div",
      { class: "row" },
      setting("optimizer", optimizers, optimizer, (optimizer) => update({ optimizer })),
      setting("rate", numbers(RATES[optimizer]), rates[optimizer], (rate) =>
        update({ rates: { ...rates, [optimizer]: rate } }),
      ),
      setting("num_steps", numbers(NUMBERS_OF_STEPS), num_steps, (num_steps) =>
        update({ num_steps }),
      ),
    ),
    start_and_stop(state, stop),
  );
}

function about_piece(state) {
  const { say, gradient } = state;
  const { log_probability } = gradient;
  const words = {
    ...selected_words(state),
    loss: signed(-log_probability),
    percent: percent(Math.exp(log_probability)),
  };
  return [
    h("p", {}, say("teach_piece_text", words)),
    h("p", { class: "hint" }, say("teach_piece_hint")),
  ];
}

function sentence_box({ page, wanted, steps }, update) {
  const box = h("input", {
    id: "wanted",
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    lang: page.languages?.[1],
    "aria-describedby": "wanted-note",
    oninput: () => update({ wanted: box.value }),
  });
  box.value = wanted ?? page.vocabulary.decode(steps.map(({ id }) => id));
  return box;
}

function about_sentence(state, box) {
  const { say, page } = state;
  const [, language] = page.languages ?? [];
  const note = h("p", { id: "wanted-note", class: "note" });
  const warn = () => {
    note.textContent = note_of_misread(state, misread(page.vocabulary, box.value));
  };
  box.addEventListener("input", warn);
  warn();
  const label = language
    ? say("wanted_in", { language: language_name(say, language) })
    : say("wanted");
  return [
    h("label", { for: "wanted", class: "hint" }, label),
    box,
    note,
    h("p", { class: "hint" }, say("teach_sentence_text")),
  ];
}

// Both buttons are always there, so that what has the focus does not go away.
function start_and_stop({ say, learning }, stop) {
  const [start_off, stop_off] = [learning !== null, learning === null].map(String);
  return h(
    "div",
    { class: "row" },
    h("button", { id: "teach", class: "main", "aria-disabled": start_off }, say("teach")),
    h(
      "button",
      { id: "stop", type: "button", class: "quiet", "aria-disabled": stop_off, onclick: stop },
      say("stop"),
    ),
  );
}

function outcome(state, last) {
  const { say, page, learning } = state;
  const { alone, changes, num_others } = last;
  const count = changes.length;
  const [before, after] = [alone.before, alone.after].map((ids) => text_of_ids(page, ids));
  const counts = VERDICTS.map((verdict) => [
    say(`verdict_${verdict}`),
    changes.filter((change) => change.verdict === verdict).length,
  ]);
  const counted = counts.filter(([, count]) => count > 0).map((pair) => pair.join(" "));
  return [
    h("p", { id: "outcome" }, what_was_learned(state, last)),
    h("p", {}, say(before === after ? "alone_same" : "alone_other", { before, after })),
    h("h2", {}, say("what_else")),
    learning && h("p", { class: "hint" }, say("looks_at_others")),
    num_others === 0 && h("p", { class: "hint" }, say("no_others")),
    count < num_others &&
      !learning &&
      h("p", { class: "hint" }, say("stopped_at_other", { count, num_others })),
    count > 0 && h("p", { class: "hint" }, say("what_else_text")),
    count > 0 && h("p", { id: "counted" }, counted.join(" · ")),
    h("ul", { class: "changes" }, changes.map((change) => change_item(state, change))),
  ];
}

function change_item(state, { text, lesson, before, after, verdict }) {
  const { say, page } = state;
  const [said, says] = [before.ids, after.ids].map((ids) => text_of_ids(page, ids));
  const numbers = { before: signed(before.log_probability), after: signed(after.log_probability) };
  return h(
    "li",
    { class: verdict },
    h("strong", {}, say(`verdict_${verdict}`)),
    h("span", { lang: page.languages?.[0] }, text),
    lesson && h("span", { class: "hint" }, say("was_taught", lesson_words(state, { lesson }))),
    h("span", {}, said === says ? says : say("from_to", { before: said, after: says })),
    h("span", { class: "hint" }, say("log_probability_from_to", numbers)),
  );
}

// A sentence has its end beside its pieces.
function kind_of({ targets }) {
  return targets.filter((id) => id !== PAD).length === 1 ? "piece" : "sentence";
}

// What a lesson wants said, for sentences about it.
function lesson_words(state, { lesson }) {
  const wanted = lesson.targets.filter((id) => id !== PAD);
  const is_piece = kind_of(lesson) === "piece";
  return { wanted: is_piece ? piece_text(state, wanted[0]) : text_of_ids(state.page, wanted) };
}

// The probability of a piece at a loss; at a mean loss the geometric mean of theirs.
function probability_of(loss) {
  return Math.exp(-loss);
}
