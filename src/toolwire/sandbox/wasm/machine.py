"""One engine with the guest in it. It runs one program at a time, each in a new instance of the guest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwire.vocabulary.machine import system

if TYPE_CHECKING:
    from wasmtime import Config
    from wasmtime.component import Linker

    from toolwire.sandbox.wasm.compiled import Load

GUEST_MB = 24
"""MiB of its memory that the interpreter itself needs: 16 from its start, and what a stage takes."""
GUEST_STACK_BYTES = 2 << 20
"""Stack of a guest: enough for Python's thousand levels of calls in C code, such as `repr` in `repr`."""
THREAD_STACK_BYTES = GUEST_STACK_BYTES + (4 << 20)
"""Stack of the thread that runs a guest, with room for the host's functions. Untouched pages take no memory."""
_MONOTONIC_CLOCK = "wasi:clocks/monotonic-clock@"
_MIB = 1_048_576


class GuestDied(Exception):
    """The guest broke its own interpreter; the text says how, for a model."""


@dataclass(frozen=True, slots=True)
class HostFunctions:
    """What the guest may call. An exception of one ends the guest, and `Machine.play` raises it."""

    read: Callable[[], str]
    write: Callable[[str], None]
    pause: Callable[[float], None]

    def refuse_wait(self, _: int) -> int:
        """Stands for the waits of WASI. Raises GuestDied."""
        raise GuestDied("it waited for something that a program cannot have")


def make_config(target: str | None) -> Config:
    """Returns the settings of an engine; `target` is None for machine code of this processor."""
    from wasmtime import Config

    config = Config()
    config.epoch_interruption = True
    config.max_wasm_stack = GUEST_STACK_BYTES
    # With them wasmtime crashes inside of Python: wasmtime issue 10099.
    config.macos_use_mach_ports = False
    if target is not None:
        config.target = target
    return config


class Machine:
    """An engine, and the processor seconds of the guest in it. `play` belongs to one thread, the rest to any."""

    def __init__(self, load: Load, target: str | None) -> None:
        from wasmtime import Engine

        self._engine = Engine(make_config(target))
        self._component = load(self._engine)
        self._host: HostFunctions | None = None
        self._failure: BaseException | None = None
        """What a function of the host has raised."""
        self._linker = self._make_linker()
        self._clock: Callable[[], float] = lambda: 0.0
        self._used_s = 0.0
        self._inside_since: float | None = None

    @property
    def cpu_s(self) -> float:
        """Processor seconds of the present guest, or the last one. What the host does for it does not count."""
        since = self._inside_since
        try:
            return self._used_s if since is None else self._used_s + self._clock() - since
        except OSError:
            # Its thread has ended meanwhile.
            return self._used_s

    def play(self, host: HostFunctions, memory_mb: float) -> None:
        """Runs one program in a new instance, and returns when the guest has ended.

        Raises:
            GuestDied: It ended by a trap.
        """
        from wasmtime import Store, WasiConfig, WasmtimeError

        store = Store(self._engine)
        # Nothing is given: no folder, environment, argument, stream or address.
        store.set_wasi(WasiConfig())
        store.set_limits(memory_size=int((memory_mb + GUEST_MB) * _MIB))
        store.set_epoch_deadline(1)
        self._clock, self._used_s, self._host = system.thread_clock(), 0.0, host
        try:
            play = self._linker.instantiate(store, self._component).get_func(store, "play")
            assert play is not None
            self._inside_since = self._clock()
            play(store)
        except WasmtimeError as trap:
            raise self._failure or GuestDied(_reason(str(trap))) from None
        finally:
            self._leave()
            self._host = self._failure = None
            store.close()

    def interrupt(self) -> None:
        """Ends the guest at once, in a loop or in C code. A host function that it waits for is not ended."""
        self._engine.increment_epoch()

    def _make_linker(self) -> Linker:
        from wasmtime.component import Linker

        imports = self._component.type.imports(self._engine)
        clock_name = next(name for name in imports if name.startswith(_MONOTONIC_CLOCK))
        linker = Linker(self._engine)
        linker.allow_shadowing = True
        linker.add_wasip2()
        with linker.root() as root:
            for name in ("read", "write", "pause"):
                root.add_func(name, self._outside(name))
            with root.add_instance(clock_name) as clock:
                # Nobody could end a guest that waits in WASI, so it can only ask for the time there.
                clock.add_func("now", _now_ns)
                clock.add_func("resolution", _resolution_ns)
                clock.add_func("subscribe-duration", self._outside("refuse_wait"))
                clock.add_func("subscribe-instant", self._outside("refuse_wait"))
        return linker

    def _outside(self, name: str) -> Callable[..., Any]:
        """Returns the host's function of that name as the guest calls it: its time is not the guest's."""
        from wasmtime import WasmtimeError

        def call(_: object, *arguments: Any) -> Any:
            self._leave()
            try:
                return getattr(self._host, name)(*arguments)
            except BaseException as failure:  # noqa: BLE001 - `play` raises it
                # Passed around wasmtime: its package keeps one exception for all threads.
                self._failure = failure
                raise WasmtimeError("a function of the host has failed") from None
            finally:
                self._inside_since = self._clock()

        return call

    def _leave(self) -> None:
        since, self._inside_since = self._inside_since, None
        if since is not None:
            self._used_s += self._clock() - since


def _now_ns(_: object) -> int:
    return time.monotonic_ns()


def _resolution_ns(_: object) -> int:
    return 1


def _reason(trap: str) -> str:
    """Returns the end of a guest in words. What wasmtime says names functions of CPython, of which no model knows."""
    if "call stack exhausted" in trap:
        return "it recursed too deeply"
    if "exit status" in trap:
        return "it ended its interpreter"
    return "it did what no interpreter survives, such as using up its memory inside of C code"
