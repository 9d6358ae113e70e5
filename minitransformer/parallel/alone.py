"""What the processes of a training can do together, for one that is alone.

The number of shards of a batch belongs to the run; how they are spread belongs to the machines.
Each process has a block of the shards, and its threads work on them. What a run gives does not
depend on the spread, because what a shard draws does not, nor the order in which the gradients of
shards are added, ((g₀ + g₁) + g₂) + …; and all go by the norm that one process has computed.

Whoever trains or translates knows the few methods of :class:`Alone`. ``Mpi`` has the same ones.
"""

from minitransformer.core.backend import select_device
from minitransformer.core.errors import ExplainedError
from minitransformer.core.workers import available_cores
from minitransformer.optim.clipping import gradient_norm


class ProcessError(ExplainedError):
    """The processes do not fit together, or another one has failed; says what and where."""


class Alone:
    """One process, which has all shards.

    Attributes:
        rank: the number of this process, from 0. The first one alone reads and writes the run
            folder, and prints.
        count: how many processes there are.
    """

    rank, count = 0, 1

    @property
    def cores(self):
        """How many cores all processes may use together."""
        return available_cores()

    @property
    def threads(self):
        """How many threads keep the cores busy that this process may use."""
        return available_cores()

    def device(self, name):
        """The Device called ``name``; of several processes each has a GPU of its own.

        Raises:
            ValueError, DeviceError: as for :func:`select_device`; or there are too few GPUs.
        """
        return select_device(name)

    def connect(self, device):
        """Get ready to add up gradients that are on this Device, before any are.

        Raises:
            MissingLibraryError: there are several processes on GPUs, and no NCCL.
            ProcessError: their GPUs do not come together.
        """

    def run(self, main):
        """What ``main()``, a whole command, returns: its exit status."""
        return main()

    def part(self, length):
        """The slice of ``length`` things in a row, such as shards, that are for this process."""
        return slice(0, length)

    def first(self, function, *arguments):
        """What the first process gets from ``function(*arguments)``, which it alone calls.

        Raises:
            Exception: what that raises there; in the other processes another one.
        """
        return function(*arguments)

    def gathered(self, values):
        """The lists ``values`` of all processes, one behind the other."""
        return values

    def shared(self, workers):
        """Workers of the same count whose calls all processes share; each gets all results."""
        return workers

    def require_same(self, **facts):
        """Refuse to go on where a fact, a value by its name, is another one in another process.

        Raises:
            ProcessError: which names it.
        """

    def add(self, total, gradients, shards, workers, ordered=True):
        """Make ``total`` the sum of the gradients of all shards, in every process.

        Args:
            total: 1-D, the first of ``gradients`` where there is one.
            gradients: 1-D arrays, those of this process's part of the shards.
            shards: how many there are in all processes.
            workers: the Workers of this process, which share the additions.
            ordered: whether to add in the order of the shards, or in whatever is the fastest.
        """
        add_up(gradients, total, workers)

    def norm(self, total):
        """The norm of what :meth:`add` has made, of the same bits in every process.

        Returns:
            a scalar on the device of ``total``: nothing waits for a GPU.
        """
        return gradient_norm(total)


ALONE = Alone()


def add_up(rows, total, workers):
    """Make ``total``, which may be the first of the 1-D ``rows``, their sum, added in order."""
    if not len(rows):
        total.fill(0)
        return

    def add(part):
        if rows[0] is not total:
            total[part] = rows[0][part]
        for row in rows[1:]:
            total[part] += row[part]

    workers.map(add, workers.ranges(len(total)))
