"""Proves what tests claim: each mutant makes one requirement untrue, and a test that claims the requirement fails.

`mutants.toml` holds the mutants. The tests run against a copy of `src`; the working tree is never changed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import hypothesis.strategies
import jsonschema
import mcp.types
import pydantic
import pytest

from .manifest import MANIFEST, TESTS, claims

MUTANTS = MANIFEST.with_name("mutants.toml")
PRELOADED = (asyncio, hypothesis.strategies, jsonschema, mcp.types, pydantic)
"""The libraries that each fork would load anew."""
CHECKOUT = TESTS.parent
SOURCE = CHECKOUT / "src"
OPTIONS = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--assert=plain", "--tb=short", "--timeout=120"]
"""Up to the first failure; a mutant that hangs a test fails it."""

Outcome = Literal["caught", "survived", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change to one file that makes one requirement untrue."""

    id: str
    """The requirement's id."""
    file: str
    """The file, from `src/toolwire`."""
    old: str
    """Text that is in the file exactly once."""
    new: str
    """The text that replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one mutant."""

    mutant: Mutant
    outcome: Outcome
    """Caught: a claimed test failed. Survived: all passed. Broken: the tests did not get as far as that."""
    output: str
    """The output of pytest."""


def load(file: Path = MUTANTS) -> tuple[Mutant, ...]:
    """The mutants in the order of the file. A key that one should not have, or lacks, is a TypeError."""
    return tuple(Mutant(**entry) for entry in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"])


def mutated(mutant: Mutant, text: str) -> str:
    """The file's text with the mutant's change.

    Raises:
        ValueError: the old text is not in the file exactly once.
        SyntaxError: the new text is not Python there, and would fail any test.
    """
    if (count := text.count(mutant.old)) != 1:
        raise ValueError(f"{mutant.id}: this must stand once in {mutant.file}, but stands {count} times: {mutant.old}")
    changed = text.replace(mutant.old, mutant.new)
    compile(changed, mutant.file, "exec", dont_inherit=True)
    return changed


class Claimed:
    """A pytest plugin that writes down the tests that claim each id."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        tests: dict[str, list[str]] = defaultdict(list)
        for item in session.items:
            for mark in item.iter_markers("requirement"):
                for name in mark.args:
                    tests[name].append(item.nodeid)
        self._file.write_text(json.dumps(tests), encoding="utf-8")


def collect(names: Iterable[str], source: Path) -> dict[str, list[str]]:
    """The node ids of the tests that claim each of these ids.

    Raises:
        RuntimeError: pytest could not collect the tests.
    """
    wanted = set(names)
    files = {str(TESTS / claim.place.partition(":")[0]) for claim in claims() if claim.id in wanted}
    found = source.with_name("claimed.json")
    run = run_pytest(source, ["--collect-only", *sorted(files)], Claimed(found))
    if run.code != pytest.ExitCode.OK:
        raise RuntimeError(f"the tests could not be collected:\n{run.output}")
    return json.loads(found.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How pytest ended."""

    code: int
    """Its exit code."""
    output: str
    """Its output."""


def run_pytest(source: Path, arguments: Sequence[str], *plugins: object) -> Run:
    """Runs pytest against the package in `source`, in a fork.

    The fork has the libraries of the tests loaded and the package not: that takes a fifth of the processor time of a
    new interpreter.
    """
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            code = int(pytest.ExitCode.INTERNAL_ERROR)
            try:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                os.chdir(CHECKOUT)
                os.environ["PYTHONPATH"] = str(source)
                sys.path.insert(0, str(source))
                code = int(pytest.main([*OPTIONS, *arguments], plugins=plugins))
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                # Whatever happens here, the fork must not go on as its parent.
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return Run(code=code, output=output.read().decode("utf-8", "replace"))


def try_mutant(mutant: Mutant, tests: Sequence[str], source: Path) -> Verdict:
    """Breaks the copy of the source, runs the tests, and restores the copy."""
    path = source / "toolwire" / mutant.file
    original = path.read_text(encoding="utf-8")
    _write(path, mutated(mutant, original))
    try:
        run = run_pytest(source, tests)
    finally:
        _write(path, original)
    return Verdict(mutant=mutant, outcome=_outcome(run.code), output=run.output)


def _write(path: Path, text: str) -> None:
    """Writes the file and removes its bytecode, which is trusted where size and whole seconds are the same."""
    path.write_text(text, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _outcome(code: int) -> Outcome:
    match code:
        case pytest.ExitCode.TESTS_FAILED:
            return "caught"
        case pytest.ExitCode.OK:
            return "survived"
        case _:
            return "broken"


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries the mutants of the ids given, or all; 1 when one of them is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds.mutants", description=__doc__)
    parser.add_argument("ids", nargs="*", help="ids of requirements; without any, all that have a mutant")
    parser.add_argument("--file", type=Path, default=MUTANTS, help="the mutants (default: %(default)s)")
    options = parser.parse_args(arguments)
    mutants = load(options.file)
    if unknown := set(options.ids) - {mutant.id for mutant in mutants}:
        parser.error(f"no mutant has this id: {', '.join(sorted(unknown))}")
    return try_all([mutant for mutant in mutants if not options.ids or mutant.id in options.ids])


def try_all(mutants: Sequence[Mutant]) -> int:
    """Runs the tests of these mutants unbroken, then each mutant; prints a line for each."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        source = Path(shutil.copytree(SOURCE, Path(directory) / "src"))
        tests = collect((mutant.id for mutant in mutants), source)
        unbroken = run_pytest(source, list(dict.fromkeys(test for mutant in mutants for test in tests[mutant.id])))
        if unbroken.code != pytest.ExitCode.OK:
            print(unbroken.output, "A claimed test fails on the unbroken source.", sep="\n")
            return 1
        verdicts: list[Verdict] = []
        for mutant in mutants:
            verdicts.append(try_mutant(mutant, tests[mutant.id], source))
            _show(verdicts[-1])
    missed = sum(verdict.outcome != "caught" for verdict in verdicts)
    print(f"{len(verdicts)} mutants of {len({mutant.id for mutant in mutants})} ids, {missed} not caught")
    return 1 if missed else 0


def _show(verdict: Verdict) -> None:
    print(f"{verdict.outcome:9} {verdict.mutant.id:44} {verdict.mutant.file}", flush=True)
    if verdict.outcome != "caught":
        print(f"    {verdict.mutant.old.strip()}\n    -> {verdict.mutant.new.strip()}")
    if verdict.outcome == "broken":
        print(verdict.output)


if __name__ == "__main__":
    sys.exit(main())
