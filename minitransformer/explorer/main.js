// The explorer's page: chooses, has an engine compute, draws. All that is chosen is one object; a
// change makes another one, of which the engine works out what follows, and the views are drawn that
// show something else now.

import { contents_of, loaded } from "./load.js";
import { architecture_view } from "./ui/architecture.js";
import { attention_view } from "./ui/attention.js";
import { choice, h, worded } from "./ui/dom.js";
import { engine_beside, engine_here } from "./ui/engine.js";
import { epochs_view } from "./ui/epochs.js";
import { foot_view } from "./ui/foot.js";
import { choices_of, opened } from "./ui/fragment.js";
import { gradients_view } from "./ui/gradients.js";
import { head_views } from "./ui/head.js";
import { input_views } from "./ui/input.js";
import { learn_view, learned_views } from "./ui/learn.js";
import { next_view } from "./ui/next.js";
import { panel_view } from "./ui/panel.js";
import { note_place, on_address } from "./ui/places.js";
import { FIRST_CHOICES, NOTHING_YET } from "./ui/state.js";
import { make_tour, was_seen } from "./ui/tour.js";
import { translation_views } from "./ui/translation.js";
import { renderer } from "./ui/views.js";
import { LANGUAGES, speaker } from "./ui/words.js";

const VIEWS = {
  next: next_view,
  attention: attention_view,
  gradients: gradients_view,
  learn: (state, update) => learn_view(state, update, teacher),
};

const page = page_of(contents_of(document));
const first = page.first ?? { example: 0, step: null };
const first_choices = opened(choices_of(location.hash, page), {
  page,
  text: page.examples[first.example] ?? "",
  step: first.step,
  source_row: FIRST_CHOICES.source_row,
  language: Object.keys(LANGUAGES).find((code) => navigator.language.startsWith(code)) ?? "en",
  theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
});
const is_first_visit = location.hash === "" && !was_seen();
const main = document.querySelector("main");
const working_words = document.getElementById("working");
let left_from = null; // what had the focus when something was asked for last
let num_asked = 0; // how often something was asked for
// What is asked of the engine, which answers by a state. Of a worker that fails the engine tells.
const asked = (what) => async (...given) => {
  num_asked += 1;
  left_from = document.activeElement;
  main.setAttribute("aria-busy", "true");
  try {
    await engine[what](...given);
  } catch (error) {
    working({ stage: "failed" });
    main.setAttribute("aria-busy", "false");
    throw error;
  }
};
const teacher = { teach: asked("teach"), stop: () => engine.stop(), go_back: asked("go_back") };
let state = {
  ...first_choices,
  ...NOTHING_YET,
  page,
  model: page.model,
  say: speaker(first_choices.language, page.config.kind),
};

const draw = renderer([
  ...head_views(update, () => tour.start()),
  ...input_views(update),
  ...learned_views(teacher),
  epochs_view(update),
  ...translation_views(update),
  {
    id: "architecture",
    depends: ({ gradient, view, attention, layer, box, learned, language }) => {
      return [gradient, view, attention, layer, box, learned.length, language];
    },
    draw: (state) => architecture_view(state, update),
  },
  {
    id: "views",
    depends: ({ view, box, language }) => [view, box === null, language],
    draw: ({ say, view, box }) => {
      const items = page.task.views.map((value) => worded(value, say(`view_${value}`)));
      const chosen = box === null ? view : null;
      return [
        choice("view", say("views"), items, chosen, (view) => update({ view, box: null }), {
          class: "tabs",
        }),
      ];
    },
  },
  {
    id: "view-shown",
    depends: ({ gradient, view, attention, layer, head, drawn, source_row, ...others }) => {
      const { missing, box, part, language, theme } = others;
      const { learning, teaching, optimizer, rates, num_steps } = others;
      const of_learning = [learning === null, teaching, optimizer, rates, num_steps];
      return [
        gradient,
        missing,
        view,
        attention,
        layer,
        head,
        drawn,
        source_row,
        box,
        part,
        language,
        theme,
        ...(view === "learn" ? of_learning : []),
      ];
    },
    draw: (state) => {
      if (!state.run) {
        const most = page.task.most(page);
        return [h("p", { class: "hint" }, state.say(state.missing, { most }))];
      }
      return state.box ? panel_view(state, update) : VIEWS[state.view](state, update);
    },
  },
  foot_view,
]);
let left_at = null; // how far down the page was when a box was opened
const tour = make_tour(
  page,
  (changes) => update(changes, false),
  () => state,
  () => num_asked,
);

// `goes`: whether it is a person's step from place to place, which the back button takes back.
function update(changes, goes = true) {
  left_at = changes.box ? scrollY : left_at;
  asked("update")(changes, goes);
}

function arrive(next, goes, is_last) {
  const before = state;
  state = next;
  if (is_last) {
    working({ stage: null });
    main.setAttribute("aria-busy", "false");
  }
  const has_stayed = [left_from, document.body].includes(document.activeElement);
  show();
  note_place(state, goes);
  if (!document.documentElement.dataset.ready) {
    opens();
  } else if (state.box !== before.box && has_stayed) {
    go_to_box(before.box);
  }
  if (state.language !== before.language) {
    tour.again();
  }
}

// Into a box that was opened, or from one that was closed back to where it was opened.
function go_to_box(closed) {
  if (state.box) {
    document.getElementById("box-title")?.focus();
    return;
  }
  document.getElementById(`box-${closed}`)?.focus({ preventScroll: true });
  if (left_at !== null) {
    scrollTo(0, left_at);
  }
}

function show() {
  document.documentElement.lang = state.language;
  document.documentElement.dataset.theme = state.theme;
  document.title = state.say("title");
  draw(state);
}

// The first state is there.
function opens() {
  document.documentElement.dataset.ready = "yes";
  if (is_first_visit) {
    tour.start();
  }
  on_address(
    (place) => update(place, false),
    (fragment) => update(opened(choices_of(fragment, page), state), false),
  );
  addEventListener("keydown", ({ key }) => {
    if (key === "Escape" && !tour.close() && state.box) {
      update({ box: null });
    }
  });
}

// How far a worker is; in words, as nobody knows how many pieces a model will say. Each stage is read
// aloud, and no number.
function working({ stage, count }) {
  const [words, number] = working_words.children;
  if (working_words.dataset.stage !== String(stage)) {
    working_words.dataset.stage = stage;
    working_words.hidden = stage === null;
    words.textContent = stage ? state.say(`working_${stage}`) : "";
  }
  number.textContent = count ?? "";
}

// What is shown while a worker computes is of earlier choices, and what one would choose there would
// be one of them. All else can be used.
const OF_EARLIER = "#epochs, #source, #translation, #architecture, #view-shown, #learned";
const GOES_ON = ["Tab", "Escape"];
for (const type of ["click", "change", "keydown", "submit"]) {
  const pass_over = (event) => {
    const is_busy = main.getAttribute("aria-busy") === "true";
    const is_passed_over = event.target.closest(OF_EARLIER) && !event.target.closest("#stop");
    if (is_busy && is_passed_over && !GOES_ON.includes(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  main.addEventListener(type, pass_over, { capture: true });
}

// Nothing here keeps the contents, whose numbers a worker has once more.
function page_of(contents) {
  return loaded(contents, !contents.works_beside);
}

if (page.works_beside) {
  show(); // what can be seen before the model is read
}
const text_in = (id) => document.getElementById(id).textContent;
const engine = page.works_beside
  ? engine_beside(text_in("worker"), text_in("model"), page, first_choices, arrive, working)
  : engine_here(page, first_choices, arrive);
update({}, false);
