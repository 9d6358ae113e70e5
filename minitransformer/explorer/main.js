// The explorer's page: chooses, computes, draws. All that is chosen is one object; a change makes
// another one, works out what follows from it, and draws the views that show something else now.

import { load_model } from "./load.js";
import { architecture_view } from "./ui/architecture.js";
import { attention_view } from "./ui/attention.js";
import { choice, h, worded } from "./ui/dom.js";
import { choices_of, fragment_of } from "./ui/fragment.js";
import { gradients_view } from "./ui/gradients.js";
import { head_views } from "./ui/head.js";
import { input_views, new_text } from "./ui/input.js";
import { next_view } from "./ui/next.js";
import { panel_view } from "./ui/panel.js";
import { FIRST_CHOICES, state_maker } from "./ui/state.js";
import { make_tour, was_seen } from "./ui/tour.js";
import { translation_views } from "./ui/translation.js";
import { renderer } from "./ui/views.js";
import { LANGUAGES } from "./ui/words.js";

const VIEWS = { next: next_view, attention: attention_view, gradients: gradients_view };

const page = load_model(document);
const state_of = state_maker(page);
let choices = {
  ...FIRST_CHOICES,
  text: page.examples[0] ?? "",
  attention: page.task.attentions.at(-1),
  language: Object.keys(LANGUAGES).find((code) => navigator.language.startsWith(code)) ?? "en",
  theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
  ...choices_of(location.hash, page),
};
let state = state_of(choices);

const draw = renderer([
  ...head_views(update, () => tour.start()),
  ...input_views(update),
  ...translation_views(update),
  {
    id: "architecture",
    depends: ({ gradient, view, attention, layer, box, language }) => {
      return [gradient, view, attention, layer, box, language];
    },
    draw: (state) => architecture_view(state, update),
  },
  {
    id: "views",
    depends: ({ view, box, language }) => [view, box === null, language],
    draw: ({ say, view, box }) => {
      const items = Object.keys(VIEWS).map((value) => worded(value, say(`view_${value}`)));
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
      const { box, part, language, theme } = others;
      return [
        gradient,
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
]);
const tour = make_tour(update, () => state);

function update(changes) {
  const before = state;
  choices = { ...choices, ...changes };
  state = state_of(choices);
  show();
  if (state.box !== before.box) {
    const to = state.box ? "box-title" : `box-${before.box}`;
    document.getElementById(to)?.focus({ preventScroll: state.box === null });
  }
  if (state.language !== before.language) {
    tour.again();
  }
}

function show() {
  document.documentElement.lang = state.language;
  document.documentElement.dataset.theme = state.theme;
  document.title = state.say("title");
  draw(state);
  try {
    history.replaceState(null, "", fragment_of(state));
  } catch {
    // where a browser allows no such address, the page works without it
  }
}

const first_visit = location.hash === "" && !was_seen();
show();
if (first_visit) {
  tour.start();
}
document.documentElement.dataset.ready = "yes";
addEventListener("hashchange", () => {
  const linked = choices_of(location.hash, page);
  const fresh =
    linked.text === undefined || linked.text === state.text ? {} : new_text(linked.text);
  update({ box: null, ...fresh, ...linked });
});
addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && !tour.close() && state.box) {
    update({ box: null });
  }
});
