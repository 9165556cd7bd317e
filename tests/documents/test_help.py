"""`help()` of every public name has a text, and its examples run."""

from __future__ import annotations

import doctest
import inspect
import pydoc
import re
import types
from pathlib import Path

import pytest

import toolwire
import toolwire.approvals
import toolwire.protocols
import toolwire.seeds
import toolwire.testing
import toolwire.tools
from tests.cli.command_line import run_process
from tests.documents.pages import text_of
from toolwire import Store
from toolwire.types import RunInfo

MODULES = (toolwire, toolwire.approvals, toolwire.protocols, toolwire.seeds, toolwire.testing, toolwire.tools)
NAMED = {f"{module.__name__}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
PUBLIC = {
    name: value
    for name, value in NAMED.items()
    if (inspect.isclass(value) and not isinstance(value, types.GenericAlias)) or inspect.isroutine(value)
}
MADE_BY: dict[str, type] = {"toolwire.testing.RunStore": Store, "toolwire.testing.Standing": RunInfo}
"""Protocols, and the classes of toolwire that say what each member does."""
EXAMPLES = {"BaseTool", "Session", "ToolPromptGenerator", "ToolRegistry", "ToolSpec", "XMLToolCallParser"}
"""Classes whose docstring shows an example."""


def says(kind: type | None, member: str) -> bool:
    """True if a class says what its member is: in the member's docstring, or in its own list of attributes."""
    return bool(inspect.getdoc(getattr(kind, member, None))) or f" {member}: " in (getattr(kind, "__doc__", "") or "")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring_of_its_own(name: str) -> None:
    assert re.match(r"\w.*?\S", PUBLIC[name].__doc__ or "")
    bare = [
        member
        for member, value in inspect.getmembers_static(PUBLIC[name])
        if not member.startswith("_")
        and (inspect.isroutine(value) or isinstance(value, property))
        and (getattr(value, "__module__", "") or "toolwire").startswith("toolwire")
        and not inspect.getdoc(value)
        and not inspect.getdoc(getattr(PUBLIC[name], member))
        and not says(MADE_BY.get(name), member)
    ]
    assert bare == []


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_examples_of_help_run(name: str) -> None:
    globs = {name.rpartition(".")[2]: found for name, found in NAMED.items()}
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(toolwire, name), name, globs=globs)
    result = doctest.DocTestRunner().run(example)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_help_of_the_package_begins_with_the_first_three_things_to_do() -> None:
    text = pydoc.render_doc(toolwire, renderer=pydoc.plaintext)
    start = text.partition("The first three things to do:")[2].partition("PACKAGE CONTENTS")[0]
    assert [line.strip()[:2] for line in start.splitlines() if re.match(r" +\d\. ", line)] == ["1.", "2.", "3."]
    assert ["init" in start, "Session(" in start, "ToolRegistry()" in start] == [True, True, True]
    named = set(re.findall(r"help\(toolwire\.(\w+)\)", start))
    assert named == {"Session", "ToolRegistry"} == named & set(toolwire.__all__)


def test_the_command_lines_of_the_readme_run(tmp_path: Path) -> None:
    page = text_of("README.md")
    (function,) = re.findall(r"^def search.*?(?=\n\n\n)", page, re.MULTILINE | re.DOTALL)
    (reply,) = re.findall(r'^reply = """\n(.*?)^"""$', page, re.MULTILINE | re.DOTALL)
    (tmp_path / "tools.py").write_text(function)
    (tmp_path / "reply.toml").write_text(reply)
    lines = re.findall(r"^toolwire (.*--tools tools\.py[^#\n]*)", page, re.MULTILINE)
    ended = [run_process(*line.split(), cwd=tmp_path) for line in lines]
    assert [one.code for one in ended] == [0, 0, 0, 0, 0]
    assert (ended[0].stdout, ended[4].stdout) == (
        "dune 2\nemma 1\n",
        '[{"title": "Dune"}, {"title": "Dune Messiah"}]\n',
    )
