"""What may go wrong at an operation of forward, each as a forward that has other slopes there.

A slip is told by a ``change``: from the operations as they were made first, what a Watch is to make
of them now. Values stay what they are, for nothing moves but by a small step; slopes are others.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from minitransformer.gradcheck.diagnosis.watched import positions, put

LONGEST = 12  # operations of an expression whose derivative may be left out as a whole
FACTORS = {0: "is missing", -1: "has the wrong sign", 2: "counts twice", 0.5: "counts half"}
TWO_FACTORS = {
    "multiply": "the factor",
    "divide": "the division by",
    "matmul": "the product with",
}
LINEAR = ("add", "subtract", "negative")
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
        change: from the operations as they were made first, ``change(number, operands, options,
            result)``, which is another result of that operation, or None for the same.
        words: what is said of it; ``{}`` in it is what is wrong, where that is a factor.
    """

    change: Callable
    words: str

    @property
    def scaled(self):
        """Whether what the change takes away may also be there with a factor."""
        return "{}" in self.words

    def said(self, factor):
        if factor in FACTORS:
            return self.words.format(FACTORS[factor])
        times = max(abs(factor), 1 / abs(factor))
        sign = " and of the wrong sign" if factor < 0 else ""
        size = f"is {times:.5g} times too {'large' if abs(factor) > 1 else 'small'}{sign}"
        return self.words.format(size)


@dataclass(frozen=True)
class Use:
    """One operand of what is made at one place, and the numbers of the operations it moves in."""

    position: tuple
    numbers: list
    made: list

    @property
    def first(self):
        return self.made[self.numbers[0]]

    @property
    def other(self):
        """The position of the other factor, where there are two; einsum's come after a text."""
        total = 3 if self.first.place.name == "einsum" else 1
        return (total - self.position[0],)

    @property
    def path(self):
        """The words for what comes by this way."""
        part = self.first.part(self.position)
        several = len(self.first.operands) > 1 or len(self.position) > 1
        through = f"{part} in {self.first.place}" if part and several else str(self.first.place)
        what = "what is carried from step to step" if self.carried else "the path"
        return f"{what} through {through}"

    @property
    def carried(self):
        """Whether it was made in an earlier turn of a loop, and so first after its use."""
        parent = self.made[self.numbers[-1]].made_by.get(self.position)
        if parent is None or len(self.numbers) < 2:
            return False
        return _first_time(self.made[parent].place, self.made) > _first_time(
            self.first.place, self.made
        )


def _first_time(place, made):
    return next(number for number, one in enumerate(made) if one.place == place)


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
        yield Slip(_held(use.position, use.numbers), use.path + " {}")
    for place, numbers in places.items():
        if any(len(moving[number]) > 1 for number in numbers):
            yield Slip(_result_held(numbers), f"the path through {place} {{}}")
    for use in uses:
        yield from _of_a_factor(use)
        yield from _of_a_power(use)
        yield from _of_the_largest(use)
        for factor in (-1, 2, 0.5) if use.carried else (-1,) if len(use.numbers) > 1 else ():
            yield Slip(_times(use, factor), f"{use.path} {FACTORS[factor]}")
    wholes = list(_wholes(made, moving))
    for ends in wholes:
        words = f"the derivative of {_whole(ends, made)} is left out"
        yield Slip(_bridged(ends, lambda z, h: 1.0), words)
    for place, numbers in places.items():
        for use in uses:
            if use.first.place == place:
                hold = partial(_held, use.position)
                yield from _at_some_times(use.path, use.numbers, hold, use.carried)
        if any(len(moving[number]) > 1 for number in numbers):
            yield from _at_some_times(f"the path through {place}", numbers, _result_held)
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
    for ends in wholes:
        for derivative, formula in DERIVATIVES.items():
            words = f"the derivative of {_whole(ends, made)} is taken to be {derivative}, {WHERE}"
            yield Slip(_bridged(ends, formula), words)


def _of_a_factor(use):
    """The other factor forgotten, twice, upside down, or transposed; or a condition forgotten."""
    first, name = use.first, use.first.place.name
    if name in ("matmul", "einsum") and _square(first.operands[use.other[0]]):
        factor = first.part(use.other) or "the other factor"
        words = f"on {use.path} {factor} has to be transposed, or must not be"
        turned = _swapped(use, lambda before, *_: before.operands[use.other[0]].swapaxes(-1, -2))
        yield Slip(turned, words)
    if name == "matmul" and first.operand(use.position).shape == np.shape(first.result):
        for turned in (False, True):
            yield from _entry_by_entry(use, turned)
    same_shape = first.operand(use.position).shape == np.shape(first.result)
    broadcast = name in ("multiply", "divide")
    if not (same_shape or broadcast) or len(first.operands) < 2 or name in LINEAR:
        return
    if name not in TWO_FACTORS:
        words = f"the derivative of {first.place} is left out"
        if name in ("maximum", "minimum", "where", "clip"):
            words = f"on {use.path} the condition, a mask, is forgotten"
        yield Slip(_sloped(use, lambda z, h: 1.0), words)
        return
    factor = f"{TWO_FACTORS[name]} {first.part(use.other)}".rstrip()
    words = f"on {use.path} {factor} is forgotten"
    yield Slip(_sloped(use, lambda z, h: 1.0), words)
    if name != "matmul":
        yield Slip(_sloped(use, lambda z, h: (h / z) ** 2), f"on {use.path} {factor} comes twice")
        words = f"on {use.path} {factor} is upside down: it multiplies where it has to divide, or "
        words += "divides where it has to multiply"
        yield Slip(_sloped(use, lambda z, h: z / h), words)


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
        changed = _swapped(use, lambda one, *_, slope=slope: slope(*one.operands), np.multiply)
        yield Slip(changed, f"the derivative of {first.place} lacks {lacking}")


def _of_the_largest(use):
    """What belongs to the largest entry goes to all of them."""
    if use.first.place.name in ("max", "amax", "min", "amin"):
        words = f"through {use.first.place} every entry gets "
        yield Slip(_reduced(use, np.sum), words + "it all, not the chosen one alone")
        yield Slip(_reduced(use, np.mean), words + "its share, and should go to the chosen one")


def _entry_by_entry(use, turned):
    """``*`` for ``@``."""
    first = use.first
    other = first.operands[use.other[0]]
    if other.ndim > 1 and _fits(other, first, turned):
        words = f"on {use.path} it is multiplied entry by entry: * where @ belongs"

        def array(before, *_):
            other = before.operands[use.other[0]]
            return other.swapaxes(-1, -2) if turned else other

        yield Slip(_swapped(use, array, np.multiply), words)


def _fits(other, first, turned):
    other = other.swapaxes(-1, -2) if turned and np.ndim(other) > 1 else other
    try:
        return np.broadcast_shapes(np.shape(other), np.shape(first.result)) == first.result.shape
    except ValueError:
        return False


def _square(x):
    return np.ndim(x) > 1 and x.shape[-1] == x.shape[-2]


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
        words = (
            f"of its uses, step by step, only the {ordinal} is there: is it overwritten where it "
        )
        yield Slip(_held_at(every - some), words + "has to be added to, with +=?")
        yield Slip(_held_at(some), f"of its uses, step by step, the {ordinal} step is missing")


def _overwritten(uses):
    """Where entries of an input are taken more than once, only the last or the first counts."""
    for use in uses:
        taken = use.first.place.name == "getitem"
        windows = [_taken(use.made[number]) for number in use.numbers if taken]
        if not taken or any(window is None for window in windows):
            continue
        numbers = np.concatenate([window.ravel() for window in windows])
        ends = np.cumsum([window.size for window in windows])[:-1]
        for order in (
            (slice(None, None, -1), slice(None)) if len(set(numbers)) < len(numbers) else ()
        ):
            places = np.arange(len(numbers))[order]
            kept = np.zeros(len(numbers), bool)
            kept[places[np.unique(numbers[order], return_index=True)[1]]] = True
            parts = dict(zip(use.numbers, np.split(kept, ends), strict=True))
            words = f"through {use.first.place} entries come more than once, and only one of them "
            words += "counts: is it overwritten where it has to be added to, with += or np.add.at?"
            yield Slip(_some_of_the_result(parts), words)


def _taken(one):
    """The numbers of the entries that an operation takes out of an input; None if it does not."""
    numbers = one.inputs.get((0,))
    return None if numbers is None or not np.ndim(one.result) else numbers[one.operands[1]]


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
            yield Slip(_result_held([n for place in group for n in places[place]]), words)


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
            yield Slip(_held_at(rest), words)


def _another_factor(use, places):
    """One factor of a product is taken for another array of the same shape."""
    first = use.first
    if first.place.name in ("multiply", "matmul", "einsum"):
        factor = first.operands[use.other[0]]
        for part, array in _like(factor, use, places):
            words = f"on {use.path} stands {part} in place of "
            yield Slip(_swapped(use, array), words + (first.part(use.other) or "the other factor"))


def _another_argument(use, places):
    """tanh′ and the like at another array than tanh."""
    first = use.first
    of_one = isinstance(first.function, np.ufunc) and len(list(positions(first.operands))) == 1
    if not of_one or first.place.name in ("multiply", *LINEAR):
        return
    for part, array in _like(first.operand(use.position), use, places):
        yield Slip(_elsewhere(use, array), f"the derivative of {first.place} is taken at {part}")


def _like(wanted, use, places):
    """Yield in words, and as a function, the arrays of forward that might stand for this one."""
    seen = set()
    for place, numbers in places.items():
        if len(numbers) != len(use.numbers):
            continue
        it = use.made[numbers[0]]
        for at, array in [*positions(it.operands), (None, it.result)]:
            key = (numbers[0], (0,)) if at is None else it.keys[at]
            turned = np.ndim(wanted) == 2 and np.shape(array) == np.shape(wanted)[::-1]
            turned = turned and np.shape(array) != np.shape(wanted)
            array = array.T if turned else array
            other = np.shape(array) == np.shape(wanted) and not np.array_equal(array, wanted)
            if other and key not in seen:
                seen.add(key)
                there = dict(zip(use.numbers, numbers, strict=True))
                part = (at and it.part(at)) or str(place)
                yield part + ", transposed," * turned, _array_of(there, at, turned)


def _array_of(there, at, turned):
    def array(before, made, number):
        one = made[there[number]]
        found = one.result if at is None else one.operand(at)
        return found.T if turned else found

    return array


def _wholes(made, moving):
    """Expressions that are functions of one array, as a list of (first, position, last) each."""
    found = {}
    for number, sources in _only_ways_in(made, moving).items():
        for source, position in sources:
            begin, end = made[source], made[number]
            alone = source < number or len(end.operands) == 1
            nothing = end.place.name in LINEAR or begin.place.name in ("add", "subtract", "getitem")
            if 0 <= number - source <= LONGEST and alone and not nothing:
                found.setdefault((begin.place, position, end.place), []).append(
                    (source, position, number)
                )
    for ends in sorted(found.values(), key=lambda ends: ends[0][0] - ends[0][2]):  # longest first
        source, position, number = ends[0]
        if made[source].operand(position).shape == np.shape(made[number].result):
            yield ends


def _whole(ends, made):
    """In words, an expression from where it begins."""
    source, position, number = ends[0]
    begin = made[source].part(position)
    return f"{made[number].place}{f', from {begin} on,' if number > source and begin else ''}"


def _only_ways_in(made, moving):
    """For each operation the operands of earlier ones through which alone it moves."""
    ways, first = {}, {}
    for number, where in moving.items():
        each = []
        for position in where:
            key = made[number].keys[position]
            first.setdefault(key, (number, position))
            each.append({key} | ways.get(made[number].made_by.get(position), set()))
        ways[number] = set.intersection(*each)
    return {number: [first[key] for key in keys] for number, keys in ways.items()}


def _held(position, numbers):
    """An operand stays as it was first."""
    return _held_at({(number, position) for number in numbers})


def _held_at(places):
    """Operands, each (number, position), stay as they were first."""
    chosen = {number: [] for number, _ in places}
    for number, position in sorted(places):
        chosen[number].append(position)
    return lambda made: (
        lambda number, operands, options, result: (
            made[number].again(operands, chosen[number]) if number in chosen else None
        )
    )


def _result_held(numbers):
    numbers = frozenset(numbers)
    return lambda made: (
        lambda number, operands, options, result: made[number].result if number in numbers else None
    )


def _sloped(use, derivative):
    """An operand moves the result by ``derivative(z, h)`` times its own move."""
    return _bridged([(number, use.position, number) for number in use.numbers], derivative)


def _bridged(ends, derivative):
    """The result of the last operation moves by what goes into the first, times a derivative.

    What else moves the result of that one operation goes on doing so.
    """
    first = {(source, position) for source, position, _ in ends}
    last = {number: (source, position) for source, position, number in ends}

    def change(made):
        moves = {}

        def bridge(number, operands, options, result):
            for position, now in positions(operands):
                if (number, position) in first:
                    moves[number, position] = now - made[number].operand(position)
            if number not in last:
                return None
            source, position = last[number]
            z, h = made[source].operand(position), made[number].result
            rest = made[number].again(operands, [position]) if source == number else h
            return rest + derivative(z, h) * moves[source, position]

        return bridge

    return change


def _some_of_the_result(kept):
    """Of a result only the chosen entries move."""
    return lambda made: (
        lambda number, operands, options, result: (
            np.where(kept[number].reshape(result.shape), result, made[number].result)
            if number in kept
            else None
        )
    )


def _times(use, factor):
    """An operand moves the result so many times as much, at every step of a loop anew."""
    numbers = frozenset(use.numbers)

    def change(made):
        def move(number, operands, options, result):
            if number not in numbers:
                return None
            rest = made[number].again(operands, [use.position])
            return rest + factor * (result - rest)

        return move

    return change


def _swapped(use, array, product=None):
    """One operand moves the result as if the other factor were another array."""

    def by(before, move, made, number):
        other = array(before, made, number)
        if product:
            return product(move, other)
        operands = put(put(before.operands, use.position, move), use.other, other)
        return before.again(operands, [])

    return _moved(use, by)


def _elsewhere(use, array):
    """One operand moves the result as it would where it were another array."""

    def by(before, move, made, number):
        there = array(before, made, number)
        near, far = (put(before.operands, use.position, z) for z in (there, there + move))
        return before.again(far, []) - before.again(near, [])

    return _moved(use, by)


def _reduced(use, function):
    """One operand moves the result as if the operation were another one."""
    return _moved(
        use,
        lambda before, move, *_: replace(before, function=function).again(
            put(before.operands, use.position, move), []
        ),
    )


def _moved(use, by):
    """An operand moves the result by ``by(operation, its move, made, number)``."""
    numbers = frozenset(use.numbers)

    def change(made):
        def move(number, operands, options, result):
            if number not in numbers:
                return None
            before = made[number]
            now = dict(positions(operands))[use.position]
            rest = before.again(operands, [use.position])
            return rest + by(before, now - before.operand(use.position), made, number)

        return move

    return change
