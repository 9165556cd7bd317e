"""The mutants fit the source and the manifest, and their runner tells a mutant that is caught from one that is not."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from . import manifest
from .mutants import CHECKOUT, SOURCE, Mutant, load, mutated

LEAST_IDS = 300


def test_enough_requirements_have_a_mutant() -> None:
    assert len({mutant.id for mutant in load()}) >= LEAST_IDS


def test_every_mutant_is_of_a_requirement_that_is_done_and_claimed() -> None:
    done = {requirement.id for requirement in manifest.load().requirements if requirement.status == "done"}
    claimed = {claim.id for claim in manifest.claims()}
    assert sorted({mutant.id for mutant in load()} - (done & claimed)) == []


def test_every_mutant_fits_the_source() -> None:
    misfits = "\n".join(misfit for mutant in load() if (misfit := misfit_of(mutant)))
    assert misfits == "", f"change `old` and `new` in tests/seeds/mutants.toml:\n{misfits}"


def misfit_of(mutant: Mutant) -> str:
    try:
        mutated(mutant, (SOURCE / "toolwire" / mutant.file).read_text("utf-8"))
    except (OSError, ValueError, SyntaxError) as error:
        return f"{mutant.id}: {error}"
    return ""


def test_no_mutant_stands_twice_and_each_changes_something() -> None:
    assert [mutant for mutant, count in Counter(load()).items() if count > 1] == []
    assert [mutant for mutant in load() if mutant.old == mutant.new] == []


def test_a_text_that_stands_twice_or_not_at_all_is_an_error() -> None:
    mutant = Mutant(id="a.b", file="x.py", old="one", new="two")
    assert mutated(mutant, "one, three") == "two, three"
    for text, count in (("three", 0), ("one, one", 2)):
        with pytest.raises(ValueError, match=f"^a.b: this must stand once in x.py, but stands {count} times: one$"):
            mutated(mutant, text)


def test_a_mutant_that_is_not_python_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        mutated(Mutant(id="a.b", file="x.py", old="one", new="("), "one")


def test_only_a_failed_test_catches_a_mutant(tmp_path: Path) -> None:
    file = tmp_path / "mutants.toml"
    file.write_text(
        """
[[mutant]]
id = "spec.docs.signature"
file = "definition/renderings/python_text.py"
old = '={value!r}" for name'
new = '={value}" for name'

[[mutant]]
id = "spec.docs.signature"
file = "definition/renderings/python_text.py"
old = '={value!r}" for name'
new = '={value!r}" for  name'

[[mutant]]
id = "spec.docs.signature"
file = "facade/tools/tool_spec.py"
old = "class ToolSpec(SpecExports):"
new = "class ToolSpec(Nothing):"
""",
        "utf-8",
    )

    run = subprocess.run(
        [sys.executable, "-m", "tests.seeds.mutants", "--file", str(file)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )

    outcomes = [line.split()[0] for line in run.stdout.splitlines() if " spec.docs.signature " in line]
    assert (outcomes, run.returncode) == (["caught", "survived", "broken"], 1)
    assert run.stdout.endswith("3 mutants of 1 ids, 2 not caught\n")
