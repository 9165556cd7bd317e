"""Landlock: takes away every right that this kernel can take away; no rule gives any back."""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass

from . import syscalls

_VERSION_FLAG = 1
_KNOWN_ABI = 6
"""The last version that added rights known here; a later one is used as this one."""
_FILES_BY_ABI = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of bits of file rights in each version; versions between have as many as the one before."""
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11
_SIZE_BY_ABI = {1: 8, 4: 16, 6: 24}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights that a ruleset takes away, as the kernel's bits."""

    files: int
    network: int
    scopes: int
    size: int
    """Bytes of the attributes that this version reads."""


def abi() -> int:
    """Returns this kernel's version of Landlock; 0 if it is absent, switched off or refused."""
    try:
        return syscalls.make_call("landlock_create_ruleset", 0, 0, _VERSION_FLAG)
    except OSError:
        return 0


def rights(version: int) -> Rights:
    """Returns all rights of that version, which is at least 1."""
    return Rights(
        files=(1 << _latest(_FILES_BY_ABI, version)) - 1,
        network=_BIND_AND_CONNECT_TCP if version >= 4 else 0,
        scopes=_ABSTRACT_SOCKETS_AND_SIGNALS if version >= _KNOWN_ABI else 0,
        size=_latest(_SIZE_BY_ABI, version),
    )


def make_ruleset(version: int, descriptor: int) -> bool:
    """Makes the ruleset once for all children and keeps it at `descriptor`; returns False if that was not possible."""
    if not version:
        return False
    taken = rights(version)
    attributes = _Attributes(taken.files, taken.network, taken.scopes)
    try:
        made = syscalls.make_call("landlock_create_ruleset", ctypes.addressof(attributes), taken.size, 0)
    except OSError:
        return False
    if made != descriptor:
        os.dup2(made, descriptor, inheritable=False)
        os.close(made)
    return True


def restricter(descriptor: int) -> Callable[[], object]:
    """Returns a function that puts the calling process under the ruleset permanently."""
    return syscalls.prepare_quick_call("landlock_restrict_self", descriptor, 0)


class _Attributes(ctypes.Structure):
    """struct landlock_ruleset_attr"""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


def _latest(table: dict[int, int], version: int) -> int:
    return table[max(known for known in table if known <= version)]
