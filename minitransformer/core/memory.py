"""Memory that the C library keeps for the next array, in place of giving it back to the system.

A training step makes and drops some thousand arrays of megabytes each. glibc asks the system for
every one anew, and the system hands out such memory page by page, cleared: thousands of page faults
a step. Kept, the memory is handed out again at once.
"""

import ctypes
import platform

# The numbers of the options in glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
MEGABYTE = 1 << 20


def keep_freed_memory():
    """Let the process keep the memory of arrays it has dropped, up to its peak, until it ends.

    Only with glibc, that is on most Linux systems; elsewhere nothing happens. It holds for arrays
    of up to 32 MB, the most that glibc allows.

    Returns:
        whether it was done.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = {
        M_MMAP_THRESHOLD: 32 * MEGABYTE,  # arrays below come from memory that is kept
        M_TRIM_THRESHOLD: 2**31 - 1,  # do not give back what is free at its end
        M_TOP_PAD: 64 * MEGABYTE,  # nor the 64 MB pieces that threads get theirs in
    }
    return sum(mallopt(option, value) for option, value in settings.items()) == len(settings)
