"""A conversation is one text, and what was said before stays in it."""

import gguf_file
import numpy as np
import pytest

from minitransformer.core.errors import InputError
from minitransformer.data.text.characters import CharacterVocabulary
from minitransformer.data.text.tokenizer import TokenizerVocabulary
from minitransformer.data.text.vocabulary import REPLACEMENT
from minitransformer.inference.conversation import Conversation, has_turns

MODEL = gguf_file.small_model(max_length=512)
VOCABULARY = TokenizerVocabulary.of_bytes(
    gguf_file.PIECES, gguf_file.MERGES, range(3), begins=[0], ends=[0, 2]
)
END_OF_TEXT, START, END = range(3)


def greedy(ids, length):
    """What the model says after these ids, worked out anew for each token."""
    said = []
    while len(said) < length:
        logits = MODEL.forward(np.array([[*ids, *said]]))[0][0, -1]
        logits[START] = -np.inf
        token = int(logits.argmax())
        if token in (END, END_OF_TEXT):
            break
        said.append(token)
    return said


def shown(ids):
    """The text of ids, but for a character at its end of which there are some bytes."""
    return VOCABULARY.decode(ids).rstrip(REPLACEMENT)


def turn(who, text):
    return [START, *VOCABULARY.encode(f"{who}\n{text}"), END, *VOCABULARY.encode("\n")]


@pytest.mark.parametrize("system", ["", "be brief"])
def test_each_answer_is_that_to_all_that_was_said_before(system):
    conversation = Conversation(MODEL, VOCABULARY, system=system)
    ids = turn("system", system) if system else []
    for said, length in (("ab", 6), ("a b<|im_end|>", 9), ("", 4)):
        ids += [*turn("user", said), START, *VOCABULARY.encode("assistant\n")]
        answer = greedy(ids, length)
        assert "".join(conversation.reply(said, length)) == shown(answer)
        ids += [*answer, END, *VOCABULARY.encode("\n")]


def test_an_answer_ends_where_the_model_ends_it(monkeypatch):
    conversation, script = Conversation(MODEL, VOCABULARY), [*VOCABULARY.encode("ab c"), END]
    read = []

    def step(ids):
        read.append(list(ids))
        return np.eye(len(VOCABULARY))[script.pop(0)]

    monkeypatch.setattr(conversation._decoder, "step", step)
    assert "".join(conversation.reply("a")) == "ab c"
    script += [END]
    assert "".join(conversation.reply("b")) == ""
    assert read[-1][:2] == [END, *VOCABULARY.encode("\n")]  # which it had not read


def test_a_character_of_four_bytes_after_another_is_shown_whole(monkeypatch):
    conversation, script = Conversation(MODEL, VOCABULARY), [*VOCABULARY.encode("a😀b"), END]
    monkeypatch.setattr(
        conversation._decoder, "step", lambda ids: np.eye(len(VOCABULARY))[script.pop(0)]
    )
    assert list(conversation.reply("a")) == ["a", "😀", "b"]


def test_an_answer_that_nobody_listens_to_till_its_end_is_a_turn_all_the_same():
    conversation = Conversation(MODEL, VOCABULARY)
    begun = [*turn("user", "ab"), START, *VOCABULARY.encode("assistant\n")]
    answer = greedy(begun, 9)
    reply = conversation.reply("ab", 9)
    heard = next(reply)
    reply.close()
    said = next(n for n in range(1, 10) if shown(answer[:n]) == heard)
    ids = [*begun, *answer[:said], END, *VOCABULARY.encode("\n"), *turn("user", "c")]
    ids += [START, *VOCABULARY.encode("assistant\n")]
    assert "".join(conversation.reply("c", 5)) == shown(greedy(ids, 5))


def test_with_a_temperature_the_seed_decides_what_is_answered():
    def answer(seed):
        conversation = Conversation(MODEL, VOCABULARY)
        return "".join(conversation.reply("ab", 9, temperature=1.0, seed=seed))

    assert answer(0) == answer(0)
    assert len({answer(seed) for seed in range(5)}) == 5


def test_a_vocabulary_whose_texts_do_not_end_with_a_turn_is_of_no_conversation():
    pieces, special = gguf_file.PIECES, range(3)
    one = TokenizerVocabulary.of_bytes(pieces, gguf_file.MERGES, special, begins=[0], ends=[0])
    assert not has_turns(one)
    assert has_turns(VOCABULARY)


def test_a_length_of_0_says_nothing_and_forgets_nothing():
    conversation = Conversation(MODEL, VOCABULARY)
    assert list(conversation.reply("ab", 0)) == []
    begun = [*turn("user", "ab"), START, *VOCABULARY.encode("assistant\n"), END]
    ids = [*begun, *VOCABULARY.encode("\n"), *turn("user", "c")]
    ids += [START, *VOCABULARY.encode("assistant\n")]
    assert "".join(conversation.reply("c", 5)) == shown(greedy(ids, 5))


def test_a_vocabulary_without_the_marks_of_turns_is_refused_with_what_works():
    with pytest.raises(InputError, match=r"has no <\|im_start\|> and .* generate goes on"):
        Conversation(MODEL, CharacterVocabulary("ab"))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (dict(length=-1), "length=-1"),
        (dict(temperature=-1), "temperature"),
        (dict(top_p=0), "top_p"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_said(how, words):
    with pytest.raises(InputError, match=words):
        Conversation(MODEL, VOCABULARY).reply("a", **how)
