"""What a training step costs on several processes.

    mpiexec -n 2 python benchmarks/processes.py --json FILE

Several numbers of processes take turns with the same batches, each cut into the same shards: one
process with all threads, two that share them, and so on, up to all that were started; those that
have no turn sleep. Gradients are added in the order of the shards, and in MPI's. Beside the time of
a step stand the share of it that the first process waits for others, and the bytes that it sends:
as counted, where the order is ours, and as theory has it.

Then the sum of gradients is timed alone, over sizes, and the two numbers of the model in
``_cost.py`` are fitted to some of them. What the model says of the other sizes and teams, and of
the step itself, stands beside what was measured.
"""

import statistics
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import _cost
import _options
import _reductions
import _results
from _machine import cores, machine
from _our_side import OurSide, update_seconds
from _settings import Settings
from _workload import make_workload

from minitransformer.commands.arguments import new_file, positive
from minitransformer.parallel.alone import Alone
from minitransformer.parallel.processes import all_processes
from minitransformer.training.trainer import Trainer


class Team:
    """A Trainer on the first ``count`` of all processes; elsewhere, none.

    Args:
        count: processes; their threads are the cores, shared out.
        ordered: whether the sums are in the order of the shards.
        shards: of a batch.
        workload, settings: as for OurSide.
    """

    def __init__(self, count, ordered, shards, workload, settings):
        self.name = f"{count} of {max(1, settings.threads // count)}"
        self.count, self.ordered, self.shards = count, ordered, shards
        self.processes = _processes(count, max(1, settings.threads // count))
        if self.processes is None:
            return
        side = OurSide(workload, settings)
        self.batches, old = side.batches, side.trainer
        config = replace(old.config, shards=shards, ordered_sums=ordered, log_every=10**6)
        log, task = old.run, old.task
        self.trainer = Trainer(old.model, config, log, task, log, processes=self.processes)

    def take_steps(self, steps):
        """(seconds, seconds waited, bytes sent) a step, and the seconds of an update.

        None in a process that has no turn.
        """
        if self.processes is None:
            return None
        before = self._counted()
        with self.trainer.workers.one_blas_thread():
            start = perf_counter()
            for step in range(steps):
                self.trainer.take_step([self.batches[step % len(self.batches)]], 10**4)
            seconds = perf_counter() - start
        waited, sent = (now - then for now, then in zip(self._counted(), before, strict=True))
        return seconds / steps, waited / steps, sent / steps, update_seconds(self.trainer)

    def _counted(self):
        return [getattr(self.processes, name, 0) for name in ("seconds_waiting", "bytes_sent")]

    def traffic(self):
        """What the first process sends in a step, in theory."""
        size, shards = self.trainer.model.flat.grad.nbytes, len(self.trainer.stepper.shards)
        return _cost.traffic(self.count, size, shards, self.ordered)


def _processes(count, threads):
    if count > 1:
        return _reductions.first_of_all(count, threads)
    alone = type("Alone", (Alone,), {"threads": threads})()
    return None if all_processes().rank else alone


def measure(counts, shards, workload, settings, rounds, steps):
    """Time all teams in turns; in the first process a list of dicts, one for each.

    Args:
        counts: of processes.
        rounds: how often each has a turn, after one that warms up.
        steps: of a turn.
    """
    teams = [
        Team(count, ordered, shards, workload, settings)
        for count in counts
        for ordered in ((True,) if count == 1 else (True, False))
    ]
    turns = [[] for _ in teams]
    for _ in range(1 + rounds):
        for team, taken in zip(teams, turns, strict=True):
            all_processes().gathered([])  # all are here, and those without a turn wait for the next
            taken.append(team.take_steps(steps))
    if all_processes().rank:
        return None
    rows = []
    for team, taken in zip(teams, turns, strict=True):
        medians = (statistics.median(values) for values in zip(*taken[1:], strict=True))
        seconds, waited, sent, update = medians
        traffic = team.traffic()
        rows.append(
            {
                "processes": team.count,
                "threads": team.processes.threads,
                "ordered_sums": team.ordered,
                "seconds": seconds,
                "of_rounds": [turn[0] for turn in taken[1:]],
                "waiting": waited / seconds,
                "bytes_sent": sent,
                "bytes_in_theory": traffic.bytes,
                "messages": traffic.messages,
                "update": update,
            }
        )
    for row in rows:
        ratios = zip(rows[0]["of_rounds"], row["of_rounds"], strict=True)
        row["as_fast"] = statistics.median(one / here for one, here in ratios)
    return rows


def table(result):
    """The result as text."""
    links, no_links = _links(result)
    lines = [
        f"{result['cpu']}; {result['cores']} cores, {result['shards']} shards, {result['model']}, "
        f"{result['parameters']:,} parameters",
        "processes  threads   sums      ms    model   as fast  waiting   MB sent   in theory",
    ]
    for row in result["rows"]:
        model = _modelled(row, result, links)
        lines.append(
            f"{row['processes']:9d} {row['threads']:8d}  {_sums(row):7s} "
            f"{1000 * row['seconds']:6.0f} {model:>8s} {row['as_fast']:8.2f} "
            f"{row['waiting']:8.1%} {row['bytes_sent'] / 1e6:9.1f} "
            f"{row['bytes_in_theory'] / 1e6:10.1f}{_mark(row, result)}"
        )
    if links:
        lines.append(_reductions.table(result["reductions"], links))
    elif result["reductions"]:
        lines.append(f"the model fits no sum: {no_links}")
    if any(_mark(row, result) for row in result["rows"]):
        lines.append("* more threads than cores: they take turns on them")
    return "\n".join(lines)


def modelled(row, alone, links):
    """Seconds of a step by the model: the work of one process, whose cores all have to share.

    Args:
        row: what was measured.
        alone: the same of one process.
        links: of each order of sums.
    """
    traffic = _cost.Traffic(row["messages"], row["bytes_in_theory"])
    reduction = links[row["ordered_sums"]].seconds(traffic)
    return _cost.Step(alone["seconds"] - alone["update"], reduction, row["update"]).seconds


def _modelled(row, result, links):
    if row["processes"] == 1 or not links:
        return ""
    return f"{1000 * modelled(row, result['rows'][0], links):.0f}"


def _links(result):
    """The Links of both orders, by whether it is that of the shards; or None, and why."""
    if not result["reductions"]:
        return None, None
    try:
        return _reductions.fitted(result["reductions"]), None
    except ValueError as error:
        return None, error


def _mark(row, result):
    return " *" if row["processes"] * row["threads"] > result["cores"] else ""


def _sums(row):
    return "-" if row["processes"] == 1 else _reductions.order(row)


def main(arguments=None):
    """Measure, print the table and write the JSON; returns the exit status."""
    options = _parsed(arguments)
    everyone = all_processes()
    settings = Settings(threads=options.threads or cores())
    workload = make_workload(
        options.config, options.data_dir, batch_tokens=options.batch_tokens, count=8
    )
    shards = max(settings.threads, everyone.count)
    counts = [2**i for i in range(everyone.count.bit_length()) if 2**i <= everyone.count]
    rows = measure(counts, shards, workload, settings, options.rounds, options.steps)
    reductions = _reductions.measure(options.sizes, options.rounds)
    if rows is None:
        return 0
    arguments = sys.argv[1:] if arguments is None else arguments
    here = machine(["processes.py", *arguments])
    result = {
        "kind": "processes",
        **here,
        "command": here["command"].replace("python", f"mpiexec -n {everyone.count} python", 1),
        "model": options.config,
        "parameters": sum(weight.size for weight in workload.weights.values()),
        "shards": shards,
        "cores": settings.threads,
        "rows": rows,
        "reductions": reductions,
    }
    _results.write(result, options.json)
    print(table(result))
    return 0


def _parsed(arguments):
    shared = "--config", "--data-dir", "--threads", "--batch-tokens"
    parser = _options.parser(__doc__.splitlines()[0], *shared)
    add = parser.add_argument
    file = Path if all_processes().rank else new_file  # the others write none
    add("--json", type=file, metavar="FILE", help="write the result to a file")
    add("--rounds", type=positive, default=10, help="turns of each; the median counts")
    add("--steps", type=positive, default=4, help="of each turn")
    sizes = dict(type=positive, nargs="*", metavar="BYTES", default=_reductions.SIZES)
    add("--sizes", **sizes, help="of the gradients that are added up alone, if any")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    _options.end(main, all_processes().run)  # where one fails, all end
