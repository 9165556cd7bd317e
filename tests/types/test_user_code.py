"""Code that follows the documentation passes `mypy --strict` and pyright in strict mode, and wrong code does not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.documents.pages import PAGES, blocks_of, module_of
from tests.types.checkers import CHECKERS

AGENTS = sorted((ROOT / "examples").glob("*_agent.py"))


TOOLS = '''
from toolwire import ToolRegistry, ToolSpec, reg_toolspec, tool


@tool
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


@tool(name="fetch", permission="confirm", effects=["read"])
async def fetch(page: int, *, again: bool = False) -> list[str]:
    """Fetches."""
    return [str(page)]


class Shelf:
    @reg_toolspec(tags=["books"])
    def find(self, title: str) -> str:
        """Finds."""
        return title


registry = ToolRegistry()


@registry.register
@tool(idempotent="natural")
def both(city: str) -> int:
    """Counts."""
    return len(city)


@registry.register
def plain(city: str) -> int:
    """Counts."""
    return len(city)
'''
RIGHT = (
    """
from collections.abc import Callable
from typing import Any, assert_type

from toolwire import Reply, Session, ToolResponse, Turn
"""
    + TOOLS
    + """
assert_type(pay(5), str)
assert_type(pay(amount=5), str)
assert_type(pay.bind("amount").clone()(5), str)
assert_type(both("Oslo"), int)
assert_type(plain("Oslo"), int)
assert_type(Shelf().find("Emma"), str)
specs: list[ToolSpec] = [pay, fetch, both]
call_it: Callable[[int], str] = pay


async def main(chunk: ToolResponse) -> None:
    assert_type(await fetch(3, again=True), list[str])
    session = Session([pay, fetch], protocol="openai")
    assert_type(session.system_prompt, str)
    assert_type(session.request_tools, list[Any])
    turn = session.run_turn(None)
    assert_type(turn, Turn)
    assert_type(turn.messages, list[Any])
    assert_type(turn.answer, str | None)
    assert_type(chunk.text, str)
    assert_type(session.stream().reply(), Reply)
"""
)
WRONG = (
    TOOLS
    + """
pay("x")  # wrong
pay(5, 6)  # wrong
pay.clone()(amount="5")  # wrong
fetch(again=True)  # wrong
number: int = pay(5)  # wrong
both(city=5)  # wrong
tool(permission="never")  # wrong
tool(permision="confirm")  # wrong
reg_toolspec(tags=5)  # wrong
ToolSpec.from_function(len, idempotent="yes")  # wrong
ToolSpec.from_function(len, unknown=1)  # wrong
ToolSpec.from_code("", permission=True)  # wrong
ToolSpec.from_jsonschema(name="a", input_schema={}, parse_docstring=False)  # wrong
ToolSpec.from_jsonschema(name="a", input_schema={}, labels=["secret"])  # wrong
ToolSpec.from_mcp({}, title="a")  # wrong
ToolSpec.from_mcp({}, version=1)  # wrong
ToolSpec.from_mcp({}, permission="auto")
"""
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a module for each page with Python blocks, the agents of `examples`, right uses and wrong ones."""
    for page in PAGES:
        if blocks_of(page):
            name = re.sub(r"\W", "_", page.removesuffix(".md").lower())
            (tmp_path / f"{name}.py").write_text(module_of(page), "utf-8")
    for agent in AGENTS:
        shutil.copy(agent, tmp_path)
    assert len(list(tmp_path.glob("*.py"))) > 20
    (tmp_path / "right.py").write_text(RIGHT, "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, "utf-8")
    return tmp_path


@pytest.mark.timeout(600)
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_accepts_every_page_and_agent_and_finds_every_wrong_use(checker: str, project: Path) -> None:
    found = CHECKERS[checker](project)
    # The types of `create_agent` are LangChain's, and are unknown in part.
    theirs = {line for line in found.pop("docs_langchain.py", []) if line[1] != "reportUnknownVariableType"}
    assert theirs == set()
    marked = [number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")]
    assert sorted({line for line, _ in found.pop("wrong.py", [])}) == marked
    assert found == {}
