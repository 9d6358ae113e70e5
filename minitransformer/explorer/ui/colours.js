// Numbers as colours. Weights are white for nothing to dark blue for all, as in the lessons; on a
// dark page dark for nothing to light blue. Numbers with a sign go from blue over nothing to red.
// Lengths of gradients are vermilion: all that is backward is.

const SCALES = {
  light: {
    weights: ["#ffffff", "#9ecae1", "#4292c6", "#084594"],
    signed: ["#053061", "#4393c3", "#ffffff", "#d6604d", "#67001f"],
    lengths: ["#ffffff", "#fdbe91", "#d55e00"],
  },
  dark: {
    weights: ["#181d24", "#124678", "#3c8cc8", "#bee1fa"],
    signed: ["#96cdf5", "#3273af", "#181d24", "#be503c", "#fab4a0"],
    lengths: ["#181d24", "#7d4219", "#ff9646"],
  },
};

// Red, green and blue of a number from 0 to 1, or from -1 to 1 on the scale "signed".
export function colour_of(number, scale, theme) {
  const stops = SCALES[theme][scale];
  const share = scale === "signed" ? (number + 1) / 2 : number;
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(at), stops.length - 2);
  const [from, to] = [channels(stops[below]), channels(stops[below + 1])];
  return from.map((value, i) => Math.round(value + (at - below) * (to[i] - value)));
}

function channels(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

// The same as a style, with text on it in black or white, whichever can be read better.
export function style_of(number, scale, theme) {
  const rgb = colour_of(number, scale, theme);
  const ink = luminance(rgb) > 0.179 ? "#000" : "#fff"; // where both have the same contrast
  return `background:rgb(${rgb});color:${ink}`;
}

// Relative luminance as WCAG 2 defines it, from 0 for black to 1 for white.
export function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
