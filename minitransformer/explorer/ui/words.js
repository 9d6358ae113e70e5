// All words of the page, in its three languages.

export const LANGUAGES = { en: "English", zh: "中文", de: "Deutsch" };

// A function that gives the words for a key, with {name} replaced by values.name.
export function speaker(language) {
  return (key, values = {}) =>
    WORDS[key][language].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

export const WORDS = {
  code: { en: "en", zh: "zh", de: "de" },
  // the head of the page
  title: {
    en: "Inside a Transformer",
    zh: "走进 Transformer",
    de: "Im Inneren eines Transformers",
  },
  subtitle: {
    en: "It runs in this page, forward and backward. Change something and watch what follows.",
    zh: "它就在本页中运行，既前向也反向。改一改，看看会发生什么。",
    de: "Das Modell rechnet auf dieser Seite, vorwärts und rückwärts. Ändere etwas und sieh, was folgt.",
  },
  subtitle_languages: {
    en: "A small model that translates from {from} into {to}.",
    zh: "一个把{from}翻译成{to}的小模型。",
    de: "Ein kleines Modell, das {from} in {to} übersetzt.",
  },
  language: { en: "Language", zh: "语言", de: "Sprache" },
  dark: { en: "Dark", zh: "深色", de: "Dunkel" },
  tour: { en: "Tour", zh: "导览", de: "Rundgang" },
  // the sentence
  sentence: { en: "A sentence", zh: "一个句子", de: "Ein Satz" },
  sentence_in: {
    en: "A sentence in {language}",
    zh: "一个{language}句子",
    de: "Ein Satz auf {language}",
  },
  translate: { en: "Translate", zh: "翻译", de: "Übersetzen" },
  examples_hint: {
    en: "The model knows only words like theirs.",
    zh: "模型只认识与例句相近的词。",
    de: "Das Modell kennt nur Wörter wie diese.",
  },
  examples: { en: "Examples", zh: "例句", de: "Beispiele" },
  choose: { en: "choose one …", zh: "请选择……", de: "auswählen …" },
  note_empty: {
    en: "There is nothing to translate yet. Type a sentence, or choose an example.",
    zh: "还没有可翻译的内容。请输入一个句子，或选择一个例句。",
    de: "Noch gibt es nichts zu übersetzen. Schreib einen Satz, oder wähle ein Beispiel.",
  },
  note_cut: {
    en: "The model reads {most} pieces at most. What comes after them is left out.",
    zh: "模型最多读 {most} 个子词，后面的部分被略去。",
    de: "Das Modell liest höchstens {most} Stücke. Was danach kommt, fällt weg.",
  },
  note_unknown: {
    en: "The model has never seen these characters and reads ‹unknown› for them: {characters}",
    zh: "模型从未见过这些字符，把它们读作 ‹未知›：{characters}",
    de: "Diese Zeichen hat das Modell nie gesehen und liest dafür ‹unbekannt›: {characters}",
  },
  note_unseen: {
    en: "No sentence that the model learned from has these words: {words}. It reads them in pieces that it has seldom seen together, and what it makes of them is guesswork.",
    zh: "模型学过的句子中没有这些词：{words}。它把它们读成很少同时见过的子词，译出的只是猜测。",
    de: "In keinem Satz, aus dem das Modell gelernt hat, kommt das vor: {words}. Es liest solche Wörter in Stücken, die es kaum je zusammen gesehen hat, und rät.",
  },
  start: { en: "start", zh: "开始", de: "Anfang" },
  end: { en: "end", zh: "结束", de: "Ende" },
  unknown: { en: "unknown", zh: "未知", de: "unbekannt" },
  // pieces
  source_pieces: { en: "What the model reads", zh: "模型读入的", de: "Was das Modell liest" },
  source_hint: {
    en: "It reads pieces of words. The stronger a piece’s colour, the more the selected “{piece}” depends on it.",
    zh: "它读的是子词，即词的组成部分。子词的颜色越浓，选中的“{piece}”就越依赖它。",
    de: "Es liest Teile von Wörtern. Je kräftiger die Farbe eines Stücks, desto mehr hängt das gewählte „{piece}“ von ihm ab.",
  },
  gradient_length: {
    en: "length of the gradient: {length}",
    zh: "梯度的长度：{length}",
    de: "Länge des Gradienten: {length}",
  },
  translation: { en: "What it writes", zh: "模型写出的", de: "Was es schreibt" },
  translation_hint: {
    en: "It writes one piece after the other. Select one: all below is about how it was chosen.",
    zh: "它一个子词接一个子词地写。选中一个：下面的一切都说明它是怎样被选出的。",
    de: "Es schreibt Stück für Stück. Wähle eines: alles Weitere zeigt, wie es zustande kam.",
  },
  forced_hint: {
    en: "You chose the dotted piece; the model went on from there.",
    zh: "带点线的子词是你选的，模型从那里继续。",
    de: "Das gepunktete Stück hast du gewählt; von da an schrieb das Modell weiter.",
  },
  undo: { en: "Undo", zh: "撤销", de: "Rückgängig" },
  piece_label: {
    en: "piece {number}: {piece}, {percent}",
    zh: "第 {number} 个子词：{piece}，{percent}",
    de: "Stück {number}: {piece}, {percent}",
  },
  // views
  views: { en: "What to look at", zh: "查看内容", de: "Was man sieht" },
  view_next: { en: "What comes next", zh: "下一个子词", de: "Was folgt" },
  view_attention: { en: "Where it looks", zh: "它关注哪里", de: "Wohin es schaut" },
  view_gradients: { en: "What it depends on", zh: "它依赖什么", de: "Wovon es abhängt" },
  next_text: {
    en: "After “{said}” the model gave every piece that it knows a probability. These ten had the highest.",
    zh: "在“{said}”之后，模型给它认识的每个子词一个概率。这十个最高。",
    de: "Nach „{said}“ gab das Modell jedem Stück, das es kennt, eine Wahrscheinlichkeit. Die zehn höchsten:",
  },
  next_others: {
    en: "All other pieces together: {percent}.",
    zh: "其余所有子词合计：{percent}。",
    de: "Alle anderen Stücke zusammen: {percent}.",
  },
  next_hint: {
    en: "Click another one, and the translation goes on from there.",
    zh: "点选另一个，翻译就从那里继续。",
    de: "Klick ein anderes an, und die Übersetzung geht von dort weiter.",
  },
  next_bars: {
    en: "So that small ones can be seen, a bar half as long is a piece a quarter as likely.",
    zh: "为了让小概率也看得见，长度减半表示概率为四分之一。",
    de: "Damit auch kleine zu sehen sind: Ein halb so langer Balken ist ein Viertel so wahrscheinlich.",
  },
  ceiling: {
    en: "Why a sure step shows about {most} and not 100 %: in training the right piece was to get {most} and each other one {share} (label smoothing, ε = {smoothing} spread over {count} pieces).",
    zh: "为什么有把握的一步显示约 {most} 而不是 100 %：训练时的目标是给正确的子词 {most}，给其余每个子词 {share}（标签平滑，ε = {smoothing} 分摊到 {count} 个子词）。",
    de: "Warum ein sicherer Schritt etwa {most} zeigt und nicht 100 %: Im Training sollte das richtige Stück {most} bekommen und jedes andere {share} (Label-Smoothing, ε = {smoothing}, verteilt auf {count} Stücke).",
  },
  candidate_label: {
    en: "{piece}, {percent}: go on with it",
    zh: "{piece}，{percent}：用它继续",
    de: "{piece}, {percent}: damit weitermachen",
  },
  // attention
  kind: { en: "Who looks where", zh: "谁关注谁", de: "Wer wohin schaut" },
  attention_encoder: { en: "Encoder", zh: "编码器", de: "Encoder" },
  attention_decoder: { en: "Decoder", zh: "解码器", de: "Decoder" },
  attention_cross: { en: "Cross", zh: "交叉", de: "Cross" },
  attention_encoder_text: {
    en: "Each source piece looks at all source pieces, and takes in some of what it finds.",
    zh: "源句的每个子词关注源句的所有子词，并从中汇集信息。",
    de: "Jedes Stück des Quellsatzes schaut auf alle seine Stücke und nimmt etwas davon auf.",
  },
  attention_decoder_text: {
    en: "To choose “{piece}”, the decoder looks back at what was written before it.",
    zh: "为了选出“{piece}”，解码器关注此前已写出的内容。",
    de: "Um „{piece}“ zu wählen, schaut der Decoder zurück auf das, was schon dasteht.",
  },
  attention_cross_text: {
    en: "To choose “{piece}”, the decoder looks at the source sentence.",
    zh: "为了选出“{piece}”，解码器关注源句。",
    de: "Um „{piece}“ zu wählen, schaut der Decoder auf den Quellsatz.",
  },
  layer: { en: "Layer {number}", zh: "第 {number} 层", de: "Schicht {number}" },
  layer_choice: { en: "Layer", zh: "层", de: "Schicht" },
  head: { en: "Head {number}", zh: "头 {number}", de: "Kopf {number}" },
  head_choice: { en: "Head", zh: "注意力头", de: "Kopf" },
  heads_text: {
    en: "Its {count} heads look in ways of their own. In the small pictures a row looks at columns: the stronger the colour, the more. Switch a head off, and all is worked out anew.",
    zh: "这里的 {count} 个注意力头各有各的关注方式。小图中，每一行的子词关注各列的子词：颜色越浓，关注越多。关闭一个头，一切都会重新计算。",
    de: "Jeder der {count} Köpfe schaut auf seine Weise. In den kleinen Bildern schaut eine Zeile auf Spalten: je kräftiger, desto mehr. Schalte einen Kopf aus, und alles wird neu berechnet.",
  },
  switches: { en: "Heads on or off", zh: "打开或关闭注意力头", de: "Köpfe an oder aus" },
  on: { en: "on", zh: "开", de: "an" },
  off: { en: "off", zh: "关", de: "aus" },
  drawn: { en: "How it is drawn", zh: "画法", de: "Wie es gezeichnet ist" },
  lines: { en: "Lines", zh: "连线", de: "Linien" },
  matrix: { en: "Matrix", zh: "矩阵", de: "Matrix" },
  lines_hint: {
    en: "On the left who looks, on the right where to. The weights of a piece add up to 1.",
    zh: "左边的子词关注右边的子词。每个子词的权重之和为 1。",
    de: "Links, wer schaut, rechts, wohin. Die Gewichte eines Stücks ergeben zusammen 1.",
  },
  matrix_hint: {
    en: "A row looks, a column is looked at. Each row adds up to 1.",
    zh: "每一行的子词关注各列的子词。每一行之和为 1。",
    de: "Eine Zeile schaut, eine Spalte wird angeschaut. Jede Zeile ergibt zusammen 1.",
  },
  looks: { en: "who looks", zh: "关注者", de: "wer schaut" },
  looked_at: { en: "what is looked at", zh: "被关注者", de: "was angeschaut wird" },
  weight: {
    en: "“{from}” looks at “{to}” with weight {weight}.",
    zh: "“{from}”关注“{to}”，权重 {weight}。",
    de: "„{from}“ schaut auf „{to}“ mit Gewicht {weight}.",
  },
  heads_off: { en: "Off: {heads}.", zh: "已关闭：{heads}。", de: "Aus: {heads}." },
  head_name: {
    en: "{side} layer {layer}, {kind}, head {head}",
    zh: "{side}第 {layer} 层，{kind}，头 {head}",
    de: "{side} Schicht {layer}, {kind}, Kopf {head}",
  },
  same_translation: {
    en: "The translation is the same as with all heads.",
    zh: "翻译与所有头都打开时相同。",
    de: "Die Übersetzung ist dieselbe wie mit allen Köpfen.",
  },
  other_translation: {
    en: "With all heads: “{before}” Now: “{after}”",
    zh: "所有头打开时：“{before}” 现在：“{after}”",
    de: "Mit allen Köpfen: „{before}“ Jetzt: „{after}“",
  },
  log_probability_change: {
    en: "Log-probability of “{piece}” here: {before} with all heads, {after} now; the difference is {difference}.",
    zh: "此处“{piece}”的对数概率：所有头打开时 {before}，现在 {after}，相差 {difference}。",
    de: "Log-Wahrscheinlichkeit von „{piece}“ hier: {before} mit allen Köpfen, {after} jetzt; Unterschied {difference}.",
  },
  all_on: { en: "All heads on", zh: "打开所有头", de: "Alle Köpfe an" },
  // gradients
  gradients_text: {
    en: "The log-probability of “{piece}” is {log}, or {percent}. Change the vector of a piece a little: how fast can that number change? That is the length of the gradient.",
    zh: "“{piece}”的对数概率是 {log}，即 {percent}。把某个子词的向量稍微改一点，这个数最快能变多少？这就是梯度的长度。",
    de: "Die Log-Wahrscheinlichkeit von „{piece}“ ist {log}, das sind {percent}. Ändert man den Vektor eines Stücks ein wenig: wie schnell kann sich diese Zahl ändern? Das sagt die Länge des Gradienten.",
  },
  on_source: { en: "On the source", zh: "源句", de: "Von der Quelle" },
  on_target: {
    en: "On what was written before",
    zh: "此前已写出的内容",
    de: "Von dem, was schon dasteht",
  },
  honest: {
    en: "A long gradient says: a small change here would matter. It does not say that the piece made the word likelier, nor what would happen without it.",
    zh: "梯度的长度大，表示这里的微小改动会有影响。它并不表示这个子词使该词更可能，也不表示没有它会怎样。",
    de: "Ein langer Gradient sagt: Eine kleine Änderung hier würde viel ausmachen. Er sagt nicht, dass das Stück das Wort wahrscheinlicher gemacht hat, und nicht, was ohne es geschähe.",
  },
  flow: { en: "The way back", zh: "梯度的回传", de: "Der Weg zurück" },
  flow_text: {
    en: "The gradient of “{piece}” goes back through the model, block by block. At each block it takes two ways: past the block, along the residual connection, and through it. The diagram draws both as wide as they are long. (From decoder to encoder the widths have a scale of their own.)",
    zh: "“{piece}”的梯度逐块回传，穿过整个模型。在每一块，它走两条路：沿残差连接绕过，以及从中穿过。图中线条的宽度就是两者的长度。（从解码器到编码器的线条另有比例。）",
    de: "Der Gradient von „{piece}“ geht Block für Block durch das Modell zurück. An jedem Block nimmt er zwei Wege: über die Residualverbindung daran vorbei, und hindurch. Die Zeichnung zeigt ihre Längen als Breiten. (Vom Decoder zum Encoder in einem eigenen Maßstab.)",
  },
  past: { en: "past the block", zh: "绕过", de: "vorbei" },
  through: { en: "through it", zh: "穿过", de: "hindurch" },
  flow_label: {
    en: "past {residual}, through {sublayer}",
    zh: "绕过 {residual}，穿过 {sublayer}",
    de: "vorbei {residual}, hindurch {sublayer}",
  },
  flow_sentence: {
    en: "In {past} of {blocks} blocks the way past is the stronger one. The largest share goes through: {most}. (The two add up as vectors, not as lengths.)",
    zh: "{blocks} 块中有 {past} 块绕过的路更强。穿过的份额最大的是：{most}。（两者按向量相加，而不是按长度。）",
    de: "In {past} von {blocks} Blöcken ist der Weg vorbei der stärkere. Der größte Anteil geht hindurch bei: {most}. (Beide addieren sich als Vektoren, nicht als Längen.)",
  },
  // the architecture
  architecture: { en: "The architecture", zh: "架构", de: "Die Architektur" },
  architecture_hint: {
    en: "Open any box to see its numbers and their gradient.",
    zh: "点开任何方框，查看其中的数和它们的梯度。",
    de: "Öffne einen Kasten, um seine Zahlen und ihren Gradienten zu sehen.",
  },
  source: { en: "Source", zh: "源句", de: "Quelle" },
  target: { en: "Target", zh: "目标句", de: "Ziel" },
  said_so_far: { en: "Written so far", zh: "已写出的", de: "Was schon dasteht" },
  piece_number: { en: "Piece {number}", zh: "第 {number} 个子词", de: "Stück {number}" },
  encoder: { en: "encoder", zh: "编码器", de: "Encoder" },
  decoder: { en: "decoder", zh: "解码器", de: "Decoder" },
  layer_of: {
    en: "{side} layer {number}",
    zh: "{side}第 {number} 层",
    de: "{side} Schicht {number}",
  },
  box_embedding: { en: "Embedding", zh: "词嵌入", de: "Einbettung" },
  box_positions: { en: "+ positions", zh: "+ 位置编码", de: "+ Positionen" },
  box_norm: { en: "layer norm", zh: "层归一化", de: "LayerNorm" },
  box_self: { en: "Self-attention", zh: "自注意力", de: "Self-Attention" },
  box_cross: { en: "Cross-attention", zh: "交叉注意力", de: "Cross-Attention" },
  box_feed_forward: { en: "Feed-forward", zh: "前馈网络", de: "Feed-Forward" },
  box_linear: { en: "Linear", zh: "线性层", de: "Linear" },
  box_softmax: { en: "Softmax", zh: "Softmax", de: "Softmax" },
  embedding: { en: "embedding", zh: "词嵌入", de: "Einbettung" },
  positions: { en: "with positions", zh: "加上位置编码", de: "mit Positionen" },
  norm: { en: "layer norm", zh: "层归一化", de: "LayerNorm" },
  self: { en: "self-attention", zh: "自注意力", de: "Self-Attention" },
  cross: { en: "cross-attention", zh: "交叉注意力", de: "Cross-Attention" },
  feed_forward: { en: "feed-forward", zh: "前馈网络", de: "Feed-Forward" },
  residual: { en: "residual sum", zh: "残差相加", de: "Residualsumme" },
  logits: { en: "logits", zh: "logits", de: "Logits" },
  probabilities: { en: "probabilities", zh: "概率", de: "Wahrscheinlichkeiten" },
  query: { en: "query", zh: "查询", de: "Query" },
  key: { en: "key", zh: "键", de: "Key" },
  value: { en: "value", zh: "值", de: "Value" },
  scores: { en: "scores", zh: "分数", de: "Scores" },
  weights: { en: "weights", zh: "权重", de: "Gewichte" },
  heads: { en: "heads", zh: "头", de: "Köpfe" },
  inner: { en: "inner", zh: "内层", de: "innen" },
  relu: { en: "ReLU", zh: "ReLU", de: "ReLU" },
  // a box
  close: { en: "Close", zh: "关闭", de: "Schließen" },
  inside: {
    en: "Inside, in the order of computation",
    zh: "内部，按计算顺序",
    de: "Darin, in der Reihenfolge des Rechnens",
  },
  output: { en: "output", zh: "输出", de: "Ausgabe" },
  shape: { en: "Shape", zh: "形状", de: "Form" },
  letter_S: { en: "source pieces", zh: "源子词", de: "Stücke der Quelle" },
  letter_T: { en: "target pieces", zh: "目标子词", de: "Stücke des Ziels" },
  letter_D: { en: "numbers a piece", zh: "每个子词的维数", de: "Zahlen je Stück" },
  letter_H: { en: "heads", zh: "头", de: "Köpfe" },
  letter_K: { en: "numbers a head", zh: "每个头的维数", de: "Zahlen je Kopf" },
  letter_F: { en: "inner numbers", zh: "内层维数", de: "innere Zahlen" },
  letter_V: { en: "pieces of the vocabulary", zh: "词表中的子词", de: "Stücke des Vokabulars" },
  computed_by: { en: "Computed by", zh: "计算函数", de: "Berechnet von" },
  derived_in: { en: "Derived in", zh: "推导见", de: "Hergeleitet in" },
  lesson: { en: "lesson {number}", zh: "第 {number} 课", de: "Lektion {number}" },
  numbers: { en: "The numbers", zh: "数值", de: "Die Zahlen" },
  rows_source: {
    en: "A row for each piece of the source.",
    zh: "每个源子词一行。",
    de: "Eine Zeile für jedes Stück der Quelle.",
  },
  rows_target: {
    en: "A row for each step: the piece written last → the piece that the step chose.",
    zh: "每一步一行：刚写下的子词 → 这一步选出的子词。",
    de: "Eine Zeile für jeden Schritt: das zuletzt geschriebene Stück → das Stück, das er wählte.",
  },
  gradient_of: {
    en: "Gradient of the log-probability of “{piece}” with respect to them",
    zh: "“{piece}”的对数概率对它们的梯度",
    de: "Gradient der Log-Wahrscheinlichkeit von „{piece}“ nach ihnen",
  },
  no_gradient: {
    en: "The gradient begins one box below, at the logits.",
    zh: "梯度从下面一个方框（logits）开始。",
    de: "Der Gradient beginnt einen Kasten tiefer, bei den Logits.",
  },
  range: {
    en: "From {least} to {most}.",
    zh: "从 {least} 到 {most}。",
    de: "Von {least} bis {most}.",
  },
  arrow_keys: {
    en: "Arrow keys read the numbers.",
    zh: "用方向键读数。",
    de: "Pfeiltasten lesen die Zahlen.",
  },
  number_at: {
    en: "{row} · {column}: {number}",
    zh: "{row} · {column}：{number}",
    de: "{row} · {column}: {number}",
  },
  column: { en: "number {number}", zh: "第 {number} 个数", de: "Zahl {number}" },
  show_code: {
    en: "Show the two functions",
    zh: "显示这两个函数",
    de: "Die zwei Funktionen zeigen",
  },
  show_own: {
    en: "What {file} has for it, in Python",
    zh: "{file} 中为它写的 Python 函数",
    de: "Was {file} dafür hat, in Python",
  },
  // the foot of the page
  made_by: {
    en: "Made by minitransformer {version}.",
    zh: "由 minitransformer {version} 制作。",
    de: "Gemacht von minitransformer {version}.",
  },
  model_size: {
    en: "The model has {parameters} parameters: {layers} layers, {heads} heads, vectors of {width} numbers, {pieces} pieces.",
    zh: "模型有 {parameters} 个参数：{layers} 层，{heads} 个头，向量长 {width}，{pieces} 个子词。",
    de: "Das Modell hat {parameters} Parameter: {layers} Schichten, {heads} Köpfe, Vektoren aus {width} Zahlen, {pieces} Stücke.",
  },
  trained_on: {
    en: "It was trained on {corpus}.",
    zh: "它是用{corpus}训练的。",
    de: "Trainiert wurde es mit {corpus}.",
  },
  corpus_toy: {
    en: "the toy corpus of the package",
    zh: "软件包自带的玩具语料",
    de: "dem Spielkorpus des Pakets",
  },
  corpus_multi30k: {
    en: "Multi30k",
    zh: " Multi30k ",
    de: "Multi30k",
  },
  corpus_files: {
    en: "texts of its maker’s",
    zh: "制作者自己的文本",
    de: "eigenen Texten dessen, der es gemacht hat",
  },
  make_yours: {
    en: "A page like this of a model of your own:",
    zh: "为你自己的模型做一个这样的页面：",
    de: "So eine Seite von einem eigenen Modell:",
  },
  own_functions: {
    en: "The boxes show functions of a learner’s, {count} of {file}. The page computes with the package’s.",
    zh: "方框里显示学习者自己写的函数，即 {file} 中的 {count} 个。本页用软件包的函数计算。",
    de: "In den Kästen stehen Funktionen eines Lernenden, {count} aus {file}. Die Seite rechnet mit denen des Pakets.",
  },
  own_differ: {
    en: "Of {compared} sentences the learner’s translated {differ} otherwise.",
    zh: "{compared} 个句子中，有 {differ} 个用学习者的函数译得不同。",
    de: "Von {compared} Sätzen übersetzten die des Lernenden {differ} anders.",
  },
  certificate: { en: "The certificate", zh: "证书", de: "Die Urkunde" },
  about_embedding: {
    en: "Each piece is looked up in a table and becomes a list of numbers, its vector.",
    zh: "每个子词在一张表中查到一列数，即它的向量。",
    de: "Jedes Stück wird in einer Tabelle nachgeschlagen und zu einer Liste von Zahlen, seinem Vektor.",
  },
  about_positional_encoding: {
    en: "Waves of different lengths are added, so that the model can tell first from last.",
    zh: "加上不同波长的波，模型才能分清先后。",
    de: "Wellen verschiedener Länge kommen hinzu, damit das Modell Erstes von Letztem unterscheidet.",
  },
  about_layer_norm: {
    en: "Each row is brought to mean 0 and standard deviation 1, then scaled and shifted by learned numbers.",
    zh: "每一行化为均值 0、标准差 1，再用学到的数缩放和平移。",
    de: "Jede Zeile bekommt Mittelwert 0 und Standardabweichung 1, dann gelernte Faktoren und Verschiebungen.",
  },
  about_multi_head_attention: {
    en: "Each piece asks a question (query), compares it with keys, and collects values: in several heads at once.",
    zh: "每个子词提出一个问题（查询），与各个键比较，再收集值：几个头同时进行。",
    de: "Jedes Stück stellt eine Frage (Query), vergleicht sie mit Keys und sammelt Values: in mehreren Köpfen zugleich.",
  },
  about_feed_forward: {
    en: "Each row by itself goes through two linear maps; between them all that is negative becomes 0.",
    zh: "每一行各自经过两次线性变换，中间把负数变成 0。",
    de: "Jede Zeile geht für sich durch zwei lineare Abbildungen; dazwischen wird Negatives zu 0.",
  },
  about_residual: {
    en: "What the block has found is added to what went into it. Backward, the sum hands the gradient to both.",
    zh: "把这一块的结果加到它的输入上。反向时，加法把梯度原样传给两边。",
    de: "Was der Block gefunden hat, kommt zu dem hinzu, was hineinging. Rückwärts gibt die Summe beiden den Gradienten.",
  },
  about_linear: {
    en: "Each row is compared with the vector of every piece in the vocabulary: a score for each.",
    zh: "每一行与词表中每个子词的向量比较，各得一个分数。",
    de: "Jede Zeile wird mit dem Vektor jedes Stücks im Vokabular verglichen: ein Score für jedes.",
  },
  about_softmax: {
    en: "Scores become probabilities: positive, and together 1.",
    zh: "分数变成概率：都为正，总和为 1。",
    de: "Aus Scores werden Wahrscheinlichkeiten: positiv, und zusammen 1.",
  },
  // the tour
  next: { en: "Next", zh: "下一步", de: "Weiter" },
  back: { en: "Back", zh: "上一步", de: "Zurück" },
  skip: { en: "Skip the tour", zh: "跳过导览", de: "Rundgang beenden" },
  done: { en: "Done", zh: "完成", de: "Fertig" },
  tour_1: {
    en: "Welcome! Here you give the model a sentence. It was trained on sentences like the examples, so keep to their words.",
    zh: "欢迎！在这里给模型一个句子。它是用像例句这样的句子训练的，请用其中的词。",
    de: "Willkommen! Hier bekommt das Modell einen Satz. Es hat Sätze wie die Beispiele gelernt: bleib bei ihren Wörtern.",
  },
  tour_2: {
    en: "It writes the translation piece by piece. Select a piece: the rest of the page explains that one choice.",
    zh: "它逐个子词写出翻译。选中一个子词，页面的其余部分就解释这一次选择。",
    de: "Es schreibt die Übersetzung Stück für Stück. Wähle ein Stück: Der Rest der Seite erklärt diese eine Wahl.",
  },
  tour_3: {
    en: "These were the likeliest pieces. Click another one to see how the translation would have gone on.",
    zh: "这些是最可能的子词。点选另一个，看看翻译会怎样继续。",
    de: "Das waren die wahrscheinlichsten Stücke. Klick ein anderes an und sieh, wie es weitergegangen wäre.",
  },
  tour_4: {
    en: "Each attention head looks somewhere. Switch one off, and everything is worked out anew.",
    zh: "每个注意力头关注不同的地方。关闭一个，一切都会重新计算。",
    de: "Jeder Attention-Kopf schaut irgendwohin. Schalte einen aus, und alles wird neu berechnet.",
  },
  tour_5: {
    en: "And backward: which pieces the choice depends on, by their gradients, and how the gradient flows back.",
    zh: "再看反向：通过梯度看这次选择依赖哪些子词，以及梯度怎样流回去。",
    de: "Und rückwärts: von welchen Stücken die Wahl abhängt, gemessen an Gradienten, und wie sie zurückfließen.",
  },
  tour_6: {
    en: "This is the model itself. Open any box: its numbers, their gradient, and the code of both.",
    zh: "这就是模型本身。点开任何方框：其中的数、它们的梯度，以及两者的代码。",
    de: "Das ist das Modell selbst. Öffne einen Kasten: seine Zahlen, ihr Gradient und der Code für beides.",
  },
};
