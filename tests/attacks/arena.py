"""Runs attacks, and records the traces that the host observed of each."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import toolwire.sandbox
from tests.attacks.attack import USUAL_LIMITS, Attack, Sign, prelude
from tests.attacks.canaries import ENVIRONMENT_NAME, Canaries
from toolwire import Limits, ToolRegistry, ToolSpec, WasmRunner
from toolwire.invocation.ports.blocking import BlockingPorts
from toolwire.runtime.runtime import Runtime
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.report import Isolation, ProgramResult
from toolwire.sandbox.wasm.machine import GUEST_MB
from toolwire.sandbox.zygote import Zygotes

HONEST = "__result__ = [add(1, 2), math.sqrt(16), 'a'.upper(), sum(range(5))]"
HONEST_VALUE = [3, 4.0, "A", 10]
SPARES = 2
"""Locked children that the fork server keeps ready."""
SETTLE_S = 20
"""Seconds that a killed process may take to be gone; it takes a few milliseconds."""
CONTROL_SETTLE_S = 0.2
SLACK_S = 5
"""Seconds above a limit after which a run counts as unlimited: far above the delays of a busy machine."""
GROWTH_KIB = 48 << 10
"""The growth of the host's memory that one program must not reach: ten times its largest message, and the needs of
others."""
STARTED_SCRIPT = "start.py"
_CHILD = Path(toolwire.sandbox.__file__).parent / "child"
_NAIVE_HOST = Path(__file__).parent / "naive_host.py"
_WITHOUT = Path(__file__).parent / "zygotes.py"
_NAIVE_PATIENCE_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an attack."""

    signs: set[Sign]
    """The traces that the host observed; empty when the attack failed."""
    results: tuple[ProgramResult, ...]
    """The results of the program, and of the program run after it."""


class Arena:
    """A registry with tools that are granted, and others that are not, over a sandbox of its own."""

    guest_kib = 0
    """The memory of this process that a program itself may have."""

    def __init__(self, canaries: Canaries, *, without: str = "", permit_all: bool = False) -> None:
        """`without` names the layers that are taken away; `permit_all` takes away the rules of the registry."""
        self._canaries = canaries
        self._folder = tempfile.TemporaryDirectory(prefix="toolwire-arena-")
        folder = Path(self._folder.name)
        folder.chmod(0o755)
        self._script = _linked(folder, without)
        # Without its layers it is there to leave processes behind: no use in waiting long for them.
        self.settle_s = SETTLE_S if not without else CONTROL_SETTLE_S
        self._runtime = Runtime()
        self._sandbox = self._runtime.own("sandbox", lambda: Sandbox(zygotes=Zygotes(self._script)))
        self._ran: list[str] = []
        self.registry = _registry(self._ran, permit_all=permit_all)
        self.registry._parts.change(lambda scope: replace(scope, ports=BlockingPorts(self._runtime)))

    def run(self, attack: Attack, *, source_checks: bool = False, limits: Limits | None = None) -> Outcome:
        """Runs the attack, looks everywhere, and then sees whether the host still runs an honest program."""
        limits = limits or attack.limits
        targets = self._canaries.targets
        zygote = self._zygote()
        self._ran.clear()
        before = _Host()
        sources = [prelude(targets) + source for source in (attack.source, attack.then) if source]
        results = tuple(
            self.registry.run_program(source, limits=limits, source_checks=source_checks) for source in sources
        )
        told = [getattr(result, field.name) for result in results for field in dataclasses.fields(result)]
        signs = self._canaries.read_from(repr(told)) | self._canaries.seen()
        for result in results:
            signs |= _beyond(result, limits)
        signs |= before.changes(GROWTH_KIB + self.guest_kib) | self._tools(results)
        if self.registry.run_program(HONEST).value != HONEST_VALUE:
            signs.add("host fault")
        if self._zygote() != zygote:
            signs.add("zygote")
        if left := self._left_alive():
            signs.add("process")
            for process in left:
                _end(process)
        return Outcome(signs=signs, results=results)

    @property
    def isolation(self) -> Isolation:
        """The level that the self-test observed."""
        return self._sandbox.zygotes.current().isolation

    def close(self) -> None:
        """Ends everything, whatever an attack has left included."""
        self._runtime.close()
        for process in _processes(self._script):
            _end(process)
        self._folder.cleanup()

    def _zygote(self) -> int:
        return self._sandbox.zygotes.current().process_id

    def _tools(self, results: tuple[ProgramResult, ...]) -> set[Sign]:
        found: set[Sign] = set()
        if {"forbidden", "ask_first", "elsewhere"} & set(self._ran):
            found.add("tool")
        told = Counter(call.tool for result in results for call in result.calls)
        if Counter(self._ran) - told:
            found.add("false log")
        return found

    def _left_alive(self) -> list[int]:
        """The processes besides the fork server and the spares that it keeps."""
        until = time.monotonic() + self.settle_s
        while True:
            server = self._sandbox.zygotes.current().process_id
            parents = _processes(self._script)
            strangers = [
                item for item, parent in parents.items() if item != server and parent not in (server, os.getpid())
            ]
            children = [item for item, parent in parents.items() if parent == server]
            if not strangers and len(children) <= SPARES:
                return []
            if time.monotonic() > until:
                return strangers + children[SPARES:]
            # No event reports the end of a process that is not a child.
            time.sleep(0.002)


class WasmArena(Arena):
    """The same, with programs in WebAssembly inside the test process."""

    # A program's memory is this process's, and a message of a hostile guest may be as large once more.
    guest_kib = 2 * (USUAL_LIMITS.memory_mb + GUEST_MB) << 10

    def __init__(self, canaries: Canaries) -> None:
        super().__init__(canaries)
        self._sandbox = self._runtime.own("wasm", WasmRunner)
        self.registry._parts.change(lambda scope: replace(scope, runner="wasm"))
        self.registry.run_program("1")
        self._children: set[int] = set()

    def run(self, attack: Attack, *, source_checks: bool = False, limits: Limits | None = None) -> Outcome:
        # Other tests of this process start others.
        self._children = _children()
        return super().run(attack, source_checks=source_checks, limits=limits)

    def _zygote(self) -> int:
        return 0

    def _left_alive(self) -> list[int]:
        return sorted(_children() - self._children)


def _children() -> set[int]:
    """The processes that this one has started."""
    found: set[int] = set()
    for children in Path("/proc/self/task").glob("*/children"):
        # A thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found |= set(map(int, children.read_text().split()))
    return found


def naive(attack: Attack, canaries: Canaries) -> set[Sign]:
    """The traces of the attack on a host that runs it in its own process and believes every frame."""
    sources = [prelude(canaries.targets) + source for source in (attack.source, attack.then) if source]
    process = subprocess.Popen(
        [sys.executable, "-I", str(_NAIVE_HOST)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={ENVIRONMENT_NAME: canaries.environment_secret},
        process_group=0,
    )
    try:
        output = process.communicate(json.dumps({"sources": sources}).encode(), _NAIVE_PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0] + b"\nHOST FAULT it hangs"
    text = output.decode("utf-8", "replace")
    signs = canaries.read_from(text) | canaries.seen()
    lines = text.splitlines()
    if "DONE" not in lines or any(line.startswith("HOST FAULT") for line in lines):
        signs.add("host fault")
    if {"TOOL forbidden", "TOOL ask_first"} & set(lines):
        signs.add("tool")
    if "FALSE LOG" in lines:
        signs.add("false log")
    if len(output) > attack.limits.output_bytes:
        signs.add("over limit")
    return signs


def used_more(result: ProgramResult, limits: Limits) -> bool:
    """Whether a program went on beyond these limits when it was given more."""
    return (
        result.duration_s > limits.wall_s
        or result.cpu_s > limits.cpu_s
        or len(result.stdout.encode("utf-8", "surrogatepass")) > limits.output_bytes
        or len(result.calls) > limits.calls
        or len(repr(result.value)) > limits.result_bytes
    )


def _beyond(result: ProgramResult, limits: Limits) -> set[Sign]:
    patience = min(limits.wall_s, limits.deadline_s) + SLACK_S
    error = result.error
    told = len(error.type) + len(error.message) + len(error.traceback) if error else 0
    is_beyond = (
        result.duration_s > patience
        or len(result.stdout.encode("utf-8", "surrogatepass")) > limits.output_bytes
        or result.stdout_bytes > limits.output_flood_bytes + (1 << 20)
        or len(result.calls) > limits.calls
        or len(repr(result.value)) > limits.result_bytes + 1000
        or told > 1 << 20
    )
    return {"over limit"} if is_beyond else set()


class _Host:
    """The test process itself, before an attack."""

    def __init__(self) -> None:
        # Resets the peak, so that the later reading covers only the time from here.
        Path("/proc/self/clear_refs").write_text("5")
        self._peak = _peak_kib()
        self._folder, self._mask = Path.cwd(), sys.getrecursionlimit()
        self._environment = dict(os.environ)

    def changes(self, growth_kib: int) -> set[Sign]:
        """`host fault` if the host grew or changed."""
        grown = _peak_kib() - self._peak > growth_kib
        now = (Path.cwd(), sys.getrecursionlimit(), dict(os.environ))
        return {"host fault"} if grown or now != (self._folder, self._mask, self._environment) else set()


def _peak_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def _registry(ran: list[str], *, permit_all: bool) -> ToolRegistry:
    registry = ToolRegistry()

    def tell(name: str) -> Callable[[str], str]:
        def run(text: str) -> str:
            """Takes text."""
            ran.append(name)
            return text

        run.__name__ = name
        return run

    def add(a: int, b: int) -> int:
        """Adds."""
        ran.append("add")
        return a + b

    registry.register_tool_to_library(add)
    registry.register_tool_to_library(tell("note"))
    for name, permission in (("forbidden", "deny"), ("ask_first", "confirm")):
        tool = ToolSpec.from_function(tell(name), permission="auto" if permit_all else permission)
        registry.register_tool_to_library(tool)
    # Registered with another registry: no program of this one is given it.
    ToolRegistry().register_tool_to_library(tell("elsewhere"))
    return registry


def _linked(folder: Path, without: str) -> Path:
    """The script to start, under a path that only the processes of this arena have in their command line."""
    (folder / "child").symlink_to(_CHILD)
    if not without:
        return folder / "child" / STARTED_SCRIPT
    script = folder / f"without {without}.py"
    script.symlink_to(_WITHOUT)
    return script


def _processes(script: Path) -> dict[int, int]:
    """The live processes that were forked from the one started by this script, and their parents' ids."""
    found: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if str(script).encode() in line.split(b"\0") and state != "Z":
                found[int(folder.name)] = int(parent)
    return found


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
