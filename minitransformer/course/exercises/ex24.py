"""Exercise 24, many machines: how each part is checked."""

import numpy as np

from minitransformer.course.exercises.parts import array_of, expect, likely, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import read_only, returned

D = 5
ROWS = 7, 1, 4  # of three processes


@part(10)
def check_from_own_means(from_own_means):
    rng = np.random.default_rng(24)
    counts = [12, 0, 31, 7]
    gradients = [rng.standard_normal(6) * (count > 0) for count in counts]
    total, K = sum(counts), len(counts)
    given = from_own_means(list(map(read_only, gradients)), list(counts))
    weighed = np.array(counts) @ gradients
    mistakes = {
        "a shard with more labels has to weigh more than one with few": np.mean(gradients, axis=0),
        "each is a mean over its own labels, and a sum of means is too large": sum(gradients),
        "divide by the labels of the whole batch": weighed,
        "divide by the labels of the whole batch, not by the number of shards": weighed / K,
        "divide once: by the labels, not by the number of shards, too": weighed / total / K,
    }
    expect("the gradient of the batch", given, weighed / total, mistakes=mistakes)


@part(25)
def check_shared_statistics(shared_statistics):
    rng = np.random.default_rng(24)
    shards = [rng.normal(p, 1 + p, (rows, D)) for p, rows in enumerate(ROWS)]
    whole = np.concatenate(shards)
    mean, variance, sent = _statistics(shared_statistics, shards)
    means, spreads = (np.array([f(x, axis=0) for x in shards]) for f in (np.mean, np.var))
    of_squares = np.mean([(x**2).mean(axis=0) for x in shards], axis=0)
    of_rows, total = np.array(ROWS) / sum(ROWS), whole.sum(axis=0)
    weigh = "a process with more rows weighs more than one with few"
    mistakes = {
        weigh: means.mean(axis=0),
        "divide by the rows of all processes": total,
        "divide by the rows of all processes, not by their number": total / len(ROWS),
    }
    expect("the mean", mean, whole.mean(axis=0), mistakes=mistakes)
    own = "take the distances from the mean of all rows, not from that of the process's own"
    mistakes = {
        own: of_rows @ spreads,
        own + "; and divide by the rows of all": spreads.mean(axis=0),
        "divide by the rows, not by one less": whole.var(axis=0, ddof=1),
        "divide by the rows of all processes": whole.var(axis=0) * len(whole),
        weigh: of_squares - whole.mean(0) ** 2,
        "the variance is asked for, not its root": whole.std(axis=0),
    }
    expect("the variance", variance, whole.var(axis=0), mistakes=mistakes)
    far = [x + 1e5 for x in shards]
    _, variance, _ = _statistics(shared_statistics, far)
    what = "with rows that are 100,000 larger, the variance"
    hint = "mean(x²) − mean² is a small difference of large numbers: square the distances"
    expect(what, variance, np.concatenate(far).var(axis=0), hint)
    if sent < 2 * D + 1:
        raise CheckError(
            f"right, but only {sent} numbers went through all_reduce; sums, squares and the number "
            f"of rows are {2 * D + 1}, and a process cannot count the rows of the others"
        )


def _statistics(shared_statistics, shards):
    """The learner's mean and variance, and how many numbers were summed for them."""
    calls = []

    def all_reduce(parts):
        arrays = [np.asarray(part, dtype=np.float64) for part in parts]
        shapes = {array.shape for array in arrays}
        if len(arrays) != len(shards) or len(shapes) != 1:
            raise ValueError(
                f"all_reduce needs {len(shards)} arrays of one shape, one from each process; it "
                f"got {len(arrays)}, of the shapes {sorted(shapes)}"
            )
        calls.append(arrays[0].size)
        return np.sum(arrays, axis=0)

    rows = [read_only(x) for x in shards]
    result = shared_statistics.several(2, "mean and variance", rows, all_reduce)
    if not calls:
        raise CheckError("all_reduce was not called: a process knows only its own rows")
    if len(calls) > 2:
        raise CheckError(
            f"all_reduce was called {len(calls)} times, and two will do: rows and sums fit into "
            "one array"
        )
    if max(calls) > D + 1:
        raise CheckError(
            f"all_reduce got arrays of {max(calls)} numbers, with D = {D}; send sums, of at most "
            "D + 1 numbers"
        )
    return *result, sum(calls)


@part(25)
def check_ring_round(ring_round):
    for P in (3, 2, 5):
        held = np.einsum("pq,c->pcq", np.eye(P, dtype=int), np.ones(P, int))  # who is how often in
        for r in range(2 * (P - 1)):
            plan = [_plan(ring_round, p, r, P) for p in range(P)]
            what = f"in round {r} of {P} processes"
            for p, (to, _, source, receives) in enumerate(plan):
                if (to, source) == ((p + 1) % P, (p - 1) % P) and P > 2:
                    raise CheckError(
                        f"{what} process {p} sends to {to}, as in the lesson; here it sends to "
                        f"{(p - 1) % P} and receives from {(p + 1) % P}"
                    )
                expect(f"{what} the process that {p} sends to", to, (p - 1) % P)
                expect(f"{what} the process that {p} receives from", source, (p + 1) % P)
                if plan[source][1] != receives:
                    raise CheckError(
                        f"{what} process {p} expects chunk {receives} from process {source}, which "
                        f"sends chunk {plan[source][1]}"
                    )
            before = held.copy()
            for p, (_, _, source, c) in enumerate(plan):
                arrived = before[source, c]
                held[p, c] = held[p, c] + arrived if r < P - 1 else arrived
            if r == P - 2:
                _expect_own_chunks(held, P)
        lacking = np.argwhere((held != 1).any(axis=-1))
        if len(lacking):
            p, c = lacking[0]
            raise CheckError(
                f"with {P} processes, after all rounds, process {p} lacks chunk {c} of the sum; in "
                "the second half a process first sends the chunk that is complete, and then what "
                "has just arrived"
            )


def _plan(ring_round, p, r, P):
    given = ring_round(p, r, P)
    numbers = array_of(given, (4,))
    if numbers is None or not all(x == int(x) for x in numbers if np.isfinite(x)):
        raise CheckError(f"ring_round must return four whole numbers; it returned {_said(given)}")
    if not ((numbers >= 0) & (numbers < P)).all():
        raise CheckError(
            f"ring_round({p}, {r}, {P}) is {_said(given)}; all four must be from 0 to {P - 1}: "
            "take them modulo P"
        )
    return [int(x) for x in numbers]


def _said(given):
    return str(given) if isinstance(given, tuple | list) else returned(given)


def _expect_own_chunks(held, P):
    """Raise unless after reduce-scatter each process p has chunk p, of all, once."""
    if (held > 1).any():
        p, c, q = np.argwhere(held > 1)[0]
        raise CheckError(
            f"with {P} processes, after the first half, the numbers of process {q} are "
            f"{held[p, c, q]} times in chunk {c} of process {p}; in each round another chunk is "
            "sent on"
        )
    whole = (held == 1).all(axis=-1)  # (P, P), process and chunk
    if all(whole[p, p] for p in range(P)):
        return
    found = np.flatnonzero(whole[0])
    has = f"chunk {found[0]}" if len(found) else "no chunk"
    raise CheckError(
        f"with {P} processes, after the first half, process 0 has {has} of the sum and should have "
        "chunk 0; in its last round a process receives its own chunk"
    )


@part(45)
def check_halving_doubling(halving_doubling):
    rng = np.random.default_rng(24)
    for P in (2, 8, 4, 1):
        n = 24
        gradients = [rng.standard_normal(n) for _ in range(P)]
        messages, numbers = np.zeros((2, P), int)

        def send(p, q, x, P=P, messages=messages, numbers=numbers):
            if not (0 <= p < P and 0 <= q < P) or p == q:
                raise ValueError(f"process {p} cannot send to {q}: there are 0 to {P - 1}")
            x = np.asarray(x, dtype=np.float64)
            if x.ndim != 1:
                raise ValueError(f"x must be a 1-D array; its shape is {x.shape}")
            messages[p] += 1
            numbers[p] += x.size
            return x.copy()

        arrays = [read_only(gradient) for gradient in gradients]
        sums = halving_doubling.several(P, f"a list of {P} arrays", arrays, send)
        for p, total in enumerate(sums):
            hint = "do partners keep the same half? does one send on what came in the same round?"
            if likely(total, {"its own": gradients[p]}):
                hint = "this is its own gradient still"
            elif (lacking := _lacking(total, sum(gradients))) is not None:
                hint = f"{lacking} of {n} entries are not the sum, the others are"
            what = f"with {P} processes, the result of process {p}"
            expect(what, total, sum(gradients), hint)
        _expect_little(messages, numbers, P, n)


def _expect_little(messages, numbers, P, n):
    if P > 1 and not messages.all():
        silent = int(np.flatnonzero(messages == 0)[0])
        raise CheckError(
            f"with {P} processes, process {silent} has sent nothing; all need each other"
        )
    p, rounds = int(messages.argmax()), 2 * (P.bit_length() - 1)
    if messages[p] > rounds:
        raise CheckError(
            f"with {P} processes, process {p} has sent {messages[p]} times; 2 log₂ P is {rounds}"
        )
    p, most = int(numbers.argmax()), 2 * n * (P - 1) // P
    if numbers[p] > most:
        raise CheckError(
            f"with {P} processes and n = {n}, process {p} has sent {numbers[p]} numbers; "
            f"2 n (P - 1) / P is {most}: in each round only half of what is left is sent"
        )


def _lacking(given, wanted):
    """How many entries are wrong, if some are right."""
    given = array_of(given, wanted.shape)
    right = 0 if given is None else int(np.isclose(given, wanted).sum())
    return len(wanted) - right if right else None
