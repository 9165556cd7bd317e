"""Hints for a failed program: finds the known mistake and returns its sentence.

The first mistake that fits the exception and its message, and whose text is not empty, gives the hint.
"""

import re
from collections.abc import Mapping
from typing import Any

from .mistakes import MISTAKES
from .scene import Scene, Text


def hint(error: BaseException, scene: Scene) -> str:
    """Returns the probable intention and its remedy in a sentence or two; empty when no known mistake fits."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - the program's own __str__ may do anything
        return ""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for mistake in MISTAKES:
        if kinds.isdisjoint(mistake.error.split()):
            continue
        found = re.search(mistake.pattern, message, re.DOTALL)
        text = "" if found is None else _text(mistake.text, found, scene)
        if text:
            return text
    return ""


def missing_result(names: Mapping[str, Any]) -> str:
    """Returns the notice for a program without output that assigned a name like `__result__`; else an empty text."""
    for name in ("result", "results", "_result", "__result", "_result_", "answer", "output"):
        if name in names:
            return (
                f"The program ended without output and without a result. It assigned `{name}`: "
                "write `__result__ = " + name + "`, or print it."
            )
    return ""


def _text(text: Text, found: re.Match[str], scene: Scene) -> str:
    if callable(text):
        return text(found, scene)
    return text.format(*found.groups(), **found.groupdict())
