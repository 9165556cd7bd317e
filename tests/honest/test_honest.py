"""Honest programs give the same output, value and error in the sandbox as in plain CPython."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.honest.corpus import HonestProgram, read_programs
from tests.honest.reference import Outcome, Reference, exact
from tests.honest.tools import TOOLS, reset
from toolwire import ToolRegistry
from toolwire.vocabulary.calls import PROGRAM_MODULES

PROGRAMS = read_programs()
PYTHON = tuple(program for program in PROGRAMS if program.theme != "not_python")
LEAST_PROGRAMS = 310
LOCKED = ("kernel", "kernel+namespaces")
MODULES = frozenset(PROGRAM_MODULES)


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    running = Reference()
    yield running
    running.close()


@pytest.fixture(scope="module")
def registry() -> ToolRegistry:
    made = ToolRegistry()
    for tool in TOOLS:
        made.register_tool_to_library(tool)
    return made


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_does_what_it_does_in_plain_cpython(
    program: HonestProgram, registry: ToolRegistry, reference: Reference
) -> None:
    reset()
    result = registry.run_program(program.source)
    error = result.error
    ours = Outcome(
        stdout=result.stdout,
        value=exact(result.value) if result.has_value else "",
        error=(error.type, error.message) if error else None,
    )
    assert ours == reference.run(program.source, program.theme), error and error.traceback
    assert result.isolation.level in LOCKED


def test_there_are_enough_programs_and_each_is_another() -> None:
    shapes = {_shape(ast.parse(program.source)): str(program) for program in PYTHON}
    assert sorted(shapes.values()) == sorted(map(str, PYTHON))
    assert len(shapes) >= LEAST_PROGRAMS


def test_each_program_uses_a_tool_a_module_or_a_class() -> None:
    wanted = MODULES | {tool.__name__ for tool in TOOLS}
    without = [
        str(program)
        for program in PYTHON
        if not any(
            isinstance(node, ast.ClassDef | ast.ImportFrom) or (isinstance(node, ast.Name) and node.id in wanted)
            for node in ast.walk(ast.parse(program.source))
        )
    ]
    assert without == []


def _shape(tree: ast.Module) -> str:
    """The structure of the program: its text without its own names and constants."""
    for node in ast.walk(tree):
        for field in ("id", "name", "arg", "asname"):
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, "_")
        if isinstance(node, ast.Constant):
            node.value, node.kind = type(node.value).__name__, None
    return ast.dump(tree)
