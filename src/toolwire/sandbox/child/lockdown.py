"""The child's set-up, in its order. A step that fails ends the child: a program never runs with less than it says.

    1  the channel becomes fd 3, every other descriptor is closed
    2  limits of the kernel
    3  no new privileges, death with the zygote, not dumpable
    6  random numbers of its own; set-up code is gone from `sys.modules`

Steps 4 and 5 are the kernel's walls; they go between 3 and 6, and need everything above to be done already.
What every child inherits unchanged is done once, in the zygote, by `prepare`: a page that a child does not touch
is a page that it does not copy, and copying is half the time to the first line of a program.
"""

import ctypes
import os
import random
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CHANNEL = 3
_set_limit = resource.setrlimit
_NONE = (0, 0)
_FILES_CAP = 4096
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
_DROPPED = ("ctypes", "_ctypes", "socket", "_socket", "select", "selectors", "array", "mmap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the kernel lets one program have."""

    memory_bytes: int
    """Address space above what the interpreter needs itself."""
    cpu_s: int
    """Processor seconds until SIGXCPU; one more until SIGKILL."""


def prepare() -> Callable[[int, Allowance, int], None]:
    """The set-up, with everything done beforehand that children inherit. For the zygote, before it forks.

    The returned function takes the channel's descriptor, the allowance, and the zygote's process id.
    """
    base_bytes = _address_space()
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    close_all = _closer()
    _inherit(prctl)

    def lock_down(channel: int, allowance: Allowance, zygote: int) -> None:
        _take_channel(channel, close_all)
        _limit(base_bytes + allowance.memory_bytes, allowance.cpu_s)
        _restrict(prctl, zygote)
        _renew_random()

    return lock_down


def _take_channel(channel: int, close_all: Callable[[], None]) -> None:
    """Step 1. `dup2` clears close-on-exec, which is of no matter: nothing is ever executed."""
    os.dup2(channel, CHANNEL)
    close_all()


def _limit(memory_bytes: int, cpu_s: int) -> None:
    """Step 2, without what the zygote has limited for itself already."""
    _set_limit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    _set_limit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    _set_limit(resource.RLIMIT_NOFILE, _NONE)
    _set_limit(resource.RLIMIT_NPROC, _NONE)


def _restrict(prctl: Any, zygote: int) -> None:
    """Step 3, likewise."""
    _control(prctl, _PR_SET_PDEATHSIG, _SIGKILL)
    _control(prctl, _PR_SET_DUMPABLE, 0)
    # A zygote that died before PDEATHSIG was set would leave this process to nobody.
    if os.getppid() != zygote:
        os._exit(0)


def _renew_random() -> None:
    """Step 6. A fork has its parent's random state."""
    random.seed()


def _inherit(prctl: Any) -> None:
    """The parts of steps 2, 3 and 6 that a zygote can bear itself."""
    for what in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        _set_limit(what, _NONE)
    _control(prctl, _PR_SET_NO_NEW_PRIVS, 1)
    # The modules stay in memory: this is tidiness, not a wall. `os.wait4` looks `resource` up by itself.
    for name in _DROPPED:
        sys.modules.pop(name, None)


def _control(prctl: Any, option: int, value: int) -> None:
    if prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def _closer() -> Callable[[], None]:
    libc = ctypes.CDLL(None)
    close_range = getattr(libc, "close_range", None)

    def close_others() -> None:
        os.closerange(0, CHANNEL)
        if close_range is None or close_range(CHANNEL + 1, 0x7FFFFFFF, 0):
            os.closerange(CHANNEL + 1, _FILES_CAP)

    return close_others


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
