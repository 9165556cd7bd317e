"""Another operating system, as toolwire sees it: modules of the standard library without the names that it lacks.

Only imports of toolwire are answered so. The standard library and other packages go on with the names of Linux.
"""

from __future__ import annotations

import asyncio
import builtins
import fcntl
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from tests.elsewhere.platform_names import ABSENT, MODULES, System, lacking, names_of

TASKKILL = '#!/bin/sh\nkill -9 "$4" 2>/dev/null || exit 128\n'


class _Without(ModuleType):
    """A module without some names, and with others in place of the real ones."""

    def __init__(self, real: ModuleType, lacks: frozenset[str], **others: Any) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(others)
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_lacks", lacks)

    def __getattr__(self, name: str) -> Any:
        if name in self._lacks:
            raise AttributeError(f"module {self.__name__!r} of another system has no attribute {name!r}")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


def pretend(system: System, folder: Path) -> None:
    """Makes the modules of toolwire that are imported from now on see that system. Programs go to the folder."""
    assert not [name for name in sys.modules if name.partition(".")[0] == "toolwire"]
    seen: dict[str, ModuleType] = {name: _Without(sys.modules[name], lacking(name, system)) for name in MODULES}
    seen["sys"] = _Without(sys, frozenset(), platform=system)
    if system == "win32":
        seen["msvcrt"] = cast("ModuleType", SimpleNamespace(LK_NBLCK=2, locking=_locking, kbhit=lambda: False))
        # The loop of Windows takes no signal handlers.
        asyncio.SelectorEventLoop.add_signal_handler = asyncio.AbstractEventLoop.add_signal_handler
        taskkill = folder / "taskkill"
        taskkill.write_text(TASKKILL)
        taskkill.chmod(0o700)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    absent = {name for name in ABSENT if not names_of(name, system)} - set(seen)
    real_import = builtins.__import__

    def import_(name: str, given: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and given and str(given.get("__name__")).partition(".")[0] == "toolwire":
            if name in absent:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in seen:
                return seen[name]
        return real_import(name, given, locals, fromlist, level)

    builtins.__import__ = import_


def _locking(descriptor: int, mode: int, size: int) -> None:
    """As `msvcrt.locking`: the lock belongs to the open file."""
    assert (mode, size) == (2, 1)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
