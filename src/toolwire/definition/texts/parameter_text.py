"""The description of one parameter, from its annotation and its docstring."""

from __future__ import annotations

import re

from toolwire.definition.signature import EMPTY, Argument
from toolwire.definition.texts.annotation import annotation_text

_WORD = re.compile(r"\w+")
_TYPE_WORDS = frozenset(
    _WORD.findall(
        "str string text int integer float number bool boolean list array dict dictionary mapping object tuple set "
        "none null any bytes optional union required sequence iterable of or and default defaults to"
    )
)
"""Words that only repeat the schema of an annotated parameter."""


def text_with_type(written_type: str, text: str, argument: Argument) -> str:
    """Returns a parameter's text from the docstring, with the type in front that the docstring gives.

    The type is left out if it says no more than the annotation and the default.
    """
    if not written_type or _says_no_more(written_type, argument):
        return text
    return f"({written_type}) {text}" if text else written_type


def both(first: str, second: str) -> str:
    """Returns two texts about one parameter as one, without saying the same twice."""
    if not second or " ".join(second.split()) in " ".join(first.split()):
        return first
    return f"{first}\n{second}" if first and first not in second else second


def _says_no_more(written_type: str, argument: Argument) -> bool:
    if argument.annotation is EMPTY:
        return written_type.strip().lower() in ("optional", "any", "any, optional")
    said = f"{annotation_text(argument.annotation)} {'' if argument.default is EMPTY else argument.default!r}".lower()
    return _TYPE_WORDS.union(_WORD.findall(said)).issuperset(_WORD.findall(written_type.lower()))
