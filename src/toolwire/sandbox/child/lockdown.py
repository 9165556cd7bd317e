"""The child's set-up, in its order. A step that fails ends the child: a program never runs with less than it says.

    1  the channel becomes fd 3 (to the host) and fd 4 (from it), every other descriptor is closed
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
from functools import partial
from typing import Literal, NamedTuple

from . import landlock, seccomp, syscalls
from .seccomp import FROM_HOST, TO_HOST

Layer = Literal["limits", "landlock", "seccomp"]
Step = Callable[[], object]
"""Done without a function of ours where that is possible: what it touches is copied. Anything true is a refusal."""

_RULESET = 5
_NOWHERE = 1
"""The zygote's standard output."""
_dup2 = os.dup2
_parent = os.getppid
_set_limit = resource.setrlimit
_set_limit_of = resource.prlimit
_NONE = (0, 0)
_ENDLESS = sys.maxsize
_MEMORY = resource.RLIMIT_AS
_PROCESSOR = resource.RLIMIT_CPU
_FILES_CAP = 4096
_LAST_FILE = 0x7FFFFFFF
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
_CAPABILITIES_VERSION = 0x20080522
_HEADER = ctypes.create_string_buffer(struct.pack("@Ii", _CAPABILITIES_VERSION, 0))
_NO_CAPABILITIES = ctypes.create_string_buffer(struct.calcsize("@6I"))
_DROPPED = ("ctypes", "_ctypes", "socket", "_socket", "select", "selectors", "array", "mmap")
_FOR_CHILD = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
_GENERATOR: random.Random = vars(random)["_inst"]
_FOR_ALL = (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE)


class Allowance(NamedTuple):
    """What the kernel lets one program have."""

    memory_bytes: int
    """Address space above what the interpreter needs itself."""
    cpu_s: int
    """Processor seconds until SIGXCPU; one more until SIGKILL."""


class Lockdown:
    """The set-up, with everything done beforehand that children inherit. For the zygote, before it forks."""

    def __init__(self) -> None:
        # So that no pipe of the zygote's gets these numbers: one end would be overwritten by the other.
        for number in (TO_HOST, FROM_HOST):
            _dup2(_NOWHERE, number)
        self._base_bytes = _address_space()
        self._most_bytes, self._most_cpu_s = _most(_MEMORY), _most(_PROCESSOR)
        self.landlock_abi = landlock.abi()
        self._has_ruleset = landlock.make_ruleset(self.landlock_abi, _RULESET)
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

    def steps(self, zygote: int, layers: Collection[Layer]) -> tuple[Step, ...]:
        """What `apply` does, ready to be done. `zygote` is a child's parent as it knows it; 0 in a namespace apart."""
        found = _closer()
        if "limits" in layers:
            found += [partial(_set_limit, what, _NONE) for what in _FOR_CHILD]
        found += _restrictions(zygote)
        if "landlock" in layers:
            found.append(landlock.restricter(_RULESET))
        found.append(partial(os.closerange, _RULESET, _RULESET + 1))
        if "seccomp" in layers and self._load_filter is not None:
            found.append(self._load_filter)
        # A fork has its parent's random state. Past Python's own `seed`, which does no more where nothing is given.
        found.append(super(random.Random, _GENERATOR).seed)
        return tuple(found)

    def allow(self, process: int, allowance: Allowance) -> None:
        """Limits memory and processor time of a child that waits for its program.

        Raises:
            OSError: it is gone.
        """
        memory_bytes, cpu_s = allowance
        memory_bytes = min(memory_bytes + self._base_bytes, self._most_bytes)
        _set_limit_of(process, _MEMORY, (memory_bytes, memory_bytes))
        _set_limit_of(process, _PROCESSOR, (min(cpu_s, self._most_cpu_s), min(cpu_s + 1, self._most_cpu_s)))


def apply(outgoing: int, incoming: int, steps: tuple[Step, ...]) -> None:
    """Locks the calling child down.

    Raises:
        OSError: a step was refused; the child must end.
    """
    # This clears close-on-exec, which is of no matter: nothing is ever executed.
    _dup2(outgoing, TO_HOST)
    _dup2(incoming, FROM_HOST)
    for step in steps:
        if step():
            raise OSError(f"{step} was refused")


def _inherit() -> None:
    """The parts of steps 2, 3 and 6 that a zygote can bear itself."""
    # A second number that was drawn and is kept is no part of the state that a child seeds anew.
    random.seed()
    for what in _FOR_ALL:
        _set_limit(what, _NONE)
    syscalls.call("prctl", _PR_SET_NO_NEW_PRIVS, 1)
    # The modules stay in memory: this is tidiness, not a wall. `os.wait4` looks `resource` up by itself.
    for name in _DROPPED:
        sys.modules.pop(name, None)


def _most(what: int) -> int:
    """The limit that the host itself is under: it stays as it is where it is the lower one."""
    most = resource.getrlimit(what)[1]
    return _ENDLESS if most == resource.RLIM_INFINITY else most


def _closer() -> list[Step]:
    """Step 1, without the channel."""
    above = _RULESET + 1
    try:
        syscalls.call("close_range", _LAST_FILE, _LAST_FILE, 0)
    except OSError:
        close_above: Step = partial(os.closerange, above, _FILES_CAP)
    else:
        close_above = syscalls.unchecked("close_range", above, _LAST_FILE, 0)
    return [partial(os.closerange, 0, TO_HOST), close_above]


def _capability_dropper() -> Step:
    """What gives up every capability: root's, and those that a user namespace brings."""
    return syscalls.unchecked("capset", ctypes.addressof(_HEADER), ctypes.addressof(_NO_CAPABILITIES))


def _restrictions(zygote: int) -> list[Step]:
    """Step 3, without what the zygote has given up for itself already."""

    def end_alone() -> None:
        # A zygote that died before PDEATHSIG was set would leave this process to nobody.
        if _parent() != zygote:
            os._exit(0)

    return [
        _capability_dropper(),
        syscalls.unchecked("prctl", _PR_SET_PDEATHSIG, _SIGKILL),
        syscalls.unchecked("prctl", _PR_SET_DUMPABLE, 0),
        end_alone,
    ]


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
