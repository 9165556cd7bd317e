"""Loads rules from a file, `toolwire.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, cast

from toolwire.permission.policy import Policy
from toolwire.permission.rule import Rule, rule_of
from toolwire.vocabulary.errors import ConfigurationError

POLICY_FILE = "toolwire.toml"
"""The file name that the command line looks for."""

FILE_LIMIT_BYTES = 1_048_576
"""Maximum bytes of a policy file: room for thousands of rules."""

_TABLES = ("rule", "permissions", "approvers")
_RULE_LINE = re.compile(r"^\s*\[\[\s*(?:rule|'rule'|\"rule\")\s*\]\]", re.MULTILINE)


def load_policy(path: str | Path) -> Policy:
    """Loads a policy from a file.

    The file has `[[rule]]` tables with the fields of `Rule`, `[permissions]` by tool name, and `[approvers]` by effect.

    Raises:
        ConfigurationError: The file cannot be read or has errors. The message lists all errors with their places.
    """
    path = Path(path)
    text = _read_policy_text(path)
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: it is not TOML: {error}") from error
    wrong = [
        f"{path}: unknown key {key!r}: there are [[rule]], [permissions], [approvers]"
        for key in data
        if key not in _TABLES
    ]
    rules = _rules(path, text, data.get("rule", []), wrong)
    tables = {name: _table(path, name, data.get(name, {}), wrong) for name in ("permissions", "approvers")}
    policy = Policy()
    try:
        policy = Policy(rules, defaults=tables["permissions"], approvers=tables["approvers"])
    except ConfigurationError as error:
        wrong.append(f"{path}: {error}")
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return policy


def _read_policy_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT_BYTES + 1)
        if len(content) > FILE_LIMIT_BYTES:
            raise ConfigurationError(f"{path} is longer than {FILE_LIMIT_BYTES:,} bytes")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"the policy file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
        ) from error


def _rules(path: Path, text: str, given: object, wrong: list[str]) -> list[Rule]:
    if not isinstance(given, list):
        wrong.append(f"{path}: rule is one table: write [[rule]] above it, in double brackets")
        return []
    tables = cast("list[Any]", given)
    lines = [text.count("\n", 0, found.end()) + 1 for found in _RULE_LINE.finditer(text)]
    rules: list[Rule] = []
    for number, table in enumerate(tables, 1):
        # Rules may also be written inline; then the line numbers are unknown.
        line = f", line {lines[number - 1]}" if len(lines) == len(tables) else ""
        try:
            rules.append(rule_of(table, f"{path}{line}, rule {number}"))
        except ConfigurationError as error:
            wrong.append(str(error))
    return rules


def _table(path: Path, name: str, given: object, wrong: list[str]) -> dict[str, Any]:
    if isinstance(given, dict):
        return cast("dict[str, Any]", given)
    wrong.append(f"{path}: {name} is not a table: write [{name}], and below it a line for each")
    return {}
