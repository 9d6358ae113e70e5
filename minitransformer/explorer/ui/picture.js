// An array as a picture: a row of pixels for each piece, a colour for each number. The number under
// the pointer or the finger can be read, and with the arrow keys each of them.

import { colour_of } from "./colours.js";
import { h } from "./dom.js";

const PIXELS_A_ROW = 18;
const MOST_COLUMNS = 320; // more than these a screen may not show

// `array` is (M, N), `rows` has a label for each row, `column(j)` that of a column; `scale` is
// "weights", for numbers from 0 to 1, or "signed".
export function picture(state, { id, title, array, rows, column, scale }) {
  const { say, theme } = state;
  const [height, width] = array.shape;
  const [least, most] = extremes(array.data);
  const limit = scale === "weights" ? 1 : Math.max(-least, most) || 1;
  const words = { least: short(least), most: short(most) };
  const drawn = narrowed(array);
  const canvas = h("canvas", {
    id,
    width: drawn.shape[1],
    height,
    style: `height:${PIXELS_A_ROW * height}px`,
    tabindex: 0,
    role: "img",
    "aria-label": `${title}. ${say("range", words)} ${say("arrow_keys")}`,
  });
  const image = new ImageData(drawn.shape[1], height);
  drawn.data.forEach((number, i) =>
    image.data.set([...colour_of(number / limit, scale, theme), 255], 4 * i),
  );
  canvas.getContext("2d").putImageData(image, 0, 0);
  const readout = h("p", { class: "hint readout", "aria-live": "polite" }, say("range", words));
  const mark = h("span", { class: "mark", hidden: true });
  const cell = { i: 0, j: 0 };
  const read = (i, j) => {
    Object.assign(cell, { i, j });
    const number = short(array.data[i * width + j]);
    readout.textContent = say("number_at", { row: rows[i], column: column(j), number });
    mark.hidden = false;
    mark.style.top = `${PIXELS_A_ROW * i}px`;
    mark.style.left = `${(100 * j) / width}%`;
    mark.style.width = `${100 / width}%`;
  };
  const read_at = ({ offsetX, offsetY }) => {
    const at = (offset, size, count) =>
      Math.min(Math.max(Math.floor((offset / size) * count), 0), count - 1);
    read(at(offsetY, canvas.clientHeight, height), at(offsetX, canvas.clientWidth, width));
  };
  canvas.addEventListener("pointermove", read_at);
  canvas.addEventListener("pointerdown", read_at); // a finger touches without having moved
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
    const [down, right] = steps[event.key] ?? [];
    if (down !== undefined) {
      event.preventDefault();
      read(
        Math.min(Math.max(cell.i + down, 0), height - 1),
        Math.min(Math.max(cell.j + right, 0), width - 1),
      );
    }
  });
  return h(
    "figure",
    { class: "picture" },
    h("figcaption", {}, title),
    h(
      "div",
      { class: "labelled" },
      h(
        "ol",
        { "aria-hidden": "true" },
        rows.map((label) => h("li", { title: label }, label)),
      ),
      h("div", { class: "pixels" }, canvas, mark),
    ),
    colour_bar(limit, scale, theme),
    readout,
  );
}

// An array with so many columns that they can be seen: of a few neighbours the number that is
// farthest from 0.
function narrowed({ shape: [height, width], data }) {
  const few = Math.ceil(width / MOST_COLUMNS);
  const columns = Math.ceil(width / few);
  const farthest = (i, j) => {
    const start = i * width + j * few;
    const neighbours = data.subarray(start, Math.min(start + few, (i + 1) * width));
    return neighbours.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
  };
  const numbers = Array.from({ length: height * columns }, (_, i) =>
    farthest(Math.floor(i / columns), i % columns),
  );
  return { shape: [height, columns], data: numbers };
}

function colour_bar(limit, scale, theme) {
  const from = scale === "weights" ? 0 : -1;
  const steps = Array.from({ length: 9 }, (_, i) => from + ((1 - from) * i) / 8);
  const colours = steps.map((number) => `rgb(${colour_of(number, scale, theme)})`);
  return h(
    "div",
    { class: "colour-bar", "aria-hidden": "true" },
    h("span", {}, short(from * limit)),
    h("span", { class: "ramp", style: `background:linear-gradient(to right,${colours})` }),
    h("span", {}, short(limit)),
  );
}

function extremes(data) {
  return data.reduce(
    ([least, most], number) => [Math.min(least, number), Math.max(most, number)],
    [Infinity, -Infinity],
  );
}

function short(number) {
  const text = Math.abs(number) >= 0.1 || number === 0 ? number.toFixed(2) : number.toPrecision(2);
  return text.replaceAll("-", "−");
}
