"""The files in which MCP clients keep their servers: JSON with comments, or TOML, with a table of servers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from toolwire.vocabulary.errors import ConfigurationError

TABLES = ("mcpServers", "servers", "mcp_servers", "context_servers")
"""The keys under which files keep their servers: those of most clients, of VS Code, of Codex and of Zed."""

_SETTINGS = "mcp"
"""The key of VS Code's settings whose table holds the table of servers."""

PROFILES = "profiles"
"""The key under which a file of a server keeps the profiles of its clients, beside the table of servers or alone."""
AUTH = "auth"
"""The key under which such a file keeps the issuer of its clients' tokens."""
_BESIDE = {PROFILES, AUTH, "$schema"}

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[\]}])', re.DOTALL)
"""A text of JSON, which stays, or what JSON has not: a comment, or a comma after the last item."""


def servers_in(config: Mapping[str, Any] | str | Path, where: str) -> tuple[Mapping[str, Any], str]:
    """Returns the entries of the servers, and the key of their table. A file of profiles alone has no entries.

    Raises:
        ConfigurationError: The file cannot be read, has two tables of servers, or has neither one nor profiles alone.
    """
    content = content_of(config, where) if isinstance(config, str | Path) else config
    found = [
        (_table(table[key]), f"{outer}{key}")
        for outer, table in (("", content), (f"{_SETTINGS}.", _table(content.get(_SETTINGS))))
        for key in TABLES
        if isinstance(table.get(key), Mapping)
    ]
    if len(found) > 1:
        keys = " and ".join(key for _, key in found)
        raise ConfigurationError(f"{where} has servers in {keys}: write all of them in {found[0][1]}")
    if found:
        return found[0]
    # With another key, a misspelt table of servers would go unnoticed.
    if PROFILES in content and content.keys() <= _BESIDE:
        return {}, TABLES[0]
    raise _no_servers(where)


def may_have_other_profiles(key: str) -> bool:
    """Returns whether the key of a table of servers is that of Codex or Zed, which have profiles of their own."""
    return key in TABLES[2:]


def _no_servers(where: str) -> ConfigurationError:
    return ConfigurationError(
        f"{where} has no table of servers: write {{'mcpServers': {{'fs': {{'command': 'npx', 'args': [...]}}}}}}"
    )


def content_of(file: str | Path, where: str) -> Mapping[str, Any]:
    """Returns the content of a TOML file, or of a JSON file with or without comments.

    Raises:
        ConfigurationError: It cannot be read, it is not a table, or a table of it has one key twice.
    """
    try:
        # Editors of Windows write a mark at the beginning.
        text = Path(file).read_text("utf-8").removeprefix("\ufeff")
        content = tomllib.loads(text) if Path(file).suffix.lower() == ".toml" else _read_json(text)
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{where} cannot be read: save it as UTF-8: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where} cannot be read: {error}") from error
    if not isinstance(content, Mapping):
        raise _no_servers(where)
    return cast("Mapping[str, Any]", content)


def _read_json(text: str) -> object:
    # Blanks in place of a comment keep the line and column of an error.
    plain = _TOKEN.sub(lambda found: found[0] if found[0].startswith('"') else re.sub(r"\S", " ", found[0]), text)
    return json.loads(plain, object_pairs_hook=_without_doubles)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r:.80} is there twice in one table: rename one of them")
        found[key] = value
    return found


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
