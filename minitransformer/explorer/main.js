import { load_model } from "./load.js";
import { translate } from "./translate.js";

const page = load_model(document);
const text = document.getElementById("text");
text.value = page.examples[0] ?? "";
document.getElementById("translate").addEventListener("click", () => {
  const source = page.vocabulary.encode_source(text.value);
  const ids = Array.from(translate(page.model, source), ({ id }) => id);
  document.getElementById("translation").textContent = page.vocabulary.decode(ids);
});
