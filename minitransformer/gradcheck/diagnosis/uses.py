"""How the operations of forward hang together: where an array is used, what is made of it alone."""

from dataclasses import dataclass

import numpy as np

from minitransformer.gradcheck.diagnosis.changes import bridged, change, held
from minitransformer.gradcheck.diagnosis.watched import positions

LINEAR = ("add", "subtract", "negative")
LONGEST = 12  # operations of an expression whose derivative may be left out as a whole


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
    def squared(self):
        """Whether it is multiplied by itself; then the two moves are alike, and one path."""
        keys = self.first.keys
        return self.first.place.name == "multiply" and keys.get(self.other) == keys[self.position]

    def factor(self, one):
        """The other factor in one of the operations."""
        return one.operands[self.other[0]]

    def held(self, numbers):
        """The change that holds it fixed in some of the operations."""
        return held({(number, self.position) for number in numbers})

    def sloped(self, derivative):
        """The change that lets it move results by ``derivative(z, h)`` times its own move."""
        return bridged([(number, self.position, number) for number in self.numbers], derivative)

    def moved(self, by):
        """The change that lets it move results by ``by(now, its move)`` and by nothing else."""
        return change(
            self.numbers, lambda now: now.rest(self.position) + by(now, now.move(self.position))
        )

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
        places = [one.place for one in self.made]
        return places.index(self.made[parent].place) > places.index(self.first.place)


def like(wanted, use, places):
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
    def array(now):
        one = now.made[there[now.number]]
        found = one.result if at is None else one.operand(at)
        return found.T if turned else found

    return array


def wholes(made, moving):
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


def whole(ends, made):
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
