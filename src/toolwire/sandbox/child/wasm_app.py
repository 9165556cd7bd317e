"""The guest of the WebAssembly sandbox: sets a stage up while the guest is built; each program runs on a copy of it.

`wasm/build.py` of the project makes the guest of this folder. All that programs import is in its memory from then on:
the host gives it no file.
"""

import gc
import sys
import time
import zoneinfo
from importlib import import_module
from typing import Any

# What the host gives: `read`, `write` and `pause`. componentize-py makes this module.
host: Any = import_module("wit_world")
# The place of the packed tzdata.
zoneinfo.reset_tzpath(to=("/0/tzdata/zoneinfo",))

from . import stage, warmup  # noqa: E402 - they read the time zones


def _write(data: bytes) -> int:
    host.write(data.decode("latin-1"))
    return len(data)


def _read(_: int) -> bytes:
    return host.read().encode("latin-1")


def _sleep(seconds: float) -> None:
    """As `time.sleep`. The host can end a program that waits here, and none that would wait in WASI."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    host.pause(float(seconds))


_missed = warmup.warm_up()
if _missed:
    raise SystemExit(f"the guest lacks {', '.join(_missed)}")
sys.argv = [""]
time.sleep = _sleep
_stage = stage.Stage(_read, _write)
warmup.usual()()
# Not frozen: in Python 3.14 each small collection goes through all frozen objects.
gc.collect()


class WitWorld(host.WitWorld):
    """What the host calls."""

    def play(self) -> None:
        """Runs one program, from its start frame to its end."""
        _stage.play()
