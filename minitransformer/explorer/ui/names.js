// The boxes of the model as people call them.

// "decoder.1.cross.weights" in words: decoder layer 2 · cross-attention · weights. Which norm a
// model has, its `kinds` say.
export function box_name(say, name, kinds = {}) {
  const word = (part) => say(part === "norm" ? `box_${kinds.norm ?? "norm"}` : part);
  const [side, layer, sublayer, part] = name.split(".");
  if (name === "logits" || name === "probabilities") {
    return `${say(`box_${name === "logits" ? "linear" : "softmax"}`)} · ${say(name)}`;
  }
  if (sublayer === undefined) {
    return `${say(side)} · ${word(layer)}`;
  }
  const stack_layer = say("layer_of", { side: say(side), number: Number(layer) + 1 });
  const block = `${stack_layer} · ${say(sublayer)}`;
  return part ? `${block} · ${word(part)}` : block;
}

const INNER = ["inner", "relu", "gelu", "gelu_by_tanh", "silu", "gate", "up", "gated"];

// The letters of a box's shape, as in the lessons: S and T pieces, D d_model, H heads, K head
// width, F feed-forward width, V vocabulary; and G groups, where heads share keys and values.
export function shape_letters(name, { model, config }) {
  const part = name.split(".").at(-1);
  const is_source = /^(encoder|source)/.test(name) || !("decoder" in model.stacks);
  const looking = is_source ? "S" : "T";
  const kept = model.num_groups < config.num_heads ? "G" : "H";
  const looked_at = name.includes(".cross.") ? "S" : looking;
  const letters = {
    query: ["H", looking, "K"],
    key: [kept, looked_at, "K"],
    value: [kept, looked_at, "K"],
    scores: ["H", looking, looked_at],
    weights: ["H", looking, looked_at],
    heads: ["H", looking, "K"],
    turned_query: ["H", looking, "K"],
    turned_key: [kept, looked_at, "K"],
    ...Object.fromEntries(INNER.map((name) => [name, [looking, "F"]])),
    logits: [looking, "V"],
    probabilities: [looking, "V"],
  };
  return letters[part] ?? [looking, "D"];
}

const FILES = {
  scaled_dot_product_attention: "layers/attention",
  multi_head_attention: "layers/attention",
  alibi_attention: "layers/alibi",
  unscaled_embedding: "layers/embedding",
  gelu_by_tanh: "layers/gelu",
  self_attention: "models/sublayers",
  activated_feed_forward: "models/sublayers",
};

// The file of the package with the functions of a kind of box.
export function file_of(kind) {
  return `minitransformer/${FILES[kind] ?? `layers/${kind}`}.py`;
}

// What a learner may have written for a kind of box, beside the pair of its name.
const BESIDE = {
  positional_encoding: ["sinusoidal_encoding"],
  softmax: ["padding_mask", "causal_mask"],
  multi_head_attention: ["split_heads", "merge_heads"],
  residual: [
    "encoder_layer",
    "encoder_layer_backward",
    "decoder_layer",
    "decoder_layer_backward",
  ],
};

// The names of the learner's functions that a kind of box shows.
export function own_names(kind) {
  return [...(BESIDE[kind] ?? []), kind, `${kind}_backward`];
}

// The boxes that belong to one place of the architecture, in the order of computation: the block's
// sublayer with all that is within it; of other boxes that one.
export function parts_of(run, name) {
  const names = run.states.map((state) => state.name);
  const inside = names.filter(
    (other) => other.startsWith(`${name}.`) && !/\.(norm|residual)$/.test(other),
  );
  return [...inside, name].filter((other) => names.includes(other));
}
