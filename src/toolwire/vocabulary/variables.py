"""The variables that programs of one conversation share: names, each with its value or its source as text."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import TAG

VARIABLES_LIMIT_BYTES = 1_048_576
"""Bytes that the variables of one conversation and caller take at most, as text: as much as the result of a program.
They are read at the start of each turn, and sent to each program.
"""

Variables = Mapping[str, str]
"""Maps each name to JSON: the tagged value, or the source of a function as `source_text` writes it."""

_SOURCE = "source"
_LOG = logging.getLogger("toolwire.session")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariablesChange:
    """The difference that a program made to the variables.

    Attributes:
        set: The variables that are new or have another value.
        removed: Names that were there before, and are not any more.
        left_out: Names of variables that cannot be kept, each with the reason: the name of a type, or a few words.
    """

    set: Variables = field(default_factory=dict[str, str])
    removed: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def form(self) -> dict[str, Any]:
        """The change in JSON types, for `change_of`."""
        return {"set": dict(self.set), "removed": list(self.removed)}


def change_of(form: Mapping[str, Any]) -> VariablesChange:
    """Returns the change that a form holds."""
    return VariablesChange(set=dict(form["set"]), removed=tuple(form["removed"]))


def change_between(before: Variables, after: Variables, left_out: Mapping[str, str]) -> VariablesChange:
    """Returns the change that leads from one state of the variables to another."""
    new = {name: text for name, text in after.items() if before.get(name) != text}
    return VariablesChange(set=new, removed=tuple(name for name in before if name not in after), left_out=left_out)


def with_change(variables: Variables, change: VariablesChange) -> dict[str, str]:
    """Returns the variables after a change."""
    return {name: text for name, text in variables.items() if name not in change.removed} | dict(change.set)


def join_changes(changes: Iterable[VariablesChange]) -> VariablesChange:
    """Returns one change in place of several, in their order."""
    new, removed = dict[str, str](), dict[str, None]()
    for change in changes:
        for name in change.removed:
            new.pop(name, None)
            removed[name] = None
        new |= change.set
    return VariablesChange(set=new, removed=tuple(name for name in removed if name not in new))


def bytes_of(variables: Variables) -> int:
    """Returns the bytes that count against `VARIABLES_LIMIT_BYTES`."""
    return sum(len(utf8_bytes(name)) + len(utf8_bytes(text)) for name, text in variables.items())


def drop_oldest(variables: dict[str, str]) -> list[str]:
    """Drops the first variables until the others fit into `VARIABLES_LIMIT_BYTES`. Returns the names of those dropped.

    One program never leaves more. Turns that end side by side may do so together.
    """
    excess, dropped = bytes_of(variables) - VARIABLES_LIMIT_BYTES, list[str]()
    for name in list(variables):
        if excess <= 0:
            break
        excess -= bytes_of({name: variables.pop(name)})
        dropped.append(name)
    if dropped:
        _LOG.warning("more than %d bytes of variables in one conversation: dropped %s", VARIABLES_LIMIT_BYTES, dropped)
    return dropped


def source_text(source: str) -> str:
    """Returns the text that stands for a function."""
    return json.dumps({TAG: _SOURCE, "v": source}, ensure_ascii=False)


def source_of(text: str) -> str | None:
    """Returns the source of a function; None for any other variable."""
    if not text.startswith(f'{{"{TAG}": "{_SOURCE}"'):
        return None
    return cast("str", json.loads(text)["v"])


class SharedVariables(Protocol):
    """The variables that the programs of one turn share with those of earlier and later turns."""

    @property
    def language(self) -> Literal["en", "zh"]:
        """The language of the line that tells what is not kept."""
        ...

    def now(self) -> dict[str, str]:
        """Returns the variables of a program that starts now."""
        ...

    def change(self, call_id: str, change: VariablesChange, /) -> None:
        """Takes the changes of this call's program. A second change of one call replaces the first."""
        ...
