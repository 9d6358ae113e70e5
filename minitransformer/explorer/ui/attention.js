// Where each head looks: all heads of an attention as small pictures, one of them large, as lines
// between pieces or as a matrix. A head can be switched off.

import { row } from "../arrays.js";
import { colour_of, style_of } from "./colours.js";
import { choice, h, svg, with_arrows, worded } from "./dom.js";
import { compared } from "./numbers.js";
import { attention_name, layers_of, piece_text, selected } from "./state.js";
import { selected_words, text_of } from "./translation.js";

export function attention_view(state, update) {
  const { say, page, attention, layer, run } = state;
  const name = attention_name(state);
  const kinds = page.task.attentions.map((value) => worded(value, say(`attention_${value}`)));
  const numbers = Array.from({ length: layers_of(state) }, (_, value) =>
    worded(value, say("layer", { number: value + 1 })),
  );
  const ways = ["lines", "matrix"].map((value) => worded(value, say(value)));
  const weights = run.attention(name); // (H, T, S)
  const view = { ...looking(state), weights: head_of(weights, state.head) };
  const is_off = state.off.has(`${name}.${state.head}`);
  return [
    h(
      "div",
      { class: "row" },
      kinds.length > 1 &&
        choice("kind", say("kind"), kinds, attention, (attention) => update({ attention }), {
          class: "segments",
        }),
      choice("layer", say("layer_choice"), numbers, layer, (layer) => update({ layer }), {
        class: "segments",
      }),
    ),
    h("p", {}, say(`attention_${attention}_text`, selected_words(state))),
    h("p", { class: "hint" }, say("heads_text", { count: weights.shape[0] })),
    heads(state, name, weights, update),
    changed(state, update),
    h(
      "div",
      { class: "row spread" },
      h("h2", {}, say(is_off ? "head_is_off" : "head", { number: state.head + 1 })),
      choice("drawn", say("drawn"), ways, state.drawn, (drawn) => update({ drawn }), {
        class: "segments",
      }),
    ),
    h("p", { class: "hint" }, say(`${state.drawn}_hint`)),
    h(
      "div",
      { class: is_off && "off" },
      state.drawn === "lines" ? lines(state, view, update) : matrix(state, view, update),
    ),
    h("p", { id: "weight", class: "hint readout" }, " "),
  ];
}

// One head of weights (H, T, S): (T, S).
function head_of(weights, head) {
  const [, length, width] = weights.shape;
  const size = length * width;
  return { shape: [length, width], data: weights.data.subarray(head * size, (head + 1) * size) };
}

// The pieces that look, those that are looked at, and which row is selected. A decoder's row is
// called by the piece that is chosen with it.
function looking(state) {
  const { source, target, steps, attention, step, source_row } = state;
  const text = (id) => piece_text(state, id);
  const said = { from: steps.map(({ id }) => text(id)), row: step, select: "step" };
  const [sources, targets] = [source ?? [], target ?? []].map((ids) => ids.map(text));
  return {
    encoder: { from: sources, to: sources, row: source_row, select: "source_row" },
    decoder: { ...said, to: targets },
    cross: { ...said, to: sources },
  }[attention];
}

function heads(state, name, weights, update) {
  const { say, off } = state;
  const items = Array.from({ length: weights.shape[0] }, (_, head) => ({
    value: head,
    label: say("head", { number: head + 1 }),
    content: [
      thumbnail(head_of(weights, head), state.theme),
      h("span", {}, say("head", { number: head + 1 })),
    ],
    class: off.has(`${name}.${head}`) ? "head off" : "head",
    style: grid_area(head, 0),
  }));
  const switches = items.map(({ value }) => {
    const on = !off.has(`${name}.${value}`);
    return h(
      "button",
      {
        id: `switch-${value}`,
        type: "button",
        role: "switch",
        class: "switch",
        style: grid_area(value, 1),
        "aria-checked": String(on),
        "aria-label": say("switch_of", { number: value + 1 }),
        onclick: () => update({ off: toggled(off, `${name}.${value}`) }),
      },
      on ? say("on") : say("off"),
    );
  });
  return h(
    "div",
    { class: "heads" },
    choice("heads", say("head_choice"), items, state.head, (head) => update({ head })),
    h("div", { class: "switches", role: "group", "aria-label": say("switches") }, switches),
  );
}

// Four heads in a row, and below each its switch.
function grid_area(head, below) {
  return `grid-area:${2 * Math.floor(head / 4) + 1 + below} / ${(head % 4) + 1}`;
}

function toggled(off, head) {
  const heads = new Set(off);
  return heads.delete(head) ? heads : heads.add(head);
}

function thumbnail({ shape, data }, theme) {
  const [height, width] = shape;
  const canvas = h("canvas", { width, height, class: "thumbnail", "aria-hidden": "true" });
  const image = new ImageData(width, height);
  data.forEach((weight, i) => image.data.set([...colour_of(weight, "weights", theme), 255], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// What heads that are off have changed.
function changed(state, update) {
  if (state.off.size === 0) {
    return null;
  }
  const { say } = state;
  const sentences = what_changed(state).map((sentence) => h("p", {}, sentence));
  const onclick = () => update({ off: new Set() });
  return h(
    "div",
    { class: "changed" },
    sentences,
    h("button", { id: "all-on", type: "button", class: "quiet", onclick }, say("all_on")),
  );
}

function what_changed(state) {
  const { say, off, all_on, steps, gradient } = state;
  const [before, after] = [text_of(state, all_on.steps), text_of(state, steps)];
  const [before_off, now] = [all_on.log_probability, gradient.log_probability];
  return [
    say("heads_off", { heads: [...off].map((head) => head_name(say, head)).join("; ") }),
    before === after ? say("same_translation") : say("other_translation", { before, after }),
    say("log_probability_change", {
      piece: piece_text(state, selected(state).id),
      ...compared(before_off, now),
    }),
  ];
}

// "encoder.0.self.2" as people read it: encoder layer 1, self-attention, head 3.
function head_name(say, head) {
  const [side, layer, kind, number] = head.split(".");
  const words = {
    side: say(side),
    kind: say(kind),
    layer: Number(layer) + 1,
    head: Number(number) + 1,
  };
  return say("head_name", words);
}

const ROW = 28; // pixels of a piece in a column of them
const GAP = 120; // of the lines between two columns, stretched to the width there is

// Each piece that looks on the left, what it looks at on the right; the darker a line, the larger
// the weight. The lines of the selected piece, or of the one under the pointer, stand out.
function lines(state, { from, to, row: chosen, select, weights }, update) {
  const { say, theme } = state;
  const height = ROW * Math.max(from.length, to.length);
  const middle = (i) => ROW * (i + 0.5);
  const drawing = svg("svg", {
    viewBox: `0 0 ${GAP} ${height}`,
    preserveAspectRatio: "none",
    height,
    "aria-hidden": "true",
  });
  const numbers = to.map(() => h("span", { class: "number" }));
  const keys = to.map((piece, s) => h("li", {}, h("span", { class: "chip" }, piece), numbers[s]));
  const show = (t) => {
    const others = from.map((_, i) => i).filter((i) => i !== t);
    const paths = [...others, t].flatMap((i) =>
      to.map((_, s) => {
        const weight = row(weights, i)[s];
        const [up, down] = [middle(i), middle(s)];
        const line = `M0 ${up}C${GAP / 2} ${up} ${GAP / 2} ${down} ${GAP} ${down}`;
        const strong = i === t;
        const opacity = strong ? weight ** 0.7 : 0.16 * weight;
        return (
          opacity > 0.01 &&
          svg("path", {
            d: line,
            class: strong ? "line strong" : "line",
            opacity: opacity.toFixed(3),
          })
        );
      }),
    );
    drawing.replaceChildren(...paths.filter(Boolean));
    numbers.forEach((number, s) => (number.textContent = weight_text(row(weights, t)[s])));
    keys.forEach(({ firstChild }, s) => {
      firstChild.style.cssText = style_of(row(weights, t)[s], "weights", theme);
    });
  };
  const items = from.map((piece, i) => ({
    value: i,
    class: "chip",
    label: piece,
    content: [piece],
    onmouseenter: () => show(i),
    onfocus: () => show(i),
  }));
  show(chosen);
  return h(
    "div",
    { class: "lines" },
    choice("from", say("looks"), items, chosen, (value) => update({ [select]: value }), {
      class: "column",
      onmouseleave: () => show(chosen),
    }),
    drawing,
    h("ol", { class: "column to", "aria-label": say("looked_at") }, keys),
  );
}

function weight_text(weight) {
  return weight < 0.005 ? "0" : weight.toFixed(2);
}

// A table of all weights: a row looks, a column is looked at.
function matrix(state, { from, to, row: chosen, select, weights }, update) {
  const { say, theme } = state;
  const read = (t, s) => {
    const words = { from: from[t], to: to[s], weight: row(weights, t)[s].toFixed(3) };
    document.getElementById("weight").textContent = say("weight", words);
  };
  const head = to.map((piece) => h("th", { scope: "col" }, h("span", {}, piece)));
  const body = from.map((piece, t) => {
    const cells = Array.from(row(weights, t), (weight, s) =>
      h(
        "td",
        { style: style_of(weight, "weights", theme), onpointerenter: () => read(t, s) },
        weight_text(weight).replace(/^0\./, "."),
      ),
    );
    const button = h(
      "button",
      {
        id: `row-${t}`,
        type: "button",
        class: "quiet",
        tabindex: t === chosen ? 0 : -1,
        onclick: () => update({ [select]: t }),
      },
      piece,
    );
    return h(
      "tr",
      { class: t === chosen && "is-selected" },
      h("th", { scope: "row" }, button),
      cells,
    );
  });
  const buttons = body.map((line) => line.querySelector("button"));
  const onkeydown = with_arrows(buttons, (button) => button.click());
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": say("matrix"), onkeydown },
    h(
      "table",
      { class: "matrix" },
      h("thead", {}, h("tr", {}, h("td"), head)),
      h("tbody", {}, body),
    ),
  );
}
