// Words of the page for a kind of model that is no translator, in place of those of words.js.

const GENERATING = {
  subtitle_languages: {
    en: "A small language model, which goes on with texts ({to}).",
    zh: "一个续写文字的小语言模型（{to}）。",
    de: "Ein kleines Sprachmodell, das Texte weiterschreibt ({to}).",
  },
  sentence: { en: "The beginning of a text", zh: "一段文字的开头", de: "Der Anfang eines Textes" },
  sentence_in: {
    en: "The beginning of a text ({language})",
    zh: "一段文字的开头（{language}）",
    de: "Der Anfang eines Textes ({language})",
  },
  translate: { en: "Go on", zh: "续写", de: "Weiter" },
  note_cut: {
    en: "The page looks at {most} pieces at most. Of this beginning the model sees the end alone, so that there is room to go on.",
    zh: "本页最多查看 {most} 个子词。模型只看到这个开头的末尾，以便留出续写的空间。",
    de: "Diese Seite zeigt höchstens {most} Stücke. Von diesem Anfang sieht das Modell nur das Ende, damit Platz zum Weiterschreiben bleibt.",
  },
  translation_hint: {
    en: "The grey pieces were given, the others it wrote, one after the other. Select one: all below is about how it was chosen.",
    zh: "灰色的是给出的，其余由模型逐个写出。选中一个：下面的一切都说明它是怎样被选出的。",
    de: "Die grauen Stücke waren gegeben, die anderen schrieb es, eines nach dem anderen. Wähle eines: alles Weitere zeigt, wie es zustande kam.",
  },
  next_hint: {
    en: "Click another one, and the text goes on from there.",
    zh: "点选另一个，文字就从那里继续。",
    de: "Klick ein anderes an, und der Text geht von dort aus weiter.",
  },
  attention_decoder_text: {
    en: "To choose “{piece}”, the model looks back at what stands before it.",
    zh: "为了选出“{piece}”，模型关注它前面的内容。",
    de: "Um „{piece}“ zu wählen, schaut das Modell zurück auf das, was davor steht.",
  },
  same_translation: {
    en: "The text is the same as with all heads.",
    zh: "文字与所有头都打开时相同。",
    de: "Der Text ist derselbe wie mit allen Köpfen.",
  },
  on_target: { en: "On what stands before", zh: "前面的内容", de: "Von dem, was davor steht" },
  target: { en: "Text", zh: "文字", de: "Text" },
  said_so_far: { en: "What stands before", zh: "前面的内容", de: "Was davor steht" },
  letter_T: { en: "pieces of the text", zh: "文字的子词", de: "Stücke des Textes" },
  rows_target: {
    en: "A row for each piece of the text → the piece that follows it.",
    zh: "文字的每个子词一行：子词 → 它后面的子词。",
    de: "Eine Zeile für jedes Stück des Textes → das Stück, das ihm folgt.",
  },
  tour_1: {
    en: "Welcome! Here you give the model the beginning of a text. It goes on in the way of the texts that it was trained on.",
    zh: "欢迎！在这里给模型一段文字的开头。它会按训练文字的样子续写。",
    de: "Willkommen! Hier bekommt das Modell den Anfang eines Textes. Es schreibt weiter wie die Texte, mit denen es gelernt hat.",
  },
  tour_2: {
    en: "It goes on piece by piece. Select a piece: the rest of the page explains that one choice.",
    zh: "它逐个子词续写。选中一个子词，页面的其余部分就解释这一次选择。",
    de: "Es schreibt Stück für Stück weiter. Wähle ein Stück: Der Rest der Seite erklärt diese eine Wahl.",
  },
  tour_3: {
    en: "These were the likeliest pieces. Click another one to see how the text would have gone on.",
    zh: "这些是最可能的子词。点选另一个，看看文字会怎样继续。",
    de: "Das waren die wahrscheinlichsten Stücke. Klick ein anderes an und sieh, wie es weitergegangen wäre.",
  },
};

const FILLING_IN = {
  subtitle_languages: {
    en: "A small masked language model, which fills gaps ({to}).",
    zh: "一个填补空缺的小型掩码语言模型（{to}）。",
    de: "Ein kleines maskiertes Sprachmodell, das Lücken füllt ({to}).",
  },
  sentence: {
    en: "A sentence with gaps, written ___",
    zh: "一个带空缺的句子，空缺写作 ___",
    de: "Ein Satz mit Lücken, geschrieben ___",
  },
  sentence_in: {
    en: "A sentence with gaps, written ___ ({language})",
    zh: "一个带空缺的句子，空缺写作 ___（{language}）",
    de: "Ein Satz mit Lücken, geschrieben ___ ({language})",
  },
  translate: { en: "Fill", zh: "填空", de: "Füllen" },
  note_empty: {
    en: "There is no gap to fill yet. Write ___ for a piece that is left out.",
    zh: "还没有空缺可填。请用 ___ 表示省略的子词。",
    de: "Noch gibt es keine Lücke. Schreib ___ für ein Stück, das fehlt.",
  },
  note_cut: {
    en: "This page takes {most} pieces at most, and this text has more. Give it a shorter one.",
    zh: "本页最多读 {most} 个子词，这段文字超出了。请给一段短一些的。",
    de: "Diese Seite nimmt höchstens {most} Stücke, und dieser Text hat mehr. Gib ihr einen kürzeren.",
  },
  translation: { en: "What it fills in", zh: "模型填入的", de: "Was es einsetzt" },
  translation_hint: {
    en: "It fills all gaps at once. Select one: all below is about how its piece was chosen.",
    zh: "它同时填补所有空缺。选中一个：下面的一切都说明它的子词是怎样被选出的。",
    de: "Es füllt alle Lücken auf einmal. Wähle eine: alles Weitere zeigt, wie ihr Stück zustande kam.",
  },
  forced_hint: {
    en: "You chose the dotted piece. The model sees the gap, so the others stay.",
    zh: "带点线的子词是你选的。模型看到的仍是空缺，所以其他的不变。",
    de: "Das gepunktete Stück hast du gewählt. Das Modell sieht weiter die Lücke, also bleiben die anderen.",
  },
  view_next: { en: "What fits", zh: "填什么", de: "Was passt" },
  next_text: {
    en: "Each piece that may stand in this gap has a probability. These had the highest.",
    zh: "每个可填入这个空缺的子词都有一个概率。这些最高。",
    de: "Jedes Stück, das in dieser Lücke stehen darf, hat eine Wahrscheinlichkeit. Die höchsten:",
  },
  next_hint: {
    en: "Click another one to look at its gradients instead.",
    zh: "点选另一个，改看它的梯度。",
    de: "Klick ein anderes an, um seine Gradienten zu sehen.",
  },
  attention_encoder_text: {
    en: "Each piece of the text looks at all its pieces, before and behind it, and takes in some of what it finds.",
    zh: "文字的每个子词关注前后所有的子词，并从中汇集信息。",
    de: "Jedes Stück des Textes schaut auf alle seine Stücke, davor und dahinter, und nimmt etwas davon auf.",
  },
  same_translation: {
    en: "The gaps are filled as with all heads.",
    zh: "填入的内容与所有头都打开时相同。",
    de: "Die Lücken sind gefüllt wie mit allen Köpfen.",
  },
  on_source: { en: "On the text", zh: "文字", de: "Vom Text" },
  source: { en: "Text", zh: "文字", de: "Text" },
  letter_S: { en: "pieces of the text", zh: "文字的子词", de: "Stücke des Textes" },
  rows_source: {
    en: "A row for each piece of the text.",
    zh: "文字的每个子词一行。",
    de: "Eine Zeile für jedes Stück des Textes.",
  },
  piece_number: { en: "Gap {number}", zh: "第 {number} 个空缺", de: "Lücke {number}" },
  tour_1: {
    en: "Welcome! Here you give the model a sentence in which pieces are left out. It was trained to say what is missing.",
    zh: "欢迎！在这里给模型一个缺了子词的句子。它受过训练，会说出缺了什么。",
    de: "Willkommen! Hier bekommt das Modell einen Satz, in dem Stücke fehlen. Es hat gelernt zu sagen, was fehlt.",
  },
  tour_2: {
    en: "It fills all gaps at once. Select one: the rest of the page explains that one choice.",
    zh: "它同时填补所有空缺。选中一个，页面的其余部分就解释这一次选择。",
    de: "Es füllt alle Lücken auf einmal. Wähle eine: Der Rest der Seite erklärt diese eine Wahl.",
  },
  tour_3: {
    en: "These were the likeliest pieces. Click another one to see what that would depend on.",
    zh: "这些是最可能的子词。点选另一个，看看它依赖什么。",
    de: "Das waren die wahrscheinlichsten Stücke. Klick ein anderes an und sieh, wovon es abhinge.",
  },
};

const ONE_STACK = {
  flow_text: {
    en: "The gradient of “{piece}” goes back through the model, block by block. At each block it takes two ways: past the block, along the residual connection, and through it. The diagram draws both as wide as they are long.",
    zh: "“{piece}”的梯度逐块回传，穿过整个模型。在每一块，它走两条路：沿残差连接绕过，以及从中穿过。图中线条的宽度就是两者的长度。",
    de: "Der Gradient von „{piece}“ geht Block für Block durch das Modell zurück. An jedem Block nimmt er zwei Wege: über die Residualverbindung daran vorbei, und hindurch. Die Zeichnung zeigt ihre Längen als Breiten.",
  },
  examples_hint: {
    en: "The model knows only texts like these.",
    zh: "模型只认识这样的文字。",
    de: "Das Modell kennt nur Texte wie diese.",
  },
};

export const WORDS_OF_KINDS = {
  "language-model": { ...ONE_STACK, ...GENERATING },
  "masked-language-model": { ...ONE_STACK, ...FILLING_IN },
};
