"""Batches sent to the GPU ahead of their turn: while it works on one, the next is on its way.

A second stream copies, so that no copy stands in the queue between two kernels, and from pinned
memory, which CuPy takes for every copy, so that the host does not wait either. The arrays of a
batch that are of one type go up as one. They are checked before, on the host, where that costs no
waiting.
"""

from dataclasses import fields, replace

import numpy as np

from minitransformer.core.backend import is_array


def staged(batches, device, check):
    """Yield each batch with its arrays on ``device``, the next one uploaded before this is used.

    The work on them has to be queued on the stream that is current now. On the CPU the batches are
    yielded as they are.

    Args:
        batches: any number of dataclasses, on the host.
        device: a Device.
        check: a function that is given each batch, and raises where it is not for the model.
    """
    if device.xp is np:
        yield from batches
        return
    main = device.xp.cuda.get_current_stream()
    side = device.xp.cuda.Stream(non_blocking=True)  # by default it would wait for the main one

    def upload(batch):
        check(batch)
        # CuPy may hand out memory of a batch that is gone, and whose work is queued but not done.
        side.wait_event(main.record())
        with side:
            there = uploaded(batch, device)
        return there, side.record()

    ahead = None
    for batch in batches:
        now, ahead = ahead, upload(batch)
        if now is not None:
            yield _ready(main, *now)
    if ahead is not None:
        yield _ready(main, *ahead)


def uploaded(batch, device):
    """A batch whose arrays are on ``device``, those of one type side by side in one array."""
    arrays = {f.name: getattr(batch, f.name) for f in fields(batch)}
    arrays = {name: x for name, x in arrays.items() if is_array(x)}
    there = {}
    for dtype in dict.fromkeys(x.dtype for x in arrays.values()):
        of_type = {name: x for name, x in arrays.items() if x.dtype == dtype}
        together = device.asarray(np.concatenate([x.reshape(-1) for x in of_type.values()]))
        start = 0
        for name, x in of_type.items():
            there[name] = together[start : start + x.size].reshape(x.shape)
            start += x.size
    return replace(batch, **there)


def _ready(main, batch, arrived):
    main.wait_event(arrived)  # the GPU waits, not the host
    return batch
