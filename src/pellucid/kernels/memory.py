"""Keeping memory between the steps of a training: pages once taken from the system are used again, not given back.

glibc takes each large array from the system and gives it back when it dies, and gives back the end of its heap as soon as
that is free. A training step makes the arrays of the last step anew; each page of them would then be cleared by the system
and mapped at first touch: 2,000 to 3,000 pages a step of a small network, some hundredths of its time. Two limits of `malloc` are raised, once,
when the first compiled kernel is loaded; then blocks of any usual size stay with the process and the next step finds them.
A pool of arrays on top of that was not worth its code: there was no page left for it to save.

What this costs: the process keeps the most memory it ever used, for itself; other arrays of it use it again. Arrays of 1 GiB
and more go back to the system as before. `PELLUCID_MEMORY=system` in the environment leaves `malloc` as it is, and so does any
setting of these limits there (`MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_`, `GLIBC_TUNABLES`). Other C libraries are
left alone.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["keep_pages"]

# From <malloc.h> of glibc.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT = 1 << 30  # bytes; arrays from here on are mapped and given back
MOST_FREE = (1 << 31) - 1  # bytes at the end of the heap before it is cut; the largest number mallopt takes
OWN_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_pages() -> bool:
    """Raise the limits; whether that was possible and wanted."""
    if os.environ.get("PELLUCID_MEMORY", "").lower() == "system" or any(name in os.environ for name in OWN_SETTINGS):
        return False
    if not _is_glibc():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    kept = any(mallopt(_M_MMAP_THRESHOLD, size) for size in (LARGEST_KEPT, 1 << 25))  # older versions allow 32 MiB at most
    return bool(mallopt(_M_TRIM_THRESHOLD, MOST_FREE)) and kept


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError, OSError):  # no such function, name or answer on this system
        return False
