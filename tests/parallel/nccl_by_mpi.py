"""The module ``cupy.cuda.nccl``, played by MPI, where the strict stand-in plays CuPy.

Signatures and numbers are those of CuPy 14: buffers are addresses. What lies at one is known from
the array that was last asked for it. Refused at once is what NCCL refuses, or what it would wait
for without end: sends that nobody receives, collective calls that differ between processes, arrays
of another type, device or stream, too short or not in one piece.
"""

import socket
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI
from strict_cupy import StrictArray, strict, this_thread

available = True
NCCL_SUM = 0
NCCL_FLOAT32, NCCL_FLOAT64 = 7, 8
TYPES = {NCCL_FLOAT32: np.float32, NCCL_FLOAT64: np.float64}

communicators = []  # all that were made
_arrays = {}  # by address
_group = None  # the calls of the group that is open


class NcclError(RuntimeError):
    pass


def get_version():
    return 22501


def get_unique_id():
    return MPI.COMM_WORLD.rank.to_bytes(128)


def gpu():
    """The machine and the address of the GPU that is current."""
    return socket.gethostname(), strict.cuda.runtime.deviceGetPCIBusId(this_thread.device)


def groupStart():
    global _group
    _require(_group is None, "a group within a group")
    _group = []


def groupEnd():
    global _group
    calls, _group = _group, None
    communicators[-1]._run(calls)


class NcclCommunicator:
    def __init__(self, ndev, commId, rank, config=None):
        self._world = MPI.COMM_WORLD.Dup()
        self._device, self.ended = this_thread.device, ""
        _require((ndev, rank) == (self._world.size, self._world.rank), "wrong rank")
        _require(commId == bytes(128) and type(commId) is bytes, "not the first process's id")
        _require(len(set(self._world.allgather(gpu()))) == ndev, "Duplicate GPU detected")
        communicators.append(self)

    def send(self, sendbuf, count, datatype, peer, stream):
        self._call("send", sendbuf, None, count, datatype, stream, peer)

    def recv(self, recvbuf, count, datatype, peer, stream):
        self._call("recv", None, recvbuf, count, datatype, stream, peer)

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        _require(op == NCCL_SUM, "another operation")
        self._call("allReduce", sendbuf, recvbuf, count, datatype, stream)

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        self._call("allGather", sendbuf, recvbuf, count, datatype, stream)

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        self._call("broadcast", sendbuff, recvbuff, count, datatype, stream, root)

    def destroy(self):
        self.ended = self.ended or "destroyed"

    def abort(self):
        self.ended = self.ended or "aborted"

    def _call(self, kind, source, target, count, datatype, stream, other=None):
        _require(not self.ended, "the communicator is no more")
        _require(stream == strict.cuda.get_current_stream().ptr, "another stream")
        if count == 0:
            return
        all_parts = self._world.size if kind == "allGather" else 1
        source = source if source is None else self._memory(source, count, datatype)
        target = target if target is None else self._memory(target, all_parts * count, datatype)
        call = (kind, count, datatype, other), source, target
        if _group is None:
            _require(kind not in ("send", "recv"), f"a {kind} in no group waits for the other end")
            self._run([call])
        else:
            _group.append(call)

    def _memory(self, address, count, datatype):
        """The array of NumPy that begins there."""
        _require(address in _arrays, "an address of no array")
        array = _arrays[address]
        _require(array._device == this_thread.device == self._device, "an array of another device")
        _require(array.dtype == TYPES[datatype], "another type")
        _require(array.flags.c_contiguous, "an array with gaps")
        _require(array.size >= count, "beyond the array's end")
        return array._data.reshape(-1)[:count]

    def _run(self, calls):
        plans = self._world.allgather([plan for plan, _, _ in calls])
        collective = [[p for p in plan if p[0] not in ("send", "recv")] for plan in plans]
        _require(all(c == collective[0] for c in collective), "collective calls differ")
        for rank, plan in enumerate(plans):
            for peer, theirs in enumerate(plans):
                sent = [p[1:3] for p in plan if p[::3] == ("send", peer)]
                awaited = [p[1:3] for p in theirs if p[::3] == ("recv", rank)]
                _require(sent == awaited, f"rank {rank} sends {sent}, and {peer} awaits {awaited}")
        # All is read before anything is written, as nothing is said of the order within a group.
        sent = [
            [x.copy() for (kind, _, _, to), x, _ in calls if (kind, to) == ("send", peer)]
            for peer in range(self._world.size)
        ]
        received = [iter(arrays) for arrays in self._world.alltoall(sent)]
        shared = [x.copy() for (kind, *_), x, _ in calls if kind not in ("send", "recv")]
        shared = zip(*self._world.allgather(shared), strict=True)
        for (kind, _, _, other), _, target in calls:
            if kind == "recv":
                target[:] = next(received[other])
            elif kind == "allReduce":
                target[:] = sum(reversed(next(shared)))  # in some order
            elif kind == "allGather":
                target[:] = np.concatenate(next(shared))
            elif kind == "broadcast":
                target[:] = next(shared)[other]


def _require(right, what):
    if not right:
        raise NcclError(f"NCCL_ERROR_INVALID_USAGE: {what}")


def _data(array):
    address = array._data.ctypes.data
    _arrays[address] = array
    return SimpleNamespace(ptr=address)


StrictArray.data = property(_data)
