"""The child's set-up, in its order. A step that fails ends the child: a program never runs with less than it says.

    1  the channel becomes fd 3, every other descriptor is closed
    2  limits of the kernel
    3  no new privileges, death with the zygote, not dumpable
    6  random numbers of its own; set-up code leaves `sys.modules`

Steps 4 and 5 are the kernel's walls; they go between 3 and 6, and need everything above to be done already.
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
_FILES_CAP = 4096
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
_DROPPED = ("ctypes", "_ctypes", "resource", "socket", "_socket", "select", "selectors", "array", "mmap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the kernel lets one program have."""

    memory_bytes: int
    """Address space above what the interpreter needs itself."""
    cpu_s: int
    """Processor seconds until SIGXCPU; one more until SIGKILL."""


def prepare() -> Callable[[int, Allowance, int], None]:
    """The set-up, with everything looked up beforehand: what a child touches first, it must copy first.

    The returned function takes the channel's descriptor, the allowance, and the zygote's process id.
    """
    base_bytes = _address_space()
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    close_all = _closer()

    def lock_down(channel: int, allowance: Allowance, zygote: int) -> None:
        _take_channel(channel, close_all)
        _limit(base_bytes, allowance)
        _restrict(prctl, zygote)
        _settle_in()

    return lock_down


def _take_channel(channel: int, close_all: Callable[[], None]) -> None:
    """Step 1. `dup2` clears close-on-exec, which is of no matter: nothing is ever executed."""
    os.dup2(channel, CHANNEL)
    close_all()


def _limit(base_bytes: int, allowance: Allowance) -> None:
    """Step 2."""
    set_limit = resource.setrlimit
    memory = base_bytes + allowance.memory_bytes
    set_limit(resource.RLIMIT_AS, (memory, memory))
    set_limit(resource.RLIMIT_CPU, (allowance.cpu_s, allowance.cpu_s + 1))
    for what in (
        resource.RLIMIT_FSIZE,
        resource.RLIMIT_NOFILE,
        resource.RLIMIT_CORE,
        resource.RLIMIT_NPROC,
        resource.RLIMIT_MEMLOCK,
        resource.RLIMIT_MSGQUEUE,
    ):
        set_limit(what, (0, 0))


def _restrict(prctl: Any, zygote: int) -> None:
    """Step 3."""
    for option, value in ((_PR_SET_NO_NEW_PRIVS, 1), (_PR_SET_PDEATHSIG, _SIGKILL), (_PR_SET_DUMPABLE, 0)):
        if prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), f"prctl({option})")
    # A zygote that died before PDEATHSIG was set would leave this process to nobody.
    if os.getppid() != zygote:
        os._exit(0)


def _settle_in() -> None:
    """Step 6. The modules stay in memory: this is tidiness, not a wall."""
    random.seed()
    for name in _DROPPED:
        sys.modules.pop(name, None)


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
