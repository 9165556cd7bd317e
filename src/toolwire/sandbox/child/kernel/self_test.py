"""Tests each layer of the sandbox with children that run into it. Nothing is reported that was not observed.

Each layer is tried by a child that has it and not the later ones, which would answer first. The last child is set up
exactly like a program. A child makes its attempts and sends the outcomes; an attempt that succeeds does no harm.
"""

import os
import signal
import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass

from . import attempts
from .attempts import Outcome
from .lockdown import Allowance, Layer
from .namespaces import HOST_NAME, NamespaceState

ALLOWANCE = Allowance(memory_bytes=attempts.MEMORY_BYTES // 2, cpu_s=5)
"""The allowance of the self-test's children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReport:
    """The outcomes that one child sent, and how it ended.

    Attributes:
        outcomes: By attempt; empty when the child could not be set up.
        status: Its wait status.
    """

    outcomes: dict[str, Outcome]
    status: int


Try = Callable[[Callable[[], Mapping[str, Outcome]], Collection[Layer], Callable[[], None]], ChildReport]
"""Sets a child up with these layers, lets it make the attempts, send the outcomes, and run the last function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedIsolation:
    """The observed isolation.

    Attributes:
        level: `none`, `process`, `kernel` or `kernel+namespaces`.
        report: By layer, in words; the text of a layer that does not hold begins with `NOT`.
        layers: The layers that a child can be set up with here.
    """

    level: str
    report: dict[str, str]
    layers: frozenset[Layer]


def examine(attempt: Try, present: frozenset[Layer], landlock_abi: int, entered: NamespaceState) -> ObservedIsolation:
    """Tries every layer; takes about ten children."""
    layers = _possible(attempt, present)
    process = _process(attempt)
    limits = _limits(attempt, layers)
    landlock = _landlock(attempt, layers, landlock_abi)
    seccomp = _seccomp(attempt, layers)
    namespaces = _namespaces(attempt, entered)
    level = "none"
    if process.holds and limits.holds:
        level = "process"
        if seccomp.holds and landlock.holds:
            level = "kernel+namespaces" if namespaces.holds else "kernel"
    report = {"process": process, "limits": limits, "landlock": landlock, "seccomp": seccomp, "namespaces": namespaces}
    return ObservedIsolation(level=level, report={name: found.text for name, found in report.items()}, layers=layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LayerResult:
    holds: bool
    text: str


def _possible(attempt: Try, present: frozenset[Layer]) -> frozenset[Layer]:
    """Returns the layers with which a child can be set up at all."""
    return frozenset(layer for layer in present if attempt(dict, [layer], _nothing).status == 0)


def _process(attempt: Try) -> _LayerResult:
    expected = {
        "capabilities": "none",
        "no_new_privs": "1",
        "death with the zygote": "9",
        "dumpable": "0",
        "environment": "empty",
    }
    found = attempt(attempts.own_state, [], _nothing).outcomes
    return _judge(found, expected, "own process: empty environment, no capabilities, no new privileges")


def _limits(attempt: Try, layers: frozenset[Layer]) -> _LayerResult:
    expected = {
        "memory beyond the limit": "MemoryError",
        "processor time": f"{ALLOWANCE.cpu_s} s",
        "open a file": "EMFILE",
    }
    found = attempt(attempts.beyond_limits, layers & {"limits"}, _nothing).outcomes
    # Root may start processes beyond its limit; seccomp and the PID namespace prevent that.
    processes = "" if found.pop("fork", "") == "EAGAIN" else ", but not on processes, since the host runs as root"
    return _judge(found, expected, f"limits on memory, processor time and descriptors{processes}")


def _landlock(attempt: Try, layers: frozenset[Layer], abi: int) -> _LayerResult:
    if not abi:
        return _LayerResult(holds=True, text="not there: this kernel has no Landlock, or it is switched off")
    expected = {"open a folder": "EACCES"}
    if abi >= 4:
        expected["connect by TCP"] = "EACCES"
    if abi >= 6:
        expected["reach an abstract socket"] = "EPERM"
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listener:
        listener.bind("")
        name = listener.getsockname()
        found = attempt(lambda: attempts.outside(name), layers & {"landlock"}, _nothing).outcomes
    found = {name: outcome for name, outcome in found.items() if name in expected}
    return _judge(found, expected, f"ABI {abi}: {', '.join(expected)} refused")


def _seccomp(attempt: Try, layers: frozenset[Layer]) -> _LayerResult:
    expected = dict.fromkeys(attempts.FORBIDDEN, "EPERM") | {
        "start a thread": "ENOSYS",
        "ask for the parent": "done",
        "memory beyond the limit": "MemoryError",
        "ptrace": "SIGSYS",
    }
    tried = attempt(attempts.like_a_program, layers, attempts.trace)
    found = dict(tried.outcomes)
    if found:
        killed = os.WIFSIGNALED(tried.status)
        found["ptrace"] = signal.Signals(os.WTERMSIG(tried.status)).name if killed else "done"
    return _judge(found, expected, "files, sockets, processes, signals, executable memory refused, ptrace kills")


def _namespaces(attempt: Try, entered: NamespaceState) -> _LayerResult:
    expected = {
        "own process id": "1",
        "look at /usr": "ENOENT",
        "make a folder": "EROFS",
        "reach the loopback": "ENETUNREACH",
        "host name": HOST_NAME,
    }
    judged = _judge(
        attempt(attempts.surroundings, [], _nothing).outcomes, expected, "no files, no network, no other processes"
    )
    if judged.holds or not entered.refused:
        return judged
    return _LayerResult(holds=False, text=f"NOT there: {entered.refused}")


def _judge(found: Mapping[str, Outcome], expected: Mapping[str, Outcome], holds: str) -> _LayerResult:
    if not found:
        return _LayerResult(holds=False, text="NOT there: no child can be set up with it")
    wrong = [
        f"{name}: {found.get(name, 'not tried')}"
        for name, outcome in expected.items()
        if found.get(name, "not tried") != outcome
    ]
    return _LayerResult(holds=not wrong, text=f"NOT in force: {', '.join(wrong)}" if wrong else holds)


def _nothing() -> None:
    """The last function of most children: does nothing."""
