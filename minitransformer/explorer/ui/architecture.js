// The architecture (figure 1 of the paper), drawn from the configuration of the model: the encoder
// on the left, the decoder on the right, or the one that there is, from below upwards. Each box can
// be opened. Where people look at gradients, connections are as wide as the gradient that flows
// back along them is long.

import { length_of } from "../arrays.js";
import { h, svg, with_arrows } from "./dom.js";
import { box_name } from "./names.js";
import { attention_name, piece_text, selected } from "./state.js";
import { percent } from "./numbers.js";

const WIDTH = 440;
const BOX = 142; // width of a box
const BETWEEN = 12; // pixels from a box to the next one
const SPLIT = 5; // from a box to where the residual connection leaves
const PLUS = 21;
const NORM = 21;
const SIDES = {
  encoder: { centre: 116, lane: 26 },
  decoder: { centre: 324, lane: 414 },
};
const GUTTER = 220; // where the memory goes from the encoder to the decoder
const BAND = 17; // width of the widest band of the flow

export function architecture_view(state, update) {
  const { say, page } = state;
  const sides = Object.keys(page.model.stacks);
  const stacks = Object.fromEntries(sides.map((side) => [side, stack(page.model, side)]));
  const height = Math.max(...Object.values(stacks).map(({ top }) => top)) + 52;
  const [edges, layers, boxes] = ["edges", "layers", "boxes"].map((name) =>
    Object.values(stacks).flatMap((one) => one[name]),
  );
  const left = sides.length > 1 ? 0 : SIDES[sides[0]].centre - WIDTH / 2; // one in the middle
  const drawn = boxes.map((box) => box_element(state, box, update));
  const reachable = boxes.findIndex(({ name }) => name === state.box);
  drawn[Math.max(reachable, 0)].setAttribute("tabindex", 0);
  return [
    h("h2", {}, say("architecture")),
    h("p", { class: "hint" }, say("architecture_hint")),
    state.learned.length > 0 && h("p", { class: "note" }, say("architecture_learned")),
    svg(
      "svg",
      {
        viewBox: `${left} ${-height} ${WIDTH} ${height + 26}`,
        style: `max-height:max(100vh - 8rem, ${0.8 * height}px)`, // on one screen, if it can be read
        role: "group",
        "aria-label": say("architecture"),
        class: state.view === "gradients" ? "flowing" : "",
        onkeydown: with_arrows(drawn, () => {}, next_box(boxes)),
      },
      layers.map((layer) => layer_element(say, layer)),
      edge_elements(state, edges),
      sides.length > 1 && edge_elements(state, memory_edges(stacks)), // on a scale of their own
      drawn,
      ends(state, stacks),
    ),
  ];
}

// Where an arrow key leads to from a box: up and down on its side, left and right to the box of the
// other side that is most nearly as high.
function next_box(boxes) {
  const middle = ({ y, height }) => y + height / 2;
  return (at, key) => {
    const side = (box) => box.x + box.width / 2 > GUTTER;
    const here = side(boxes[at]);
    const step = { ArrowUp: 1, ArrowDown: -1 }[key];
    if (step) {
      return boxes[at + step] && side(boxes[at + step]) === here ? at + step : null;
    }
    if (key !== (here ? "ArrowLeft" : "ArrowRight")) {
      return null;
    }
    const away = (box) => Math.abs(middle(box) - middle(boxes[at]));
    const others = boxes.filter((box) => side(box) !== here);
    return boxes.indexOf(others.reduce((a, b) => (away(b) < away(a) ? b : a)));
  };
}

// Boxes, connections and layers of a side, y upwards from 0. A box is { name, x, y, width, height,
// short }; a connection { path, kind, length }, the last a function that gives the length of a
// gradient along it, or null: after the last LayerNorm numbers have another scale.
function stack(model, side) {
  const { centre, lane } = SIDES[side];
  const { input, layers: count } = model.stacks[side];
  const [boxes, edges, layers] = [[], [], []];
  const norm = model.kinds.norm ?? "norm";
  let y = 0;
  let length = null; // along the connection that leads on
  const go_to = (up) => {
    if (boxes.length > 0) {
      edges.push({ path: `M${centre} ${-y}V${-up}`, kind: "sublayer", length });
    }
    y = up;
  };
  const box = (name, height, short, length_after, width = BOX) => {
    go_to(y + BETWEEN);
    boxes.push({ name, short, x: centre - width / 2, y, width, height });
    y += height;
    length = length_after;
  };
  const stream = (name, height, short, width) => box(name, height, short, at(name), width);
  const block = (name) => {
    go_to(y + SPLIT);
    const split = y;
    const through = way(name, "sublayer");
    length = through;
    if (model.pre_norm) {
      box(`${name}.norm`, NORM, norm, through);
    }
    box(name, 28, name.split(".")[2], through);
    stream(`${name}.residual`, PLUS, "+", PLUS);
    const path = `M${centre} ${-split}H${lane}V${-(y - PLUS / 2)}H${centre}`;
    edges.push({ path, kind: "residual", length: way(name, "residual") });
    if (!model.pre_norm) {
      stream(`${name}.norm`, NORM, norm);
    }
  };
  stream(`${input}.embedding`, 26, "embedding");
  if (model.added_positions) {
    stream(`${input}.positions`, 22, "positions");
  }
  for (let layer = 0; layer < count; layer++) {
    go_to(y + 7);
    const bottom = y - 2;
    model
      .blocks(side)
      .filter((name) => name.startsWith(`${side}.${layer}.`))
      .forEach(block);
    go_to(y + 5);
    layers.push({ side, number: layer + 1, bottom, top: y });
  }
  if (model.pre_norm) {
    box(`${side}.norm`, NORM, norm, null);
  }
  if (side === Object.keys(model.stacks).at(-1)) {
    box("logits", 22, "linear", null);
    box("probabilities", 22, "softmax", null);
  }
  return { boxes, edges, layers, top: y };
}

function at(name) {
  return (gradient) => length_of(gradient.of(name).data);
}

function way(block, name) {
  return (gradient) => gradient.flow.find((ways) => ways.block === block)[`${name}_norm`];
}

// From the top of the encoder to each cross-attention.
function memory_edges({ encoder, decoder }) {
  const top = encoder.top + BETWEEN;
  const out = {
    path: `M${SIDES.encoder.centre} ${-encoder.top}V${-top}H${GUTTER}`,
    kind: "memory",
    length: at(encoder.boxes.at(-1).name),
  };
  const crossings = decoder.boxes.filter(({ name }) => /^decoder\.\d+\.cross$/.test(name));
  const into = crossings.map(({ name, x, y, height }) => ({
    path: `M${GUTTER} ${-top}V${-(y + height / 2)}H${x}`,
    kind: "memory",
    length: way(name, "memory"),
  }));
  return [out, ...into];
}

// Connections. Where people look at gradients they are bands, the longest the widest.
function edge_elements({ gradient, view, say }, edges) {
  const lengths = edges.map(({ length }) =>
    view === "gradients" && gradient && length ? length(gradient) : null,
  );
  const longest = Math.max(...lengths) || 1;
  return edges.map(({ path, kind }, i) => {
    if (lengths[i] === null) {
      return svg("path", { d: path, class: `edge ${kind}`, "stroke-width": 1.5 });
    }
    const width = Math.max(1, (lengths[i] / longest) * BAND).toFixed(1);
    const title = say("gradient_length", { length: lengths[i].toPrecision(2) });
    const attributes = { d: path, class: `edge ${kind} band`, "stroke-width": width };
    return svg("path", attributes, svg("title", {}, title));
  });
}

function box_element(state, { name, x, y, width, height, short }, update) {
  const { say, box, view } = state;
  const looked_at = view === "attention" && attention_name(state) === name;
  const full_name = box_name(say, name, state.model.kinds);
  const kind = short === "+" ? "plus" : name.split(".").at(-1);
  const open = () => update({ box: name, part: null });
  const onkeydown = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open();
    }
  };
  const heads_off = [...state.off].filter((head) => head.startsWith(`${name}.`)).length;
  const label = (short === "+" ? "+" : say(`box_${short}`)) + (heads_off ? ` (−${heads_off})` : "");
  return svg(
    "g",
    {
      id: `box-${name}`,
      role: "button",
      tabindex: -1,
      class: `box ${kind} ${box === name ? "is-open" : ""} ${looked_at ? "is-looked-at" : ""}`,
      "aria-label": full_name,
      "aria-pressed": String(box === name),
      onclick: open,
      onkeydown,
    },
    svg("title", {}, full_name),
    target({ x, y, width, height }),
    svg("rect", { x, y: -(y + height), width, height, rx: short === "+" ? height / 2 : 6 }),
    svg("text", { x: x + width / 2, y: -(y + height / 2), dy: "0.35em" }, label),
  );
}

// Where a box can be hit: as far around it as to the middle between it and the next one.
function target({ x, y, width, height }) {
  const around = BETWEEN / 2;
  const across = width + BETWEEN;
  const d = `M${x - around} ${around - y}h${across}v${-height - BETWEEN}h${-across}z`;
  return svg("path", { d, class: "target" });
}

function layer_element(say, { side, number, bottom, top }) {
  const x = side === "encoder" ? 6 : GUTTER + 14;
  const width = GUTTER - 20;
  const at = side === "encoder" ? x + width - 8 : x + 8; // away from the residual connections
  return svg(
    "g",
    { class: "layer" },
    svg("rect", { x, y: -top, width, height: top - bottom, rx: 10 }),
    svg(
      "text",
      { x: at, y: -top + 14, "text-anchor": side === "encoder" ? "end" : "start" },
      number,
    ),
  );
}

// What goes in at the bottom and what comes out at the top.
function ends(state, stacks) {
  const { say, steps, step } = state;
  const text = (x, y, content, kind) => svg("text", { x, y: -y, class: `end ${kind}` }, content);
  const words = { encoder: say("source"), decoder: say("said_so_far") };
  const bottom = Object.keys(stacks).map((side) => text(SIDES[side].centre, -16, words[side], ""));
  const [last, { top }] = Object.entries(stacks).at(-1);
  const { centre } = SIDES[last];
  if (!steps) {
    return bottom;
  }
  const { id, probability } = selected(state);
  const next = `${piece_text(state, id)} · ${percent(probability)}`;
  return [
    ...bottom,
    svg("path", {
      d: `M${centre} ${-top}v-12`,
      class: "edge sublayer",
      "stroke-width": 1.5,
    }),
    text(centre, top + 20, next, "is-next"),
    text(centre, top + 37, say("piece_number", { number: step + 1 }), ""),
  ];
}
