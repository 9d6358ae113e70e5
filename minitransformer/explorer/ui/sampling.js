// How the next piece is chosen: the likeliest, or one that is drawn.

import { choice, h, worded } from "./dom.js";

const is_whole = (number) => Number.isInteger(number) && number >= 0;

// The numbers that sampling takes: which there are, and the steps and the end of their fields.
export const SAMPLING = {
  temperature: { allows: (number) => number >= 0 && number <= 100, step: 0.1, max: 100 },
  top_k: { allows: is_whole, step: 1, max: undefined },
  seed: { allows: (number) => is_whole(number) && number < 2 ** 32, step: 1, max: 2 ** 32 - 1 },
};

export function sampling_controls(state, update) {
  const { say, temperature, seed } = state;
  const ways = ["likeliest", "drawn"].map((value) => worded(value, say(`way_${value}`)));
  const way = temperature > 0 ? "drawn" : "likeliest";
  const temperatures = { likeliest: 0, drawn: 1 };
  const chosen = (value) => value !== way && update(drawing({ temperature: temperatures[value] }));
  const again = () => update(drawing({ seed: (seed + 1) % 2 ** 32 }));
  return h(
    "div",
    { class: "row sampling" },
    h("span", { class: "hint" }, say("way")),
    choice("way", say("way"), ways, way, chosen, { class: "segments" }),
    way === "drawn" && Object.keys(SAMPLING).map((name) => field(state, name, update)),
    way === "drawn" &&
      h("button", { id: "again", type: "button", class: "quiet", onclick: again }, say("again")),
  );
}

// Who draws otherwise holds nothing.
function drawing(changes) {
  return { ...changes, held: null };
}

function field({ say, ...state }, name, update) {
  const { allows, step, max } = SAMPLING[name];
  const box = h("input", {
    id: name,
    type: "number",
    min: 0,
    step,
    max,
    onchange: () => {
      const number = Number(box.value);
      if (box.value !== "" && allows(number)) {
        update(drawing({ [name]: number }));
      } else {
        box.value = state[name];
      }
    },
  });
  box.value = state[name];
  return h("label", { for: name }, say(name), " ", box);
}
