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
from collections.abc import Callable
from typing import Any

from . import dates

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


def importer(present: dict[str, Any], *, only_present: bool) -> Callable[..., Any]:
    """The program's `__import__`: modules that are there anyway, and nothing else if `only_present`."""
    known = {
        **present,
        "__future__": __future__,
        "json.decoder": json,
        "json.encoder": json,
    }
    from_forms = {"datetime": dates.import_form(), "json.decoder": json.decoder, "json.encoder": json.encoder}

    def import_name(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and name in known:
            return from_forms.get(name, known[name]) if fromlist else known[name]
        if only_present:
            raise ImportError(f"a program cannot import {name!r}; it has {', '.join(MODULES)} without import", name=name)
        return builtins.__import__(name, globals, locals, fromlist, level)

    return import_name
