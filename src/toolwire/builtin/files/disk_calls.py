"""The calls by which a disk acts below a folder's descriptor: those of Linux, or those of every POSIX system."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from toolwire.builtin.files.beneath import has_openat2, open_by_kernel, rename_by_kernel, stat_by_kernel, write_nameless
from toolwire.builtin.files.posix_calls import Write, open_by_steps, rename_by_link, stat_spelled, write_by_name
from toolwire.vocabulary.machine.system import IS_LINUX


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskCalls:
    """What differs between systems."""

    open_below: Callable[[int, str, int], int]
    """Opens a relative path below a descriptor with flags, and returns a descriptor. Follows no symbolic link."""
    stat_below: Callable[[int, str], os.stat_result]
    """Returns the status of a name in a folder. Follows no symbolic link."""
    rename: Callable[[int, str, int, str], None]
    """Renames a file in one folder to a name in another. An existing file is not replaced."""
    write_new: Callable[[int, str, Write], None]
    """Makes a file in a folder whose content the function writes."""


LINUX = DiskCalls(
    open_below=open_by_kernel, stat_below=stat_by_kernel, rename=rename_by_kernel, write_new=write_nameless
)
OLD_LINUX = DiskCalls(
    open_below=open_by_steps, stat_below=stat_by_kernel, rename=rename_by_kernel, write_new=write_nameless
)
"""For a kernel without openat2."""
POSIX = DiskCalls(open_below=open_by_steps, stat_below=stat_spelled, rename=rename_by_link, write_new=write_by_name)


def choose_calls() -> DiskCalls:
    """Returns the calls that this system has."""
    if not IS_LINUX:
        return POSIX
    return LINUX if has_openat2() else OLD_LINUX
