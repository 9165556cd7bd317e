"""Breaks one source file in every way that mutmut knows, and counts the mutants that the tests of its layer kill.

mutmut mutates a copy of the source below `mutants/` and runs each mutant in a fork, with only the tests that enter the
mutated function. Three kinds of mutants are left out, because they change no behaviour: another wording of a text (a
string with a space), another type in `cast`, and another `strict` of a `zip` over lists of equal length.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import libcst
import libcst.matchers as like
from mutmut import __main__ as mutmut
from mutmut import configuration
from mutmut.mutation import mutators
from mutmut.mutation.diff_apply import get_diff_for_mutant

from .once import CollectingOnce

LAYERS = Path(__file__).with_name("layers.toml")
MUTANTS = Path("mutants")
LEAST_KILLED = 0.95
"""The least part of a file's mutants that must die, without the listed equivalent ones."""
SURVIVED = (0, 33)
"""mutmut's codes: all tests passed, or no test enters the function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """A survivor that behaves like the original.

    Attributes:
        old: The line of the original, without indentation.
        new: The line of the mutant, without indentation.
        reason: The reason why no test can tell them apart.
    """

    old: str
    new: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """One source file, from `src/toolwire`, with the tests of its layer and its equivalent mutants."""

    name: str
    tests: tuple[str, ...]
    equivalent: tuple[Equivalent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The outcome of one file's mutants. `survivors` maps a mutant's name to its changed lines."""

    total: int
    equivalent: int
    unused: tuple[Equivalent, ...]
    survivors: dict[str, tuple[str, str]]

    @property
    def killed(self) -> int:
        return self.total - self.equivalent - len(self.survivors)

    @property
    def is_enough(self) -> bool:
        return self.killed >= LEAST_KILLED * (self.total - self.equivalent) and not self.unused


def load(file: Path = LAYERS) -> tuple[Broken, ...]:
    """Returns the files in their order. An unknown or missing key is a TypeError."""
    return tuple(
        Broken(
            **{
                **entry,
                "tests": tuple(entry["tests"]),
                "equivalent": tuple(Equivalent(**each) for each in entry.get("equivalent", ())),
            }
        )
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["file"]
    )


def behaviour_only() -> None:
    """Takes the mutants that change no behaviour away from mutmut."""
    strings, calls = mutators.operator_string, mutators.operator_arg_removal

    def names_only(node: libcst.BaseString) -> Iterable[libcst.BaseString]:
        is_text = isinstance(node, libcst.SimpleString) and " " in node.value
        return () if is_text else strings(node)

    def without_types(node: libcst.Call) -> Iterable[libcst.Call]:
        for mutant in calls(node):
            is_type = like.matches(node.func, like.Name("cast")) and len(mutant.args) == len(node.args)
            is_strict = like.matches(node.func, like.Name("zip")) and _strict(node) != _strict(mutant)
            if not (is_type and mutant.args[0] is not node.args[0]) and not is_strict:
                yield mutant

    swapped: dict[object, Any] = {strings: names_only, calls: without_types}
    operators = cast("list[tuple[type, Any]]", mutators.mutation_operators)
    operators[:] = [(kind, swapped.get(operator, operator)) for kind, operator in operators]


def _strict(call: libcst.Call) -> str:
    found = [each.value for each in call.args if each.keyword is not None and each.keyword.value == "strict"]
    return libcst.Module([]).code_for_node(found[0]) if found else ""


def score(broken: Broken, codes: dict[str, int], changes: dict[str, tuple[str, str]]) -> Score:
    """Counts the mutants by their codes. `changes` has the changed lines of each survivor."""
    known = {(each.old, each.new): each for each in broken.equivalent}
    listed = {name for name in changes if changes[name] in known}
    return Score(
        total=len(codes),
        equivalent=len(listed),
        unused=tuple(each for change, each in known.items() if change not in {changes[name] for name in listed}),
        survivors={name: change for name, change in changes.items() if name not in listed},
    )


def try_file(broken: Broken, children: int) -> Score:
    """Runs mutmut for one file. It imports the package and its tests, so each file needs a process of its own."""
    shutil.rmtree(MUTANTS, ignore_errors=True)
    path = f"src/toolwire/{broken.name}"
    configuration._config = replace(
        configuration.config(), only_mutate=[path], pytest_add_cli_args_test_selection=list(broken.tests)
    )
    behaviour_only()
    mutmut.get_mutant_runner = CollectingOnce
    mutmut._run((), children)
    codes = json.loads((MUTANTS / f"{path}.meta").read_text(encoding="utf-8"))["exit_code_by_key"]
    if untried := [name for name, code in codes.items() if code is None]:
        raise RuntimeError(f"mutmut did not try {len(untried)} mutants of {broken.name}, first {untried[0]}")
    return score(broken, codes, {name: _change(name, path) for name, code in codes.items() if code in SURVIVED})


def _change(name: str, path: str) -> tuple[str, str]:
    lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
    old, new = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
    return " ".join(old), " ".join(new)
