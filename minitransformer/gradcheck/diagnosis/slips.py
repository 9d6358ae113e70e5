"""What may go wrong at an operation of forward, each as a forward that has other slopes there.

:func:`slips` lists them, those that say most first. A new one is a generator of Slips among those
below it: which operations, and what is said; how forward is then changed is in ``changes``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from minitransformer.gradcheck.diagnosis.changes import bridged, change, held, result_held
from minitransformer.gradcheck.diagnosis.factors import times_too
from minitransformer.gradcheck.diagnosis.uses import LINEAR, Use, like, whole, wholes
from minitransformer.gradcheck.diagnosis.watched import positions

FACTORS = {0: "is missing", -1: "has the wrong sign", 2: "counts twice", 0.5: "counts half"}
TWO_FACTORS = {"multiply": "the factor", "divide": "the division by", "matmul": "the product with"}
WHERE = "where z goes in and h comes out"
DERIVATIVES = {  # which stand where another should
    "1 − h²": lambda z, h: 1 - h * h,
    "h (1 − h)": lambda z, h: h * (1 - h),
    "1 − h": lambda z, h: 1 - h,
    "h": lambda z, h: h,
    "z": lambda z, h: z,
    "1 − z²": lambda z, h: 1 - z * z,
    "z (1 − z)": lambda z, h: z * (1 - z),
    "tanh′ at h": lambda z, h: 1 - np.tanh(h) ** 2,
    "σ′ at h": lambda z, h: np.exp(-h) / (1 + np.exp(-h)) ** 2,
    "1 where z > 0": lambda z, h: (z > 0) * 1.0,
}


@dataclass(frozen=True)
class Slip:
    """A forward with other slopes at one place, and in words what backward does there.

    Attributes:
        change: of the operations, as ``changes.change`` returns it.
        words: what is said of it, or the path that it is about, which is then said to be wrong.
        scaled: whether what the change takes away may also be there with a factor.
    """

    change: Callable
    words: str
    scaled: bool = False

    def said(self, factor):
        if not self.scaled:
            return self.words
        return f"{self.words} {FACTORS.get(factor) or f'is {times_too(factor, digits=5)}'}"


def slips(made, moving):
    """Yield the Slips worth a try, those that say most first.

    Args:
        made: the operations of forward.
        moving: by the number of an operation the positions of the operands that move.
    """
    places, uses = {}, {}
    for number, where in moving.items():
        places.setdefault(made[number].place, []).append(number)
        for position in sorted(where):
            uses.setdefault((made[number].place, position), []).append(number)
    uses = [Use(position, numbers, made) for (_, position), numbers in uses.items()]
    for use in uses:
        if not use.squared:
            yield Slip(use.held(use.numbers), use.path, scaled=True)
    for place, numbers in places.items():
        if any(len(moving[number]) > 1 for number in numbers):
            yield Slip(result_held(numbers), f"the path through {place}", scaled=True)
    for use in uses:
        yield from _of_a_factor(use)
        yield from _of_a_power(use)
        yield from _of_the_largest(use)
        for factor in (-1, 2, 0.5) if use.carried else (-1,) if len(use.numbers) > 1 else ():
            yield Slip(_times(use, factor), f"{use.path} {FACTORS[factor]}")
    expressions = list(wholes(made, moving))
    for ends in expressions:
        words = f"the derivative of {whole(ends, made)} is left out"
        yield Slip(bridged(ends, lambda z, h: 1.0), words)
    for place, numbers in places.items():
        for use in uses:
            if use.first.place == place:
                yield from _at_some_times(use.path, use.numbers, use.held, use.carried)
        if any(len(moving[number]) > 1 for number in numbers):
            yield from _at_some_times(f"the path through {place}", numbers, result_held)
    yield from _of_an_input_in_a_loop(uses)
    yield from _overwritten(uses)
    yield from _statistics(places, made)
    yield from _but_for_one_way(places, made, moving)
    every = {}
    for number, one in enumerate(made):
        every.setdefault(one.place, []).append(number)
    for use in uses:
        yield from _another_factor(use, every)
        yield from _another_argument(use, every)
    for ends in expressions:
        for derivative, formula in DERIVATIVES.items():
            words = f"the derivative of {whole(ends, made)} is taken to be {derivative}, {WHERE}"
            yield Slip(bridged(ends, formula), words)


def _of_a_factor(use):
    """The other factor forgotten, twice, upside down, or transposed; or a condition forgotten."""
    first, name = use.first, use.first.place.name
    sizes = np.shape(use.factor(first))[-2:] if name in ("matmul", "einsum") else ()
    if len(sizes) == 2 and sizes[0] == sizes[1]:
        factor = first.part(use.other) or "the other factor"
        words = f"on {use.path} {factor} has to be transposed, or must not be"
        yield Slip(_with(use, lambda now: use.factor(now.first).swapaxes(-1, -2)), words)
    if name == "matmul" and np.ndim(use.factor(first)) > 1:
        words = f"on {use.path} it is multiplied entry by entry: * where @ belongs"
        yield Slip(use.moved(lambda now, move: move * use.factor(now.first)), words)
        yield Slip(
            use.moved(lambda now, move: move * use.factor(now.first).swapaxes(-1, -2)), words
        )
    same_shape = first.operand(use.position).shape == np.shape(first.result)
    broadcast = name in ("multiply", "divide")
    if not (same_shape or broadcast) or len(first.operands) < 2 or name in LINEAR:
        return
    if name not in TWO_FACTORS:
        words = f"the derivative of {first.place} is left out"
        if name in ("maximum", "minimum", "where", "clip"):
            words = f"on {use.path} the condition, a mask, is forgotten"
        yield Slip(use.sloped(lambda z, h: 1.0), words)
        return
    factor = f"{TWO_FACTORS[name]} {first.part(use.other)}".rstrip()
    words = f"on {use.path} {factor} is forgotten"
    yield Slip(use.sloped(lambda z, h: 1.0), words)
    if name != "matmul":
        yield Slip(use.sloped(lambda z, h: (h / z) ** 2), f"on {use.path} {factor} comes twice")
        words = f"on {use.path} {factor} is upside down: it multiplies where it has to divide, or "
        words += "divides where it has to multiply"
        yield Slip(use.sloped(lambda z, h: z / h), words)


def _of_a_power(use):
    """``**`` differentiated as if it were something simpler."""
    first = use.first
    if first.place.name != "power":
        return
    slopes = {"the logarithm of its base": lambda z, e: z**e}
    if use.position == (0,):
        slopes = {
            "the exponent as a factor": lambda z, e: z ** (e - 1),
            "the exponent lowered by 1": lambda z, e: e * z**e,
        }
    for lacking, slope in slopes.items():
        changed = use.moved(lambda now, move, slope=slope: move * slope(*now.first.operands))
        yield Slip(changed, f"the derivative of {first.place} lacks {lacking}")


def _of_the_largest(use):
    """What belongs to the largest entry goes to all of them."""
    if use.first.place.name in ("max", "amax", "min", "amin"):
        for function, words in (
            (np.sum, "it all, not the chosen one alone"),
            (np.mean, "its share, and should go to the chosen one"),
        ):

            def by(now, move, function=function):
                return replace(now.first, function=function).of({use.position: move})

            yield Slip(use.moved(by), f"through {use.first.place} every entry gets {words}")


def _with(use, array):
    """An operand moves the result as if the other factor were ``array(now)``."""
    return use.moved(lambda now, move: now.first.of({use.position: move, use.other: array(now)}))


def _times(use, factor):
    """An operand moves the result so many times as much, at every step of a loop anew."""
    return use.moved(lambda now, move: factor * (now.result - now.rest(use.position)))


def _at_some_times(path, numbers, hold, carried=False):
    """Of what is done again and again only the first or the last times, or all but these."""
    count = len(numbers)
    for kept, which in ((numbers[:1], "first"), (numbers[-1:], "last")) if count > 1 else ():
        words = f"{path} is there at the {which} of {count} times only"
        words += "" if carried else ": are the others left out, or overwritten, = for +=?"
        yield Slip(hold([number for number in numbers if number not in kept]), words)
    for k in range(1, count):
        for gone, which in ((numbers[:k], "first"), (numbers[k:], "last")):
            times = f"the {which} {len(gone)}" if len(gone) > 1 else f"the {which}"
            yield Slip(hold(gone), f"{path} is missing at {times} of {count} times")


def _of_an_input_in_a_loop(uses):
    """All uses of an input that a loop makes, but for the first or the last time, or these."""
    uses = [use for use in uses if len(use.numbers) > 1 and use.position in use.first.inputs]
    for which, ordinal in ((slice(1), "first"), (slice(-1, None), "last")) if len(uses) > 1 else ():
        every = {(number, use.position) for use in uses for number in use.numbers}
        some = {(number, use.position) for use in uses for number in use.numbers[which]}
        words = f"of its uses, step by step, only the {ordinal} is there: is it overwritten where "
        yield Slip(held(every - some), words + "it has to be added to, with +=?")
        yield Slip(held(some), f"of its uses, step by step, the {ordinal} step is missing")


def _overwritten(uses):
    """Where entries of an input are taken more than once, only the last or the first counts."""
    taken = {}
    for use in uses:
        if use.first.place.name == "getitem" and (0,) in use.first.inputs:
            for key in (use.first.place, use.first.keys[0,]):  # alone, and with all of that input
                taken.setdefault(key, []).append(use)
    for together in taken.values():
        made, numbers = together[0].made, sorted(n for use in together for n in use.numbers)
        if not all(np.ndim(made[number].result) for number in numbers):
            continue
        places = " and ".join(str(use.first.place) for use in together)
        words = f"through {places} entries come more than once, and only one of them "
        words += "counts: is it overwritten where it has to be added to, with += or np.add.at?"
        for order in (-1, 1):
            if not all(kept.all() for kept in _kept_once(numbers, order, made).values()):

                def by(now, order=order, numbers=numbers):
                    kept = _kept_once(numbers, order, now.made)[now.number]
                    return np.where(kept, now.result, now.first.result)

                yield Slip(change(numbers, by), words)


def _kept_once(numbers, order, made):
    """By the number of an operation which entries of its result come first, or last, of all."""
    taken = [made[number].inputs[0,][made[number].operands[1]] for number in numbers]
    entries = np.concatenate([window.ravel() for window in taken])[::order]
    kept = np.zeros(len(entries), bool)
    kept[np.unique(entries, return_index=True)[1]] = True
    parts = np.split(kept[::order], np.cumsum([window.size for window in taken])[:-1])
    shaped = [part.reshape(window.shape) for part, window in zip(parts, taken, strict=True)]
    return dict(zip(numbers, shaped, strict=True))


REDUCING = ("mean", "sum", "std", "var", "max", "min", "amax", "amin", "norm", "prod", "add.reduce")


def _statistics(places, made):
    """All means, sums and the like taken for constants: in one function, or in all."""
    found = [place for place in places if place.name in REDUCING]
    groups = {place.calls[:-1]: [] for place in found} if found else {}
    for place in found:
        groups[place.calls[:-1]].append(place)
    for group in [*groups.values(), *([found] if len(groups) > 1 else [])]:
        if len(group) > 1:
            words = f"{' and '.join(map(str, group))} are taken for constants: the paths through "
            words += "them are missing"
            yield Slip(result_held([n for place in group for n in places[place]]), words)


def _but_for_one_way(places, made, moving):
    """A value that goes on to several operations, and all but one of these ways are left out."""
    ways = {place: {} for place in places}
    for number, where in moving.items():
        for position in where:
            if (parent := made[number].made_by.get(position)) in moving:
                to = ways[made[parent].place]
                to.setdefault(made[number].place, set()).add((number, position))
    for place, to in ways.items():
        for kept in to if len(to) > 2 else ():
            rest = set().union(*(ends for other, ends in to.items() if other != kept))
            words = f"of what goes on from {place} only what {kept} makes of it is there: the "
            words += "other ways that it takes, as from step to step, are missing"
            yield Slip(held(rest), words)


def _another_factor(use, places):
    """One factor of a product is taken for another array of the same shape."""
    first = use.first
    if first.place.name in ("multiply", "matmul", "einsum"):
        factor = use.factor(first)
        for part, array in like(factor, use, places):
            words = f"on {use.path} stands {part} in place of "
            yield Slip(_with(use, array), words + (first.part(use.other) or "the other factor"))


def _another_argument(use, places):
    """tanh′ and the like at another array than tanh."""
    first = use.first
    of_one = isinstance(first.function, np.ufunc) and len(list(positions(first.operands))) == 1
    if not of_one or first.place.name in ("multiply", *LINEAR):
        return
    for part, array in like(first.operand(use.position), use, places):

        def by(now, move, array=array):
            there = array(now)
            near, far = (now.first.of({use.position: z}) for z in (there, there + move))
            return far - near

        yield Slip(use.moved(by), f"the derivative of {first.place} is taken at {part}")
