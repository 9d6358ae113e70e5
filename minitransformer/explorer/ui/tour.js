// A guided tour for the first visit: a card beside one part of the page after the other.

import { h } from "./dom.js";

const SEEN = "minitransformer-tour"; // the key under which the browser remembers it
const ALL_STOPS = [
  { at: "input", words: "tour_1", choices: {} },
  { at: "translation", words: "tour_2", choices: {} },
  { at: "looking", words: "tour_3", choices: { view: "next", box: null } },
  { at: "looking", words: "tour_4", choices: { view: "attention", box: null } },
  { at: "looking", words: "tour_5", choices: { view: "gradients", box: null } },
  { at: "looking", words: "tour_6", choices: { view: "learn", box: null } },
  { at: "architecture", words: "tour_7", choices: {} },
];

// A tour, which `start` begins, and `again` draws anew, as after another language was chosen. At its
// end the view is as before, unless the reader has done something meanwhile, and the focus is where it
// was, on a first visit on the button that begins the tour. `num_asked` counts what was asked of the
// engine.
export function make_tour(page, update, current, num_asked) {
  const card = h("div", {
    id: "tour",
    role: "dialog",
    "aria-labelledby": "tour-text",
    tabindex: -1,
  });
  const { views } = page.task;
  const stops = ALL_STOPS.filter(({ choices: { view } }) => !view || views.includes(view));
  let stop = null;
  let came_from = null; // the id of what had the focus before
  let before = null; // { view, box } when it began
  let asked = 0; // what num_asked gives if nobody else asks for anything

  const draw = () => {
    document.querySelector(".is-toured")?.classList.remove("is-toured");
    card.remove();
    if (stop === null) {
      return;
    }
    const { say } = current();
    const at = document.getElementById(stops[stop].at);
    at.classList.add("is-toured");
    const last = stop === stops.length - 1;
    const button = (id, words, to, kind) =>
      h("button", { id, type: "button", class: kind, onclick: () => go(to) }, say(words));
    card.replaceChildren(
      h("p", { id: "tour-text" }, say(stops[stop].words)),
      h(
        "div",
        { class: "row spread" },
        h("span", { class: "hint" }, `${stop + 1} / ${stops.length}`),
        button("tour-skip", "skip", null, "quiet"),
        stop > 0 && button("tour-back", "back", stop - 1, "quiet"),
        button("tour-next", last ? "done" : "next", last ? null : stop + 1, "main"),
      ),
    );
    document.body.append(card);
    const { top, bottom } = at.getBoundingClientRect();
    if (top < 0 || bottom > innerHeight - card.offsetHeight) {
      at.scrollIntoView({ block: "start" });
    }
    card.querySelector("#tour-next").focus({ preventScroll: true });
  };

  const go = (to) => {
    const has_focus = card.contains(document.activeElement);
    stop = to;
    if (to === null) {
      remember();
      if (num_asked() === asked) {
        update(before);
      }
    } else {
      update(stops[to].choices);
      asked += 1;
    }
    draw();
    if (to === null && has_focus) {
      const back = document.getElementById(came_from) ?? document.getElementById("start-tour");
      back.focus();
    }
  };
  const close = () => stop !== null && (go(null), true);
  const start = () => {
    if (stop !== null) {
      return;
    }
    came_from = document.activeElement.id;
    const { view, box } = current();
    [before, asked] = [{ view, box }, num_asked()];
    go(0);
  };
  return { start, close, again: () => stop !== null && draw() };
}

// Whether the tour was seen before. Where a browser does not remember, as it may for a file, it was
// not, and nothing else happens.
export function was_seen() {
  try {
    return localStorage.getItem(SEEN) !== null;
  } catch {
    return false;
  }
}

function remember() {
  try {
    localStorage.setItem(SEEN, "seen");
  } catch {
    // the next visit begins with it again
  }
}
