// The browser's history. A place is a view, or a box that is open: going to another one makes an
// entry, so that the back button leads to the place before. All other choices change the address of
// the entry that is there.

import { fragment_of } from "./fragment.js";

// Notes what is shown. `goes` says whether a person went there, and another place is a new entry.
export function note_place(state, goes) {
  const now = history.state;
  const place = { view: state.view, box: state.box };
  const left = now && { view: now.view, box: now.box };
  const fragment = fragment_of(state);
  if (now && same(now, place) && fragment === location.hash) {
    return; // as at each step of learning: a browser takes only so many addresses a second
  }
  try {
    if (!goes || !now || same(now, place)) {
      history.replaceState({ ...place, before: now?.before ?? null }, "", fragment);
    } else if (now.box && now.before && same(now.before, place)) {
      history.back(); // closing a box is the way back from it
    } else {
      history.pushState({ ...place, before: left }, "", fragment);
    }
  } catch {
    // where a browser allows no such address, the page works without it
  }
}

// Tells `go_back` of a place that the back or forward button leads to, and `follow` of a link to
// another fragment.
export function on_address(go_back, follow) {
  addEventListener("popstate", ({ state: place }) => {
    if (place) {
      go_back({ view: place.view, box: place.box });
    } else {
      follow(location.hash);
    }
  });
}

function same(a, b) {
  return a.view === b.view && a.box === b.box;
}
