"""`search_tools`, as a model calls it."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import Rule, ToolRegistry, ToolSpec
from toolwire.builtin.search_tools import (
    ANSWER_LIMIT_BYTES,
    FOUND_DEFAULT,
    FOUND_LIMIT,
    QUERY_LIMIT,
    SUMMARY_LIMIT,
)
from toolwire.invocation.scope import RESULT_LIMIT_BYTES


def send_email(to: str, text: str = "") -> str:
    """Sends an email.

    Args:
        to: The address
        text: What to say
    """
    return f"sent to {to}"


def delete_file(path: str) -> None:
    """Deletes a file."""


def registry_of(*tools: Any, rules: list[Rule] | None = None) -> ToolRegistry:
    registry = ToolRegistry(rules=rules or [])
    for tool in tools:
        registry.register(tool)
    registry.configure(tool_search=True)
    return registry


def search(registry: ToolRegistry, query: str, **more: Any) -> Any:
    return registry.invoke("search_tools", {"query": query, **more})


def test_it_gives_the_stub_of_what_fits() -> None:
    result = search(registry_of(send_email, delete_file), "mail someone")
    assert result.text == (
        '1 tool:\n\ndef send_email(to: str, text: str = "") -> str:\n    """\n    Sends an email.\n\n    Args:\n'
        "        to: The address\n"
        '        text: What to say\n    """'
    )
    assert result.metadata["found"] == ["send_email"]


def test_it_gives_the_best_first_and_the_name_where_a_program_writes_another() -> None:
    registry = ToolRegistry()
    registry.register(delete_file, name="files.delete")
    registry.register(delete_file, name="files.delete.undo")
    registry.configure(tool_search=True)
    stub = '(path: str) -> None:\n    """\n    Deletes a file.\n    """'
    assert search(registry, "delete").text == (
        f"2 tools, best first:\n\nfiles.delete\ndef files_delete{stub}\n\n"
        f"files.delete.undo\ndef files_delete_undo{stub}"
    )


def test_it_says_how_to_ask_when_nothing_fits() -> None:
    result = search(registry_of(send_email), "quantum")
    assert (result.success, result.metadata["found"]) == (True, [])
    assert result.text == (
        "No tool fits 'quantum'. Say it in other words: an action and its object, as 'send email' or "
        "'list files'. If that finds nothing either, there is no such tool."
    )


def test_it_finds_neither_itself_nor_programs_nor_what_is_denied() -> None:
    registry = registry_of(send_email, delete_file, rules=[Rule(effect="deny", tool="delete_*")])
    registry.enable_code_execution()
    words = "search find tools run a program python delete a file"
    assert search(registry, words).metadata["found"] == []
    allowing = registry_of(send_email, delete_file)
    assert search(allowing, words).metadata["found"] == ["delete_file"]


@pytest.mark.parametrize(
    ("arguments", "is_taken"),
    [
        ({"query": "x" * QUERY_LIMIT}, True),
        ({"query": "x" * (QUERY_LIMIT + 1)}, False),
        ({"query": ""}, False),
        ({"query": "mail", "limit": 1}, True),
        ({"query": "mail", "limit": 0}, False),
        ({"query": "mail", "limit": FOUND_LIMIT}, True),
        ({"query": "mail", "limit": FOUND_LIMIT + 1}, False),
        ({}, False),
        ({"query": "mail", "more": 1}, False),
    ],
)
def test_its_arguments_have_limits(arguments: dict[str, Any], is_taken: bool) -> None:
    result = registry_of(send_email).invoke("search_tools", arguments)
    assert (result.success, is_taken or result.failure.kind == "invalid_arguments") == (is_taken, True)


def test_it_gives_five_unless_asked_for_more() -> None:
    registry = ToolRegistry()
    for number in range(FOUND_LIMIT + 2):
        registry.register(delete_file, name=f"delete_{number}")
    registry.configure(tool_search=True)
    found = [len(search(registry, "delete", **more).metadata["found"]) for more in ({}, {"limit": FOUND_LIMIT})]
    assert found == [FOUND_DEFAULT, FOUND_LIMIT]


def test_tools_beyond_the_answer_limit_take_one_line() -> None:
    registry = ToolRegistry()
    for number in range(FOUND_LIMIT):
        parameters = {f"p{place}": {"type": "string", "description": "长" * 500} for place in range(20)}
        registry.register(
            ToolSpec.from_jsonschema(
                name=f"delete_{number}", description=f"{'d' * 300}\nMore.", input_schema={"properties": parameters}
            )
        )
    registry.configure(tool_search=True)
    text = search(registry, "delete", limit=FOUND_LIMIT).text
    assert ANSWER_LIMIT_BYTES // 2 < len(text.encode()) < RESULT_LIMIT_BYTES
    assert (text.count("\ndef delete_"), text.count(f": {'d' * SUMMARY_LIMIT}\n(Search for ")) == (2, 8)
    assert search(registry, "delete_9", limit=1).text.startswith("1 tool:\n\ndef delete_9(")


def test_a_program_searches_and_calls_what_it_found() -> None:
    result = registry_of(send_email).run_program(
        "print('def send_email' in search_tools('write a mail'))\nprint(send_email('Ann'))"
    )
    assert (result.stdout, [call.tool for call in result.calls]) == (
        "True\nsent to Ann\n",
        ["search_tools", "send_email"],
    )
