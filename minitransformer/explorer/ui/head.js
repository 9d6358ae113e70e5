// The head of the page: what it is, and its language and theme.

import { h } from "./dom.js";
import { language_name } from "./input.js";
import { LANGUAGES } from "./words.js";

export function head_views(update, start_tour) {
  return [
    {
      id: "head",
      depends: ({ language, theme }) => [language, theme],
      draw: (state) => [title(state), settings(state, update, start_tour)],
    },
  ];
}

function title({ say, page }) {
  const [from, to] = (page.languages ?? []).map((code) => language_name(say, code));
  const languages = from ? `${say("subtitle_languages", { from, to })} ` : "";
  return h("div", {}, h("h1", {}, say("title")), h("p", {}, languages, say("subtitle")));
}

function settings({ say, language, theme }, update, start_tour) {
  const options = Object.entries(LANGUAGES).map(([code, name]) =>
    h("option", { value: code, selected: code === language, lang: code }, name),
  );
  const dark = theme === "dark";
  return h(
    "div",
    { class: "settings" },
    h(
      "select",
      {
        id: "language",
        "aria-label": say("language"),
        onchange: ({ target }) => update({ language: target.value }),
      },
      options,
    ),
    h(
      "button",
      {
        id: "theme",
        type: "button",
        role: "switch",
        class: "quiet",
        "aria-checked": String(dark),
        onclick: () => update({ theme: dark ? "light" : "dark" }),
      },
      `${dark ? "●" : "○"} ${say("dark")}`,
    ),
    h(
      "button",
      { id: "start-tour", type: "button", class: "quiet", onclick: start_tour },
      say("tour"),
    ),
  );
}
