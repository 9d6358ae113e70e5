// The foot of the page: what made it, of which training, and how to make one's own.

import { h } from "./dom.js";
import { in_groups } from "./numbers.js";

export const foot_view = {
  id: "foot",
  depends: ({ language }) => [language],
  draw: ({ say, page }) => [
    h("p", {}, say("made_by", { version: page.version }), " ", model_words(say, page)),
    h("p", {}, say("make_yours"), " ", h("code", {}, "minitransformer explore RUN")),
    ...(page.own ? own_words(say, page.own) : []),
  ],
};

function model_words(say, { parameters, corpus, config, model, vocabulary, bits }) {
  const words = {
    parameters: in_groups(parameters),
    layers: Object.values(model.stacks).map(({ layers }) => layers).join(" + "),
    heads: config.num_heads,
    width: config.d_model,
    pieces: in_groups(vocabulary.pieces.length),
  };
  const trained = corpus ? ` ${say("trained_on", { corpus: say(`corpus_${corpus}`) })}` : "";
  const rounded = bits < 32 ? ` ${say("rounded", { bits })}` : "";
  return say("model_size", words) + trained + rounded;
}

// Of a learner's functions: how they compare, and the certificate of their training.
function own_words(say, { file, sources, compared, differ, certificate }) {
  const count = Object.keys(sources).length;
  return [
    h(
      "p",
      {},
      say("own_functions", { file, count }),
      compared > 0 && ` ${say("own_differ", { compared, differ })}`,
    ),
    certificate &&
      h(
        "details",
        { id: "certificate" },
        h("summary", {}, say("certificate")),
        h("pre", { tabindex: 0 }, certificate),
      ),
  ];
}
