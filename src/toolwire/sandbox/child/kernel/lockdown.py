"""The child's set-up, in its order. A step that fails ends the child: a program never runs with less isolation.

    1  the channel becomes fd 3 (to the host) and fd 4 (from it), every other descriptor is closed
    2  limits of the kernel
    3  no capabilities, no new privileges, death with the zygote, not dumpable
    4  Landlock
    5  seccomp, last: it takes away the calls that the steps before it need
    6  random numbers of its own; set-up code is gone from `sys.modules`

Settings that every child inherits unchanged are made once, in the zygote. A page that a child does not touch is not
copied, and copying is half the time to the first line of a program. The zygote limits memory and processor time from
outside (`allow`), so that a locked child can wait for a program whose limits are not known yet.
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
"""One step. Prefer C functions to Python ones: the pages that a step touches are copied. A true result is a refusal."""

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
    """The resources that the kernel allows one program."""

    memory_bytes: int
    """Address space above the interpreter's own need."""
    cpu_s: int
    """Processor seconds until SIGXCPU; one more until SIGKILL."""


class Lockdown:
    """The set-up, with all inherited parts already done. The zygote makes it before it forks."""

    def __init__(self) -> None:
        # Reserves these numbers, so that a pipe of the zygote never gets one: the second `dup2` would overwrite the
        # first.
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
        """The layers that this kernel seems to have. Only a child can tell if they hold."""
        found: set[Layer] = {"limits"}
        if self._has_ruleset:
            found.add("landlock")
        if self._load_filter is not None:
            found.add("seccomp")
        return frozenset(found)

    def steps(self, zygote: int, layers: Collection[Layer]) -> tuple[Step, ...]:
        """Returns the steps that `apply` runs.

        `zygote` is the id that a child sees as its parent's; 0 in a separate PID namespace.
        """
        found = _closer()
        if "limits" in layers:
            found += [partial(_set_limit, what, _NONE) for what in _FOR_CHILD]
        found += _restrictions(zygote)
        if "landlock" in layers:
            found.append(landlock.restricter(_RULESET))
        found.append(partial(os.closerange, _RULESET, _RULESET + 1))
        if "seccomp" in layers and self._load_filter is not None:
            found.append(self._load_filter)
        # A fork has its parent's random state. This goes past Python's own `seed`, which does nothing more without an
        # argument.
        found.append(super(random.Random, _GENERATOR).seed)
        return tuple(found)

    def allow(self, process: int, allowance: Allowance) -> None:
        """Limits memory and processor time of a child that waits for its program.

        Raises:
            OSError: the child is gone.
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
    # This clears close-on-exec; a child never executes another program.
    _dup2(outgoing, TO_HOST)
    _dup2(incoming, FROM_HOST)
    for step in steps:
        if step():
            raise OSError(f"{step} was refused")


def _inherit() -> None:
    """Makes the settings of steps 2, 3 and 6 that a zygote can have itself."""
    # Clears the second number that `gauss` keeps: a child's new seed does not replace it.
    random.seed()
    for what in _FOR_ALL:
        _set_limit(what, _NONE)
    syscalls.make_call("prctl", _PR_SET_NO_NEW_PRIVS, 1)
    # The modules stay in memory: this is tidiness, not a wall. `os.wait4` looks `resource` up by itself.
    for name in _DROPPED:
        sys.modules.pop(name, None)


def _most(what: int) -> int:
    """Returns the host's own limit; the lower of both limits applies."""
    most = resource.getrlimit(what)[1]
    return _ENDLESS if most == resource.RLIM_INFINITY else most


def _closer() -> list[Step]:
    """Returns step 1, without the channel."""
    above = _RULESET + 1
    try:
        syscalls.make_call("close_range", _LAST_FILE, _LAST_FILE, 0)
    except OSError:
        close_above: Step = partial(os.closerange, above, _FILES_CAP)
    else:
        close_above = syscalls.prepare_quick_call("close_range", above, _LAST_FILE, 0)
    return [partial(os.closerange, 0, TO_HOST), close_above]


def _capability_dropper() -> Step:
    """Returns the step that gives up every capability: root's, and those of a user namespace."""
    return syscalls.prepare_quick_call("capset", ctypes.addressof(_HEADER), ctypes.addressof(_NO_CAPABILITIES))


def _restrictions(zygote: int) -> list[Step]:
    """Returns step 3, without the settings that the zygote has made for itself already."""

    def end_alone() -> None:
        # If the zygote died before PDEATHSIG was set, this process would have no parent to end it.
        if _parent() != zygote:
            os._exit(0)

    return [
        _capability_dropper(),
        syscalls.prepare_quick_call("prctl", _PR_SET_PDEATHSIG, _SIGKILL),
        syscalls.prepare_quick_call("prctl", _PR_SET_DUMPABLE, 0),
        end_alone,
    ]


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
