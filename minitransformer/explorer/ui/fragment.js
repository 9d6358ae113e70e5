// The address says what is looked at, after its #, so that a link leads to a view and can be passed
// on: #example=1&view=attention&attention=cross&layer=2&head=3. Numbers begin at 1.

const WORDS_ALLOWED = {
  view: ["next", "attention", "gradients", "learn"],
  attention: ["encoder", "decoder", "cross"],
  drawn: ["lines", "matrix"],
  language: ["en", "zh", "de"],
  theme: ["light", "dark"],
};

// The choices in a fragment; what makes no sense is passed over.
export function choices_of(fragment, page) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const choices = {};
  for (const [name, allowed] of Object.entries(WORDS_ALLOWED)) {
    if (allowed.includes(given.get(name))) {
      choices[name] = given.get(name);
    }
  }
  const { num_encoder_layers, num_decoder_layers, num_heads, max_length } = page.config;
  const layers = choices.attention === "encoder" ? num_encoder_layers : num_decoder_layers;
  const numbers = { layer: layers, head: num_heads, step: max_length };
  for (const [name, most] of Object.entries(numbers)) {
    const number = Number(given.get(name) ?? NaN);
    if (Number.isInteger(number) && 1 <= number && number <= most) {
      choices[name] = number - 1;
    }
  }
  const example = page.examples[Number(given.get("example") ?? NaN) - 1];
  const text = given.get("text") ?? example;
  if (text !== undefined && text.trim() !== "") {
    choices.text = text;
  }
  if (is_box(given.get("box") ?? "", page.model)) {
    choices.box = given.get("box");
  }
  return choices;
}

function is_box(name, model) {
  const blocks = [...model.blocks("encoder"), ...model.blocks("decoder")];
  const ends = ["source", "target"].flatMap((side) => [`${side}.embedding`, `${side}.positions`]);
  const stacks = model.pre_norm ? ["encoder.norm", "decoder.norm"] : [];
  const within = blocks.flatMap((block) => [block, `${block}.norm`, `${block}.residual`]);
  return [...within, ...ends, ...stacks, "logits", "probabilities"].includes(name);
}

// The fragment of a state.
export function fragment_of({ page, text, view, attention, layer, head, drawn, step, box }) {
  const example = page.examples.indexOf(text) + 1;
  const choices = {
    ...(example > 0 ? { example } : { text }),
    step: step + 1,
    view,
    ...(view === "attention" && { attention, layer: layer + 1, head: head + 1, drawn }),
    ...(box && { box }),
  };
  return `#${new URLSearchParams(choices)}`;
}
