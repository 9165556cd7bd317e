"""The queries of `tool_queries.toml`, and how many of them a search answers."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

Part = Literal["test", "development"]
Language = Literal["english", "chinese"]
Find = Callable[[str, int], Sequence[str]]
"""The names of the tools that answer a query best, at most the given number."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """The words of the query."""

    text: str
    """In words of their own."""
    answers: tuple[str, ...]
    """Every tool that answers the query; `*` stands for any text."""

    def is_answered_by(self, name: str) -> bool:
        return any(fnmatchcase(name, answer) for answer in self.answers)


@cache
def queries(part: Part, language: Language) -> tuple[Query, ...]:
    """Those of one language; the Chinese ones are for tools described in Chinese, and then for such in English."""
    sections = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))[part]
    rows = [*sections["english"]] if language == "english" else [*sections["chinese"], *sections["chinese_english"]]
    return tuple(Query(text=text, answers=tuple(answers)) for text, *answers in rows)


def recall(asked: Sequence[Query], find: Find, limit: int = 5) -> float:
    """The share of the queries that have an answer among the first `limit` tools found."""
    answered = [any(query.is_answered_by(name) for name in find(query.text, limit)) for query in asked]
    return sum(answered) / len(asked)
