"""What never ends, as learners write it, and is stopped soon: no test has to wait, or be hurried.

A limit shortened as a whole would also count what comes before the loop, which a slow machine may
not have done by then. So the loop shortens what is left of its time; without any it does end.
"""

ENDLESS = (
    "import signal; left, again = signal.getitimer(signal.ITIMER_REAL); "
    "signal.setitimer(signal.ITIMER_REAL, left / 1000, again); sum(0 for _ in range(10**7))"
)
STOPPED = "more than 60 s: is there a loop that never ends?"
