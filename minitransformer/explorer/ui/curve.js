// How likely something was before learning, and after each step: a curve, and its numbers.

import { h, svg } from "./dom.js";
import { percent } from "./numbers.js";

const [CURVE_WIDTH, CURVE_HEIGHT] = [440, 190];
const PLOT = { left: 54, right: 426, top: 16, bottom: 162 }; // where 0 and 100 % are

export function curve({ say }, title, probabilities, num_steps) {
  const x = (t) => PLOT.left + ((PLOT.right - PLOT.left) * t) / num_steps;
  const y = (p) => PLOT.bottom - (PLOT.bottom - PLOT.top) * p;
  const points = probabilities.map((p, t) => `${x(t).toFixed(1)},${y(p).toFixed(1)}`);
  const lines = [0, 0.5, 1].map((p) => [
    svg("path", { d: `M${PLOT.left} ${y(p)}H${PLOT.right}`, class: "grid" }),
    svg("text", { x: PLOT.left - 6, y: y(p), dy: "0.35em", class: "tick" }, `${100 * p} %`),
  ]);
  const steps = [0, num_steps].map((t) =>
    svg("text", { x: x(t), y: PLOT.bottom + 18, class: "tick step" }, t),
  );
  const dots = probabilities.map((p, t) =>
    svg(
      "circle",
      { cx: x(t).toFixed(1), cy: y(p).toFixed(1), r: num_steps > 20 ? 2.5 : 4 },
      svg("title", {}, say("after_step", { number: t, percent: percent(p) })),
    ),
  );
  const middle = { x: (PLOT.left + PLOT.right) / 2, y: PLOT.bottom + 18, class: "tick step" };
  const readings = probabilities.map((p, t) => h("li", {}, h("small", {}, t), " ", percent(p)));
  return h(
    "figure",
    { class: "curve" },
    h("figcaption", {}, title),
    svg(
      "svg",
      { viewBox: `0 0 ${CURVE_WIDTH} ${CURVE_HEIGHT}`, "aria-hidden": "true" },
      lines.flat(),
      steps,
      svg("text", middle, say("num_steps")),
      svg("polyline", { points: points.join(" ") }),
      dots,
    ),
    h("ol", { class: "readings", "aria-label": title }, readings),
  );
}
