"""Failpoints: where a rehearsal may kill the worker itself.

NEOCLOUD_FAILPOINT names `<step>:<point>` with point one of claim, intent, effect, outcome, commit;
the file named by NEOCLOUD_FAILPOINT_ONCE remembers that it fired, so the next worker lives. Unset,
this costs one
look-up.
"""

import os
import signal
from pathlib import Path

_WANTED = os.environ.get("NEOCLOUD_FAILPOINT", "")
_ONCE = os.environ.get("NEOCLOUD_FAILPOINT_ONCE", "")


def reach(step: str, point: str) -> None:
    """Die here by SIGKILL if this is the failpoint asked for."""
    if not _WANTED or f"{step}:{point}" != _WANTED:
        return
    if _ONCE:
        marker = Path(_ONCE)
        if marker.exists():
            return
        marker.touch()
    os.kill(os.getpid(), signal.SIGKILL)
