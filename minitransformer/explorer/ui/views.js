// Drawing: a view is an element of the page, what of the state it depends on, and what it holds.

import { refill } from "./dom.js";

// A function that draws a state: { id, depends, draw } of each view, where `depends` gives a list
// and `draw` the children of the element #id. Only views whose list has changed are drawn.
export function renderer(views) {
  const drawn = new Map();
  return (state) => {
    for (const view of views) {
      const before = drawn.get(view);
      const now = view.depends(state);
      if (!before || now.some((value, i) => value !== before[i])) {
        drawn.set(view, now);
        refill(document.getElementById(view.id), view.draw(state));
      }
    }
  };
}
