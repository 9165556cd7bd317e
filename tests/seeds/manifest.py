"""The requirements manifest: the promises of the seeds, and the tests that claim to prove them.

Claims are read from the tests' source, not from a run of them, so that they are complete in a partial run too.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

MANIFEST = Path(__file__).with_name("requirements.toml")
TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One promise of a seed."""

    id: str
    """The name that a test claims; dotted, the first word is the seed."""
    seed: str
    """The seed's number, `000` to `004`."""
    section: str
    """The seed's heading, one of `Manifest.headings[seed]`."""
    status: Literal["done", "open"]
    """Open: it belongs to later work."""
    text: str
    """The behaviour, in one sentence."""
    differs: str | None = None
    """The difference from the seed, and its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All promises."""

    requirements: tuple[Requirement, ...]
    """In the order of the file."""
    headings: dict[str, tuple[str, ...]]
    """The headings of each seed, by its number."""
    open_count: int
    """The number of promises that the file lists as open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One id that one test claims to prove."""

    id: str
    """The requirement's id."""
    place: str
    """The place of the mark, as `definition/test_binding.py:12`."""


@cache
def load() -> Manifest:
    """The manifest as its file has it. A key that it should not have, or lacks, is a TypeError."""
    document = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    return Manifest(
        requirements=tuple(Requirement(**entry) for entry in document.pop("requirement")),
        headings={seed: tuple(titles) for seed, titles in document.pop("headings").items()},
        **document,
    )


@cache
def claims() -> tuple[Claim, ...]:
    """Every id in every `pytest.mark.requirement(...)` of a test function, test class or test module."""
    return tuple(
        claim for path in sorted(TESTS.rglob("test_*.py")) for claim in claims_of(path.read_text("utf-8"), _name(path))
    )


def claims_of(source: str, name: str) -> Iterator[Claim]:
    """The claims in one module's source.

    Raises:
        ValueError: a requirement mark is at a place at which pytest does not apply it to a test, or its ids are not
        literals.
    """
    tree = ast.parse(source)
    applied = {mark for expression in _applied(tree.body) for mark in _marks(expression)}
    for mark in _marks(tree):
        place = f"{name}:{mark.lineno}"
        if mark not in applied:
            raise ValueError(f"{place}: this requirement mark is on no test")
        if not mark.args or mark.keywords:
            raise ValueError(f"{place}: give the ids by position")
        for argument in mark.args:
            yield Claim(id=_literal(argument, place), place=place)


def _applied(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """The expressions whose marks reach a test: decorators of tests and `pytestmark`."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test"):
                yield from node.decorator_list
            case ast.ClassDef(name=name) if name.startswith("Test"):
                yield from node.decorator_list
                yield from _applied(node.body)
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield value
            case _:
                pass


def _marks(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="requirement", value=ast.Attribute(attr="mark"))):
                yield node
            case _:
                pass


def _literal(argument: Any, place: str) -> str:
    match argument:
        case ast.Constant(value=str(id_)):
            return id_
        case _:
            raise ValueError(f"{place}: write each id as a string, so that it can be found")


def _name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()
