"""What a program probably meant: finds the named mistake and answers with its sentence.

The first mistake whose exception and message fit, and whose text has something to say, gives the hint.
"""

import re
from collections.abc import Mapping
from typing import Any

from .mistakes import MISTAKES
from .scene import Scene, Text


def hint(error: BaseException, scene: Scene) -> str:
    """What was probably meant, in a sentence or two; empty when we cannot tell."""
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
    """The notice for a program that ended with nothing to show although it assigned something that looks like it."""
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
