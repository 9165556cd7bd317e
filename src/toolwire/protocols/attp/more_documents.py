"""The documents behind the first one of a reply: programs with thoughts of their own, and blank lines between them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from toolwire.protocols.attp.layout import is_request
from toolwire.protocols.base import CALL_LIMIT, Refusal, too_many_calls
from toolwire.protocols.reading.toml import load_toml
from toolwire.protocols.reading.whole_program import CompileBudget

END_LIMIT = 4
"""Number of places at which the end of one document is looked for. A program may have lines that begin like one."""

_BEGINS = re.compile(r"^(?:thought[ \t]*+=(?!=)|[ \t]*+(?:Request|请求)[ \t]*+[:：])", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreDocuments:
    """Documents with a whole program each."""

    documents: tuple[Mapping[str, Any], ...]
    rest: int | None
    """The position of a request of the prompt's examples, from which on the reply does not count. None without one."""


def read_more_documents(text: str, start: int, programs: CompileBudget) -> MoreDocuments | None:
    """Reads the documents from `start` to the end of the reply, or to a request that the model made up.

    None if one of them is not valid TOML, has no program that could be Python, or has other text behind it.

    Raises:
        Refusal: They are more than one reply may have.
    """
    documents, position = list[Mapping[str, Any]](), start
    while position < len(text):
        if len(documents) >= CALL_LIMIT:
            raise too_many_calls()
        if documents and is_request(text, position):
            return MoreDocuments(documents=tuple(documents), rest=position)
        found = next(_documents(text, position), None)
        if found is None or not is_program(found[0], programs):
            return None
        documents.append(found[0])
        position = found[1]
    return MoreDocuments(documents=tuple(documents), rest=None)


def _documents(text: str, start: int) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yields the document that begins at `start`, with the position after it, for each place where it may end."""
    begins = (found.start() for found in _BEGINS.finditer(text, start + 1))
    for _ in range(END_LIMIT):
        end = next(begins, len(text))
        last = text[start:end].rstrip().rpartition("\n")[2]
        if not last.lstrip().startswith("#"):
            with suppress(tomllib.TOMLDecodeError, Refusal):
                yield load_toml(text[start:end]), end
        if end == len(text):
            return


def is_program(document: Mapping[str, Any], programs: CompileBudget) -> bool:
    """True if the document has a program that could be Python, and nothing else."""
    code = code_of(document)
    try:
        return code is not None and programs.compiles(code)
    except Refusal:
        return False  # the budget is spent


def code_of(document: Mapping[str, Any]) -> str | None:
    """Returns the program of a document that has a success and nothing else; None for any other."""
    table = document.get("tool_call")
    if not isinstance(table, dict) or document.keys() - {"tool_call", "thought"}:
        return None
    fields = cast("dict[str, Any]", table)
    code = fields.get("code")
    is_success = fields.get("status") == "success" and not fields.keys() - {"status", "target", "code"}
    return code if is_success and isinstance(code, str) else None
