"""Two GPUs whose memory is the host's, and whose streams have done everything already."""

import ctypes
import itertools
import threading

GPUS = 2
VERSION = 12090
COMPUTE_CAPABILITY = {75: 9, 76: 0}  # by the numbers of these attributes

_libc = ctypes.CDLL(None)
_libc.malloc.restype, _libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_libc.free.restype, _libc.free.argtypes = None, [ctypes.c_void_p]
_current = threading.local()
_numbers = itertools.count(1000)  # of streams and events


def getDeviceCount():
    return GPUS


def getDevice():
    return getattr(_current, "gpu", 0)


def setDevice(gpu):
    _current.gpu = gpu


def deviceGetAttribute(attribute, gpu):
    return COMPUTE_CAPABILITY[attribute]


def getDeviceProperties(gpu):
    return {"warpSize": 32}


def runtimeGetVersion():
    return VERSION


driverGetVersion = runtimeGetVersion


def deviceCanAccessPeer(gpu, peer):
    return 0  # so that CuPy refuses an array of another GPU


def malloc(size):
    address = _libc.malloc(size)
    ctypes.memset(address, 0xFF, size)  # a float that nobody wrote is NaN
    return address


def hostAlloc(size, flags):
    return malloc(size)


free = freeHost = _libc.free


def pointerGetMemoryType(address):
    return 0  # of the host, and not pinned


def memcpy(to, source, size, kind, stream=None):
    ctypes.memmove(to, source, size)


def memcpyPeer(to, gpu, source, peer, size, stream=None):
    ctypes.memmove(to, source, size)


def memset(address, value, size, stream=None):
    ctypes.memset(address, value, size)


memcpyAsync, memcpyPeerAsync, memsetAsync = memcpy, memcpyPeer, memset


def _number(*settings):
    return next(_numbers)


def _nothing(*which):
    """There is nothing to wait for, and nothing to tidy up."""


streamCreate = streamCreateWithFlags = streamCreateWithPriority = _number
eventCreate = eventCreateWithFlags = _number
streamSynchronize = streamWaitEvent = streamDestroy = _nothing
eventRecord = eventSynchronize = eventDestroy = _nothing
deviceSynchronize = _ensure_context = _nothing


def streamIsCapturing(stream):
    return 0
