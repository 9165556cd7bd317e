"""What a program has without import, and what its import statements do."""

import __future__

import builtins
import json
import json.decoder
import json.encoder
import math
import random
import re
import statistics
import sys
from typing import Any

from . import dates
from .values import kind_of

MODULES = ("math", "json", "datetime", "re", "random", "statistics", "asyncio")
"""There without import; `asyncio` is the part that works over the channel."""


def modules(asyncio: Any) -> dict[str, Any]:
    """The modules a program has, by the name it writes."""
    return {
        "math": math,
        "json": json,
        "datetime": dates.datetime,
        "re": re,
        "random": random,
        "statistics": statistics,
        "asyncio": asyncio,
    }


class Importer:
    """The program's `__import__`: modules that are there anyway, and nothing else unless `is_open`."""

    def __init__(self, present: dict[str, Any]) -> None:
        self.is_open = False
        self._known = {**present, "__future__": __future__, "json.decoder": json, "json.encoder": json}
        self._from_forms = {
            "datetime": dates.import_form(),
            "json.decoder": json.decoder,
            "json.encoder": json.encoder,
        }

    def __call__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """As the built-in."""
        if level == 0 and name in self._known:
            return self._from_forms.get(name, self._known[name]) if fromlist else self._known[name]
        if kind_of(fromlist) is list and name in sys.modules:
            # C code's own imports come by the program's builtins too: `strptime` looks `_strptime` up. Only they
            # pass a list; import statements pass a tuple or None.
            return sys.modules[name]
        if self.is_open:
            return builtins.__import__(name, globals, locals, fromlist, level)
        raise ImportError(f"a program cannot import {name!r}; it has {', '.join(MODULES)} without import", name=name)
