"""The names under which tools are served. Providers accept letters, digits, `_` and `-` alone."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable

from toolwire.definition.naming import program_name
from toolwire.definition.tool import Tool
from toolwire.gateway.server_limits import NAME_CHARACTERS
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

_LOG = logging.getLogger("toolwire.gateway")
_SERVABLE = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARACTERS}}}")
_DIGEST_CHARACTERS = 6


def client_safe_name(name: str) -> str:
    """Returns the name under which a tool is served. A name that every client accepts stays as it is.

    `fs/read` becomes `fs_read`, as in programs. A long name, or one with other letters, ends in a digest.
    """
    if _SERVABLE.fullmatch(name):
        return name
    written = re.sub(r"[^A-Za-z0-9_-]", "_", program_name(name))
    if len(written) <= NAME_CHARACTERS and name.isascii():
        return written
    digest = hashlib.sha256(utf8_bytes(name)).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{written[: NAME_CHARACTERS - _DIGEST_CHARACTERS - 1]}_{digest}"


def by_served_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Returns the tools by the names under which they are served. The first of two tools with one name counts."""
    found: dict[str, Tool] = {}
    for tool in tools:
        served = client_safe_name(tool.name)
        there = found.setdefault(served, tool)
        if there is not tool:
            _LOG.warning(
                "the tool %r is not served: its served name %r is that of %r; register it under another name",
                *(tool.name, served, there.name),
            )
    return found
