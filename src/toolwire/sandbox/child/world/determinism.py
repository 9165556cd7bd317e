"""Clocks and randomness of a resumable program, served from its record, so that each attempt sees the same values.

C types are changed in place: `datetime` keeps its identity, subclasses and instances. Only the child of a resumable
program is changed; all others have the machine's clocks and randomness.
"""

import datetime
import gc
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

from . import dates

try:
    # Taken before set-up code leaves `sys.modules`.
    import ctypes

    _type_modified = ctypes.pythonapi.PyType_Modified
    _type_modified.argtypes = [ctypes.py_object]
    _type_modified.restype = None
except ImportError:
    # WebAssembly has no ctypes. Its interpreter is one version, which has this.
    _type_modified = None
_kept: list[Any] = []
"""Methods that were replaced. A cache of the interpreter may still point to one."""
_NANO = 1_000_000_000
_OWN_STREAM = 0x746F6F6C77697265
"""Separates the stream of `os.urandom` from that of `random`. A number, because seeding with text imports a module."""
_seed_of: Callable[..., None] = random.Random.seed
_localtime: Callable[[Any], Any] = time.localtime
_gmtime: Callable[[Any], Any] = time.gmtime
_strftime: Callable[[Any, Any], str] = time.strftime
_asctime: Callable[[Any], str] = time.asctime


class Clock:
    """The program's time. It stands still while the program computes and moves when it has waited."""

    def __init__(self, started_at: float) -> None:
        self.elapsed = 0.0
        self._offset = started_at

    def move(self, elapsed: float, at: float | None = None) -> None:
        """Moves to `elapsed` seconds after the start; `at` is the wall-clock time then. The clock never goes back."""
        self.elapsed = max(self.elapsed, elapsed)
        if at is not None:
            self._offset = max(self._offset, at - elapsed)

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._offset + self.elapsed

    def monotonic(self) -> float:
        """Works as `time.monotonic`."""
        return self.elapsed

    def now_ns(self) -> int:
        """Works as `time.time_ns`."""
        return round(self.now() * _NANO)

    def monotonic_ns(self) -> int:
        """Works as `time.monotonic_ns`."""
        return round(self.elapsed * _NANO)

    def gettime(self, which: int) -> float:
        """Works as `time.clock_gettime`."""
        return self.now() if which == time.CLOCK_REALTIME else self.elapsed

    def gettime_ns(self, which: int) -> int:
        """Works as `time.clock_gettime_ns`."""
        return self.now_ns() if which == time.CLOCK_REALTIME else self.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """Works as `time.sleep`, but returns at once: only the program's clock moves."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.move(self.elapsed + seconds)

    def localtime(self, seconds: Any = None) -> Any:
        """Works as `time.localtime`."""
        return _localtime(self.now() if seconds is None else seconds)

    def gmtime(self, seconds: Any = None) -> Any:
        """Works as `time.gmtime`."""
        return _gmtime(self.now() if seconds is None else seconds)

    def ctime(self, seconds: Any = None) -> str:
        """Works as `time.ctime`."""
        return _asctime(self.localtime(seconds))

    def asctime(self, when: Any = None) -> str:
        """Works as `time.asctime`."""
        return _asctime(self.localtime() if when is None else when)

    def strftime(self, form: Any, when: Any = None) -> str:
        """Works as `time.strftime`."""
        return _strftime(form, self.localtime() if when is None else when)

    def times(self) -> Any:
        """Works as `os.times`."""
        return os.times_result((self.elapsed, 0.0, 0.0, 0.0, self.elapsed))


def freeze(clock: Clock, seed: int) -> str:
    """Replaces the machine's clocks and randomness; returns the names that could not be replaced, or an empty text."""
    try:
        _freeze_time(clock)
        _freeze_dates(clock)
        _freeze_randomness(seed)
        return _find_machine_values(clock)
    except Exception as error:  # noqa: BLE001 - another Python may differ; without the replaced clocks nothing may run
        return f"{type(error).__name__}: {error}"


def _freeze_time(clock: Clock) -> None:
    module: Any = time
    module.time, module.time_ns = clock.now, clock.now_ns
    module.monotonic = module.perf_counter = module.process_time = module.thread_time = clock.monotonic
    module.monotonic_ns = module.perf_counter_ns = module.process_time_ns = module.thread_time_ns = clock.monotonic_ns
    module.clock_gettime, module.clock_gettime_ns = clock.gettime, clock.gettime_ns
    module.localtime, module.gmtime, module.ctime = clock.localtime, clock.gmtime, clock.ctime
    module.asctime, module.strftime, module.sleep = clock.asctime, clock.strftime, clock.sleep
    system: Any = os
    system.times = clock.times


def _freeze_dates(clock: Clock) -> None:
    def now(cls: Any, tz: Any = None) -> Any:
        return cls.fromtimestamp(clock.now(), tz)

    def utcnow(cls: Any) -> Any:
        return cls.fromtimestamp(clock.now(), datetime.UTC).replace(tzinfo=None)

    def today(cls: Any) -> Any:
        return cls.fromtimestamp(clock.now())

    _replace(datetime.datetime, {"now": now, "utcnow": utcnow})
    _replace(datetime.date, {"today": today})


def _replace(kind: type[Any], methods: dict[str, Any]) -> None:
    (members,) = gc.get_referents(kind.__dict__)
    for name, method in methods.items():
        _kept.append(members[name])
        members[name] = classmethod(method)
    if _type_modified is not None:
        _type_modified(kind)
    else:
        sys._clear_type_cache()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _freeze_randomness(seed: int) -> None:
    stream = random.Random((seed << 64) | _OWN_STREAM)  # noqa: S311 - it must be the same in every attempt

    def urandom(size: int) -> bytes:
        return stream.randbytes(size)

    def getrandom(size: int, flags: int = 0) -> bytes:  # noqa: ARG001 - the signature of the replaced function
        return stream.randbytes(size)

    def seed_of(self: Any, a: Any = None, version: int = 2) -> None:
        _seed_of(self, int.from_bytes(stream.randbytes(32), "big") if a is None else a, version)

    system: Any = os
    system.urandom, system.getrandom = urandom, getrandom
    module: Any = random
    module._urandom = urandom  # noqa: SLF001 - SystemRandom draws from it
    module.Random.seed = seed_of
    own = module._inst  # noqa: SLF001 - the generator behind the module's functions
    module.seed = own.seed
    own.seed(seed)


def _find_machine_values(clock: Clock) -> str:
    """Returns the names of values that would still come from this machine; empty when all known ones are replaced."""
    now = clock.now()
    moment = datetime.datetime.fromtimestamp(now)  # noqa: DTZ006 - as a program would
    first, second = random.Random(), random.Random()  # noqa: S311
    checks = {
        "datetime.now": datetime.datetime.now() == moment == dates.datetime.now(),  # noqa: DTZ005
        "datetime.today": datetime.datetime.today() == moment,  # noqa: DTZ002
        "datetime.utcnow": dates.datetime.utcnow().replace(tzinfo=datetime.UTC).timestamp() == moment.timestamp(),
        "date.today": datetime.date.today() == moment.date(),  # noqa: DTZ011
        "time.time": time.time() == now and time.monotonic() == clock.elapsed,
        "time.localtime": time.localtime() == _localtime(now) and time.gmtime() == _gmtime(now),
        "unseeded random.Random": first.random() != second.random(),
        "uuid.uuid1": vars(uuid)["_generate_time_safe"] is None,
        # The guest's hashes are those of its build.
        "the order of sets": sys.platform == "wasi" or not sys.flags.hash_randomization,
    }
    return ", ".join(name for name, is_served in checks.items() if not is_served)
