"""`WasmRunner`: runs programs in WebAssembly, inside this process, on any system."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from weakref import WeakSet

from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import INSTALL_WASM, Isolation
from toolwire.sandbox.wasm.compiled import Load, load_or_compile, target_name
from toolwire.sandbox.wasm.guest_file import guest
from toolwire.sandbox.wasm.machine import Machine, make_config
from toolwire.sandbox.wasm.wasm_drive import WasmDrive
from toolwire.sandbox.wasm.wasm_process import WasmProcess
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.machine.system import call_at_fork

IDLE_LIMIT = 8
"""Engines that are kept for later programs: their code is shared, and each has 3 MB of its own."""
_PULLEY = "pulley64"
_SELF_TEST = """
import sys
sys.path.insert(0, sys.argv[1])
from wasmtime import Engine, Instance, Module, Store
engine = Engine()
store = Store(engine)
module = Module(engine, '(module (func (export "f") (result i32) (i32.const 7)))')
sys.exit(Instance(store, module, []).exports(store)["f"](store) != 7)
"""


class WasmRunner(Sandbox):
    """Runs programs in WebAssembly: CPython with the code of toolwire's sandbox, as a guest of this process.

    For `ToolRegistry(runner="wasm")` and `Session(runner="wasm")`, which take the one that is shared. It needs
    `pip install 'toolwire[wasm]'`. Its isolation level is `wasm`. The first program of a user waits 4 to 9 seconds
    until the guest is compiled for the machine; that time is not the program's.
    """

    usual_isolation = "wasm"
    _make_drive = WasmDrive

    def __init__(self) -> None:
        """Compiles and loads nothing before the first program."""
        self._machines = WasmMachines()
        super().__init__(self._machines)
        _RUNNERS.add(self)

    def isolation(self) -> Isolation:
        """Returns what holds programs here; compiles the guest if nobody has.

        Raises:
            SandboxUnavailable: wasmtime or the guest is missing; the message says what to do.
        """
        return self._machines.isolation()

    @property
    def replay_engine(self) -> str:
        """Names where records of its programs replay: with this guest, on any system and Python."""
        try:
            return guest().replay_engine
        except SandboxUnavailable:
            return "wasm without a guest"


class WasmMachines:
    """Gives each program an engine with the guest: an idle one, or a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[Machine] = deque()
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """True if the guest is loaded in this process."""
        return bool(_loaded)

    def isolation(self) -> Isolation:
        """Returns the isolation; compiles and loads the guest if no program has run yet.

        Raises:
            SandboxUnavailable: wasmtime or the guest is missing.
        """
        return Isolation(level="wasm", report=dict(_find_guest().report))

    def spawn(self, limits: Limits) -> tuple[WasmProcess, Isolation]:  # noqa: ARG002 - the drive applies them
        """Returns a machine for one program. Raises as `isolation`."""
        if self._is_closed:
            raise SandboxUnavailable("the runner is closed", report={}, how_to_fix="Make a new WasmRunner.")
        isolation = self.isolation()
        with self._lock:
            machine = self._idle.pop() if self._idle else None
        return WasmProcess(machine or _find_guest().new_machine(), self._release), isolation

    def close(self) -> None:
        """Lets go of the engines."""
        self._is_closed = True
        self.forget()

    def forget(self) -> None:
        """Lets go of the engines, in a forked child too: they belong to threads of its parent."""
        self._lock = threading.Lock()
        self._idle = deque()

    def _release(self, machine: Machine) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < IDLE_LIMIT:
                self._idle.append(machine)


class _LoadedGuest:
    """The guest of this process: what an engine needs to run it, and what a report says of it."""

    def __init__(self, load: Load, target: str | None, report: dict[str, str]) -> None:
        self._load = load
        self._target = target
        self.report = report

    def new_machine(self) -> Machine:
        return Machine(self._load, self._target)


_loading = threading.Lock()
_loaded: list[_LoadedGuest] = []
"""One at most: all runners of this process share it."""


def _find_guest() -> _LoadedGuest:
    """Returns the guest of this process; compiles and loads it the first time. Raises SandboxUnavailable."""
    with _loading:
        if not _loaded:
            _loaded.append(_load_guest())
        return _loaded[0]


def _load_guest() -> _LoadedGuest:
    place = find_spec("wasmtime")
    if place is None or place.origin is None:
        raise SandboxUnavailable("programs in WebAssembly need wasmtime", report={}, how_to_fix=f"{INSTALL_WASM}.")
    from wasmtime import Engine

    found = guest()
    is_native = _may_make_code(Path(place.origin).parent.parent)
    target = None if is_native else _PULLEY
    load = load_or_compile(found, Engine(make_config(target)), target or target_name())
    report = {
        "wasm": f"CPython {found.python} by wasmtime {version('wasmtime')}, {'native' if is_native else 'interpreted'}",
        "guest": found.digest[:16],
    }
    return _LoadedGuest(load, target, report)


def _may_make_code(packages: Path) -> bool:
    """True if this system lets processes make machine code. Asked in another process, which it may kill for it."""
    command = [sys.executable, "-c", _SELF_TEST, str(packages)]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603
    return done.returncode == 0


def _after_fork_in_child() -> None:
    global _loading
    _loading = threading.Lock()
    for runner in list(_RUNNERS):
        runner.after_fork()


_RUNNERS: WeakSet[WasmRunner] = WeakSet()
call_at_fork(after_in_child=_after_fork_in_child)
