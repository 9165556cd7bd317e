"""A tool's name in another spelling: dots, slashes and `_` are read alike where only one tool can be meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import Session, ToolCall, ToolSpec
from toolwire.definition.from_schema import from_schema
from toolwire.protocols import get
from toolwire.protocols.streaming import CallStarted
from toolwire.protocols.tool_names import provider_name

SCHEMA = {"type": "object", "properties": {"country": {"type": "string"}}, "required": ["country"]}
ARGUMENTS = {"country": "Peru"}
NATIVE = ["openai", "openai-responses", "anthropic", "gemini"]


def tools(*names: str) -> list[Any]:
    return [from_schema(name, "Looks it up.", SCHEMA) for name in names]


def reply(protocol: str, name: str) -> Any:
    match protocol:
        case "json":
            return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(ARGUMENTS)}}}\n</tool_call>'
        case "xml":
            return f"<tool_call><name>{name}</name><params><country>Peru</country></params></tool_call>"
        case "openai":
            call = {"id": "a", "type": "function", "function": {"name": name, "arguments": json.dumps(ARGUMENTS)}}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        case "openai-responses":
            call = {"type": "function_call", "call_id": "a", "name": name, "arguments": json.dumps(ARGUMENTS)}
            return {"output": [call]}
        case "anthropic":
            return {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": name, "input": ARGUMENTS}]}
        case _:
            return {"candidates": [{"content": {"parts": [{"functionCall": {"name": name, "args": ARGUMENTS}}]}}]}


def called(protocol: str, written: str, known: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    read = get(protocol).parse(reply(protocol, written), known)
    return [(call.name, dict(call.arguments)) for call in read.calls]


@pytest.mark.parametrize("protocol", ["json", "xml", *NATIVE])
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("country_info.capital", "country_info.capital"),
        ("country_info.capital", "country_info_capital"),
        ("country_info.capital", "country_info/capital"),
        ("country_info_capital", "country_info.capital"),
        ("server/country-info.capital", "server_country_info_capital"),
        ("server/country-info.capital", "server.country_info.capital"),
        ("print", "print_"),
        ("country_info.capital", "country_info"),
        ("server/capital.of", "server/capital"),
        ("server/capital", "server"),
    ],
)
def test_another_spelling_of_a_tool_is_read(protocol: str, name: str, written: str) -> None:
    assert called(protocol, written, tools("look", name)) == [(name, ARGUMENTS)]


@pytest.mark.parametrize("protocol", ["json", "xml", *NATIVE])
@pytest.mark.parametrize("written", ["functions.{}", "default_api.{}", "default_api:{}", "functions.{}:0", "{}:12"])
@pytest.mark.parametrize("name", ["weather", "country_info.capital", "server/country-info.capital"])
def test_a_namespace_and_a_number_that_models_write_around_a_name_are_left_out(
    protocol: str, name: str, written: str
) -> None:
    spellings = (name, provider_name(name), name.replace(".", "_"))
    found = [called(protocol, written.format(spelling), tools("look", name)) for spelling in spellings]
    assert found == [[(name, ARGUMENTS)]] * 3


@pytest.mark.parametrize("protocol", ["json", "xml", *NATIVE])
def test_a_tool_with_a_namespace_in_its_name_comes_before_one_without(protocol: str) -> None:
    for name in ("functions.weather", "default_api.weather", "functions_weather"):
        assert called(protocol, name, tools("weather", name)) == [(name, ARGUMENTS)]
    assert called(protocol, "functions.weather:0", tools("weather", "functions.weather")) == [
        ("functions.weather", ARGUMENTS)
    ]


@pytest.mark.parametrize("protocol", ["json", "xml", *NATIVE])
@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("functions.weather", ("functions_weather", "weather")),
        ("functions.weather:0", ("functions_weather", "weather")),
        ("functions.weather:0", ("weather:0", "weather")),
        ("functions.weather:0", ("weather:0", "functions.weather")),
        ("weather:0", ("weather_0", "weather")),
        ("default_api:weather", ("default_api.weather", "weather")),
        ("functions.info:capital", ("info.capital", "info/capital")),
    ],
)
def test_a_name_that_means_one_tool_as_it_is_and_another_without_its_additions_is_refused_with_both(
    protocol: str, written: str, names: tuple[str, str]
) -> None:
    read = get(protocol).parse(reply(protocol, written), tools(*names))
    message = f"{written!r} may mean {names[0]!r} or {names[1]!r}. Write the name of one of them exactly."
    assert (read.calls, [problem.message for problem in read.problems]) == ((), [message])


@pytest.mark.parametrize("protocol", NATIVE)
@pytest.mark.parametrize("written", ["function.weather", "functions.functions.look", "functions.", "weather:x", ":0"])
def test_other_words_around_a_name_are_not_left_out(protocol: str, written: str) -> None:
    read = get(protocol).parse(reply(protocol, written), tools("look", "weather"))
    assert {call.name for call in read.calls} & {"look", "weather"} == set()


@pytest.mark.parametrize("protocol", ["json", "xml", *NATIVE])
def test_a_tool_of_exactly_that_name_comes_first(protocol: str) -> None:
    both = tools("info.capital", "info_capital", "info/capital")
    for name in ("info.capital", "info_capital", "info/capital"):
        assert called(protocol, name, both) == [(name, ARGUMENTS)]


@pytest.mark.parametrize("protocol", ["json", "xml", *NATIVE])
def test_a_spelling_of_two_tools_is_refused_with_both_names(protocol: str) -> None:
    read = get(protocol).parse(reply(protocol, "info:capital"), tools("info.capital", "info/capital"))
    message = "'info:capital' may mean 'info.capital' or 'info/capital'. Write the name of one of them exactly."
    assert read.calls == ()
    assert [problem.message for problem in read.problems] == [message]
    assert read.is_refused


@pytest.mark.parametrize("protocol", ["json", "xml", *NATIVE])
@pytest.mark.parametrize("written", ["capital", "country_info_capital_2", "x" * 200, "a\u200bb"])
def test_the_control_another_name_stays_unknown(protocol: str, written: str) -> None:
    assert called(protocol, written, tools("country_info.capital"))[0][0] != "country_info.capital"


def test_a_prompt_shows_one_spelling_of_a_dotted_name() -> None:
    capital = from_schema("info.capital", "A capital.", SCHEMA, effects=["read"])
    prompts = [str(get(name).describe([capital, *tools("code_execution")])) for name in ("json", "xml")]
    assert ["info_capital" in prompt for prompt in prompts] == [False, False]
    assert '__result__ = [info.capital(country="Norway"), info.capital(country="Peru")]' in prompts[0]
    assert "info.capital" not in str(get("attp").describe([capital]))


def noted(code: str, protocol: str = "attp") -> list[str]:
    calls = [ToolCall("code_execution", {"code": code})]
    offered = [*tools("info.capital", "count_lines", "sqrt"), *tools("code_execution")]
    read = get(protocol).parse(get(protocol).render(calls), offered)
    assert not read.is_refused
    assert [problem.repaired for problem in read.problems] == [True] * len(read.problems)
    return [f"{problem.place}: {problem.message}" for problem in read.problems]


@pytest.mark.parametrize("protocol", ["attp", "json"])
@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("import count_lines", "'count_lines'"),
        ("import math, count_lines as c", "'count_lines'"),
        ("from tools import count_lines, sqrt", "'count_lines', 'sqrt'"),
        ("from info import capital", "'capital'"),
        ("import info", "'info'"),
        ("if True:\n    from tools import (count_lines)", "'count_lines'"),
    ],
)
def test_the_import_of_a_tool_is_reported_as_a_repair(protocol: str, statement: str, names: str) -> None:
    line = 1 + statement.count("\n")
    message = f"line {line} of the code: The import of {names} was read as nothing: tools are there without import."
    assert noted(f"{statement}\n__result__ = 1\n", protocol) == [message]


@pytest.mark.parametrize(
    "statement", ["import math", "from math import sqrt", "import other", "from tools import count_lines, other"]
)
def test_the_control_other_imports_are_not_reported(statement: str) -> None:
    assert noted(f"{statement}\n__result__ = 1\n") == []


@pytest.mark.parametrize("protocol", ["json", "xml"])
def test_a_call_in_another_spelling_runs_and_a_stream_names_the_tool(protocol: str) -> None:
    spec = ToolSpec.from_jsonschema(
        name="country_info.capital", description="A capital.", input_schema=SCHEMA, function=lambda country: country
    )
    session = Session([spec], protocol=protocol)
    written = reply(protocol, "country_info_capital")
    turn = session.run_turn(written)
    assert [(result.success, result.data) for result in turn.results] == [(True, "Peru")]
    stream = session.stream()
    events = [event for piece in written for event in stream.feed(piece)]
    assert [event.name for event in events if isinstance(event, CallStarted)] == ["country_info.capital"]
