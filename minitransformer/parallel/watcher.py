"""Says which process of this machine was the first to die, where mpiexec ends them all.

    python watcher.py FOLDER NAME NAME ...

Whatever kills one of several processes, mpiexec kills the others some milliseconds later, and does
not say which one was the first. So the first process of each machine starts this program, which
imports nothing of the package. In FOLDER is a named pipe for each process, ``0`` for the one with
the first NAME; the process has it open as long as it lives, and says goodbye before it ends. The
system tells in which order pipes were closed.
"""

import os
import selectors
import sys

GOODBYE = b"."  # of a process that comes to its end with all others
TOLD = b"!"  # of one that has said itself what happened to it, and that it ends the others
PATIENCE = 5.0  # seconds that the others have when the first process is gone


def main(folder, *names):
    """Watch until all processes have said goodbye or one has died, then remove the folder."""
    dead = _first_dead(folder, names)
    if dead:
        print(f"minitransformer: {dead} has died, and all others end with it", file=sys.stderr)
    for number in range(len(names)):
        os.remove(os.path.join(folder, str(number)))
    os.rmdir(folder)


def _first_dead(folder, names):
    """The name of the process that has died, or None where none has, or where it said so itself."""
    with selectors.DefaultSelector() as selector:
        for number, name in enumerate(names):
            pipe = os.open(os.path.join(folder, str(number)), os.O_RDONLY | os.O_NONBLOCK)
            selector.register(pipe, selectors.EVENT_READ, name)
        selector.register(0, selectors.EVENT_READ)  # closed when the first process ends
        try:
            print("watching", flush=True)
        except BrokenPipeError:
            return names[0]
        left, patience = set(names), None
        while left and (ready := selector.select(patience)):
            for key, _ in ready:  # the first that was closed comes first
                said = os.read(key.fd, 1)
                if key.data is None:
                    patience = PATIENCE
                elif said != GOODBYE:
                    return None if said == TOLD else key.data
                left.discard(key.data)
                selector.unregister(key.fd)
    return min(left, default=None)  # who never opened a pipe, if any


if __name__ == "__main__":
    main(*sys.argv[1:])
