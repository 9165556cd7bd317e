"""The child's set-up, in its order. A step that fails ends the child: a program never runs with less than it says.

    1  the channel becomes fd 3, every other descriptor is closed
    2  limits of the kernel
    3  no capabilities, no new privileges, death with the zygote, not dumpable
    4  Landlock
    5  seccomp, last: it takes away what the steps before it need
    6  random numbers of its own; set-up code is gone from `sys.modules`

What every child inherits unchanged is done once, in the zygote: a page that a child does not touch is a page that it
does not copy, and copying is half the time to the first line of a program. Memory and processor time are limited by
the zygote from outside (`allow`), so that a child can wait, locked, for a program whose limits nobody knows yet.
"""

import ctypes
import os
import random
import resource
import struct
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from . import landlock, seccomp, syscalls

Layer = Literal["limits", "landlock", "seccomp"]

CHANNEL = 3
_RULESET = 4
_set_limit = resource.setrlimit
_set_limit_of = resource.prlimit
_NONE = (0, 0)
_FILES_CAP = 4096
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
_CAPABILITIES_VERSION = 0x20080522
_HEADER = ctypes.create_string_buffer(struct.pack("@Ii", _CAPABILITIES_VERSION, 0))
_NO_CAPABILITIES = ctypes.create_string_buffer(struct.calcsize("@6I"))
_DROPPED = ("ctypes", "_ctypes", "socket", "_socket", "select", "selectors", "array", "mmap")
_FOR_CHILD = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
_FOR_ALL = (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the kernel lets one program have."""

    memory_bytes: int
    """Address space above what the interpreter needs itself."""
    cpu_s: int
    """Processor seconds until SIGXCPU; one more until SIGKILL."""


class Lockdown:
    """The set-up, with everything done beforehand that children inherit. For the zygote, before it forks."""

    def __init__(self) -> None:
        self._base_bytes = _address_space()
        self._close_others = _closer()
        self._give_up: list[Callable[[], object]] = [
            _capability_dropper(),
            syscalls.prepared("prctl", _PR_SET_PDEATHSIG, _SIGKILL),
            syscalls.prepared("prctl", _PR_SET_DUMPABLE, 0),
        ]
        self.landlock_abi = landlock.abi()
        self._has_ruleset = landlock.make_ruleset(self.landlock_abi, _RULESET)
        self._restrict_files = landlock.restricter(_RULESET)
        self._load_filter = seccomp.loader()
        _inherit()

    @property
    def present(self) -> frozenset[Layer]:
        """The layers that this kernel seems to have. What they are worth, only a child can tell."""
        found: set[Layer] = {"limits"}
        if self._has_ruleset:
            found.add("landlock")
        if self._load_filter is not None:
            found.add("seccomp")
        return frozenset(found)

    def apply(self, channel: int, zygote: int, layers: Collection[Layer]) -> None:
        """Locks the calling child down. `zygote` is its parent's id as it knows it; 0 in a PID namespace of its own.

        Raises:
            OSError: a step was refused; the child must end.
        """
        self._take_channel(channel)
        if "limits" in layers:
            for what in _FOR_CHILD:
                _set_limit(what, _NONE)
        self._restrict(zygote)
        if "landlock" in layers:
            self._restrict_files()
        os.closerange(_RULESET, _RULESET + 1)
        if "seccomp" in layers and self._load_filter is not None:
            self._load_filter()
        # A fork has its parent's random state.
        random.seed()

    def allow(self, process: int, allowance: Allowance) -> None:
        """Limits memory and processor time of a child that waits for its program.

        Raises:
            OSError: it is gone.
        """
        memory = self._base_bytes + allowance.memory_bytes
        _set_limit_of(process, resource.RLIMIT_AS, _at_most(resource.RLIMIT_AS, memory, memory))
        cpu_s = allowance.cpu_s
        _set_limit_of(process, resource.RLIMIT_CPU, _at_most(resource.RLIMIT_CPU, cpu_s, cpu_s + 1))

    def _take_channel(self, channel: int) -> None:
        """Step 1. `dup2` clears close-on-exec, which is of no matter: nothing is ever executed."""
        os.dup2(channel, CHANNEL)
        self._close_others()

    def _restrict(self, zygote: int) -> None:
        """Step 3, without what the zygote has given up for itself already."""
        for give_up in self._give_up:
            give_up()
        # A zygote that died before PDEATHSIG was set would leave this process to nobody.
        if os.getppid() != zygote:
            os._exit(0)


def _inherit() -> None:
    """The parts of steps 2, 3 and 6 that a zygote can bear itself."""
    for what in _FOR_ALL:
        _set_limit(what, _NONE)
    syscalls.call("prctl", _PR_SET_NO_NEW_PRIVS, 1)
    # The modules stay in memory: this is tidiness, not a wall. `os.wait4` looks `resource` up by itself.
    for name in _DROPPED:
        sys.modules.pop(name, None)


def _at_most(what: int, soft: int, hard: int) -> tuple[int, int]:
    """A limit that the host itself is under stays as it is where it is the lower one."""
    cap = resource.getrlimit(what)[1]
    return (soft, hard) if cap == resource.RLIM_INFINITY else (min(soft, cap), min(hard, cap))


def _capability_dropper() -> Callable[[], object]:
    """What gives up every capability: root's, and those that a user namespace brings."""
    return syscalls.prepared("capset", ctypes.addressof(_HEADER), ctypes.addressof(_NO_CAPABILITIES))


def _closer() -> Callable[[], None]:
    libc = ctypes.CDLL(None)
    close_range = getattr(libc, "close_range", None)

    def close_others() -> None:
        os.closerange(0, CHANNEL)
        if close_range is None or close_range(_RULESET + 1, 0x7FFFFFFF, 0):
            os.closerange(_RULESET + 1, _FILES_CAP)

    return close_others


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
