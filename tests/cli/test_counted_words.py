"""A number and its noun agree wherever toolwire writes them."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.source import modules
from toolwire import Session, Toolkit, ToolRegistry
from toolwire.vocabulary.texts.counting import count_of

NOT_ONE = {
    "toolwire.builtin.read_result",  # only long results are kept
    "toolwire.cli.commands.approvals_command",  # several requests fit
    "toolwire.cli.loading",  # several registries
    "toolwire.cli.stores",  # several runs fit
    "toolwire.definition.naming",  # longer than a limit
    "toolwire.openapi.operations",  # more than a limit
    "toolwire.facade.built_in.file_tools",  # more than a limit
    "toolwire.facade.built_in.raw_files",  # longer than a limit
    "toolwire.facade.built_in.web_tools",  # longer than a limit
    "toolwire.facade.tools.intake",  # several tools; longer than a limit
    "toolwire.builtin.files.disk",  # longer than a limit
    "toolwire.builtin.files.paths",  # longer than a limit
    "toolwire.builtin.files.readable",  # longer than a limit
    "toolwire.invocation.postprocess",  # longer than a limit
    "toolwire.journal.artifacts.manager",  # longer than a limit
    "toolwire.journal.log.memory_log",  # more than a limit
    "toolwire.journal.store_conversations",  # longer than a limit
    "toolwire.mcp.open_connection",  # several calls
    "toolwire.protocols.attp.recover",  # several documents
    "toolwire.protocols.attp.render",  # several calls
    "toolwire.protocols.attp.value_reader",  # several readings
    "toolwire.protocols.native.declared_schema",  # longer than a limit
    "toolwire.protocols.reading.strict_json",  # longer than a limit
    "toolwire.protocols.reading.toml",  # longer than a limit
    "toolwire.sandbox.wire",  # longer than a limit
    "toolwire.vocabulary.media_bytes",  # longer than a limit
    "toolwire.vocabulary.questions",  # longer than a limit
}
"""Modules whose numbers before a noun are never 1."""
NOUN = re.compile(r"\s(more |other |of )?[a-z]{3,}s\b(?<!this)(?<!is)(?<!has)(?<!as)")


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (1, ("tool",), "1 tool"),
        (0, ("tool",), "0 tools"),
        (2, ("tool",), "2 tools"),
        (1_234, ("byte",), "1,234 bytes"),
        (1, ("call runs", "calls run"), "1 call runs"),
        (2, ("call runs", "calls run"), "2 calls run"),
    ],
)
def test_a_number_has_the_noun_that_fits(number: int, words: tuple[str, ...], text: str) -> None:
    assert count_of(number, *words) == text


def test_what_holds_one_tool_says_so() -> None:
    def look() -> str:
        """Looks."""
        return ""

    registry, toolkit = ToolRegistry(), Toolkit("support")
    registry.register(look)
    toolkit.add_tool(look)
    turn = Session([look], protocol="xml").run_turn("<tool_call><name>look</name><params></params></tool_call>")
    assert [repr(registry), repr(toolkit), repr(turn)] == [
        "<ToolRegistry: 1 tool>",
        "<Toolkit 'support': 1 tool>",
        "<Turn: 1 result, 0 failed>",
    ]


def test_no_length_is_written_before_a_noun_without_the_helper() -> None:
    """`len(...)` may be 1, so its noun comes from `count_of`."""
    found = {
        module.name
        for module in modules()
        if ".sandbox.child." not in module.name and not module.name.startswith("toolwire.testing")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.JoinedStr)
        for value, following in zip(node.values, node.values[1:], strict=False)
        if isinstance(value, ast.FormattedValue)
        and _is_length(value.value)
        and isinstance(following, ast.Constant)
        and NOUN.match(str(following.value))
    }
    assert found - NOT_ONE == set()
    assert NOT_ONE - found == set()


def _is_length(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_length(node.left) or _is_length(node.right)
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len"
