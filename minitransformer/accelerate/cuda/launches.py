"""How the rows and columns of an array are dealt out to the threads of a GPU.

A launch has a grid of blocks, each of 256 threads, along x and y. The two layouts below are those
that ``kernels/common.cu`` names; both give a thread four neighbouring entries of a row at a time.
"""

from minitransformer.accelerate.cuda.kernels import launch
from minitransformer.core.backend import array_namespace

THREADS = 256  # of a block, in every launch; the kernels rely on it
LANES = 32  # of a row at most: those of a warp exchange numbers fastest
MAX_GRID_Y = 65535
ROWS_TO_SUM = 64  # for a block, at least
MAX_SUMS = 256  # partial sums of the rows of an array, which a second launch adds up


def elementwise(rows, width):
    """Grid and block with a thread for four columns of a row."""
    fours = -(-width // 4)
    x = min(_power_of_two(fours), THREADS)
    y = THREADS // x
    return (-(-fours // x), min(-(-rows // y), MAX_GRID_Y)), (x, y)


def summing(rows, width):
    """As :func:`elementwise`, for a kernel that adds up some rows for each grid row."""
    fours = -(-width // 4)
    x = min(_power_of_two(fours), LANES)
    return (-(-fours // x), min(-(-rows // ROWS_TO_SUM), MAX_SUMS)), (x, THREADS // x)


def rowwise(rows, width):
    """Grid and block with the lanes of one warp, or of a part of one, for a row."""
    lanes = min(_power_of_two(-(-width // 4)), LANES)
    return (-(-rows // (THREADS // lanes)), 1), (lanes, THREADS // lanes)


def matrix(x):
    """x (..., D) as the kernels read it: (rows, D), contiguous."""
    return array_namespace(x).ascontiguousarray(x).reshape(-1, x.shape[-1])


def partial_sums(name, arrays, rows, width, *settings, each=1):
    """What a kernel adds up over some rows at a time, (at most MAX_SUMS, each · width)."""
    grid, block = summing(rows, width)
    sums = array_namespace(arrays[0]).empty((grid[1], each * width), arrays[0].dtype)
    launch(name, grid, block, *arrays, sums, rows, width, *settings)
    return sums


def column_sums(x):
    """The sums (D,) of the columns of x (rows, D), added up in the same order in every run."""
    if len(x) > MAX_SUMS:
        x = partial_sums("column_sums", (x,), *x.shape)
    (columns, _), block = summing(*x.shape)
    sums = array_namespace(x).empty(x.shape[1], x.dtype)
    launch("column_sums", (columns, 1), block, x, sums, *x.shape)
    return sums


def _power_of_two(n):
    """The smallest one that is at least n."""
    return 1 << (n - 1).bit_length()
