"""How the slopes of forward are changed at one place, while its values stay what they are.

Forward is made again after a small step of the inputs, and the results of some operations are made
others than they would be now: an operand or a result stays what it was first, or moves otherwise.
"""

from dataclasses import dataclass

from minitransformer.gradcheck.diagnosis.watched import positions


@dataclass(frozen=True)
class Now:
    """One operation as it is made after the step.

    Attributes:
        made: all operations as they were made first.
        number: of this one.
        operands, result: as they are now.
        moves: what is remembered of earlier operations.
    """

    made: list
    number: int
    operands: tuple
    result: object
    moves: dict

    @property
    def first(self):
        """The operation as it was made first."""
        return self.made[self.number]

    def rest(self, position):
        """The result if that operand had not moved."""
        return self.first.again(self.operands, [position])

    def move(self, position):
        """By how much that operand has moved."""
        return dict(positions(self.operands))[position] - self.first.operand(position)


def change(numbers, by):
    """From the operations of one set of inputs to what a Watch makes of them.

    Args:
        numbers: of operations whose results are to be others.
        by: from a Now to such a result, None for the same.
    """

    numbers = frozenset(numbers)

    def of(made):
        moves = {}

        def changed(number, operands, result):
            if number not in numbers:
                return None
            return by(Now(made, number, operands, result, moves))

        return changed

    return of


def held(places):
    """Operands, each (number, position), stay as they were first."""
    chosen = {number: [] for number, _ in places}
    for number, position in sorted(places):
        chosen[number].append(position)
    return change(chosen, lambda now: now.first.again(now.operands, chosen[now.number]))


def result_held(numbers):
    """Results stay as they were first."""
    return change(numbers, lambda now: now.first.result)


def bridged(ends, derivative):
    """The result of the last operation moves by what goes into the first, times a derivative.

    What else moves the result of that one operation goes on doing so.

    Args:
        ends: (number of the first, position of its operand, number of the last) each.
        derivative: of that operand as it was first and of that result.
    """
    first = {source: position for source, position, _ in ends}
    last = {number: source for source, _, number in ends}

    def by(now):
        if now.number in first:
            now.moves[now.number] = now.move(first[now.number])
        if now.number not in last:
            return None
        source = last[now.number]
        position, h = first[source], now.first.result
        rest = now.rest(position) if source == now.number else h
        return rest + derivative(now.made[source].operand(position), h) * now.moves[source]

    return change(first.keys() | last.keys(), by)
