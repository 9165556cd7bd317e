"""Lists and objects that are given as JSON text: decoded once, before anything else looks at the call."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp import Client
from tests.vocabulary.strategies import unhurried
from toolwire import BaseTool, Session, Toolkit, ToolParameter, ToolRegistry, ToolResult, ToolServer, ToolSpec
from toolwire.definition.from_schema import from_schema
from toolwire.definition.json_schema.accepted_types import types_accepted_by
from toolwire.definition.tool import Tool
from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.protocols import get
from toolwire.protocols.reading.repair import JSON_TEXT_LIMIT, decode_json_texts
from toolwire.protocols.xml.render import cdata
from toolwire.vocabulary.calls import Reply, ToolCall

PROTOCOLS = ("json", "xml", "openai", "openai-responses", "anthropic", "gemini")
NOTE = "`it` is a JSON text where the tool takes a value; it was decoded."

_text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
_leaves: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({"type": "integer"}, st.integers(-(10**20), 10**20)),
    ({"type": "string"}, _text | st.sampled_from(["10", "true", "[1]", '{"a": 1}', "<b>x</b>", "]]>", "&lt;", " a "])),
    ({"type": "boolean"}, st.booleans()),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)),
]
_names = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)


@st.composite
def described(draw: st.DrawFn, levels: int = 2) -> tuple[dict[str, Any], Any]:
    """Returns the schema of an array or an object, and a value of it."""
    if draw(st.booleans()):
        inner = draw(st.sampled_from(_leaves)) if levels == 0 or draw(st.booleans()) else None
        if inner is not None:
            return {"type": "array", "items": inner[0]}, draw(st.lists(inner[1], max_size=3))
        schema, value = draw(described(levels - 1))
        return {"type": "array", "items": schema}, [value] * draw(st.integers(0, 2))
    fields, values = dict[str, Any](), dict[str, Any]()
    for name in draw(st.lists(_names, max_size=3, unique=True)):
        if levels and draw(st.booleans()):
            fields[name], values[name] = draw(described(levels - 1))
        else:
            fields[name], strategy = draw(st.sampled_from(_leaves))
            values[name] = draw(strategy)
    return {"type": "object", "properties": fields}, values


def tool_of(schema: dict[str, Any]) -> Tool:
    return from_schema(
        "take", "", {"type": "object", "properties": {"it": schema}}, function=lambda it: json.dumps(it), effects=[]
    )


def written(protocol: str, it: object) -> Any:
    """Returns a reply with this argument, as a model of the protocol writes it."""
    if protocol == "xml":
        return f'<tool_call><name>take</name><params><it type="json">{cdata(json.dumps(it))}</it></params></tool_call>'
    return get(protocol).render([ToolCall("take", {"it": it}, id="a")])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(unhurried)
@given(data=described())
def test_in_every_format_a_json_text_is_the_value_that_it_writes(
    protocol: str, data: tuple[dict[str, Any], Any]
) -> None:
    schema, value = data
    tool = tool_of(schema)
    plain = get(protocol).parse(written(protocol, value), [tool])
    text = get(protocol).parse(written(protocol, json.dumps(value)), [tool])
    assert [call.arguments for call in text.calls] == [call.arguments for call in plain.calls] == [{"it": value}]
    assert NOTE in [problem.message for problem in text.problems if problem.repaired]


@settings(unhurried)
@given(data=described())
def test_at_every_door_of_a_host_a_json_text_is_the_value_that_it_writes(data: tuple[dict[str, Any], Any]) -> None:
    schema, value = data
    spec, registry = ToolSpec(tool_of(schema)), ToolRegistry()
    registry.register(spec)
    arguments = {"it": json.dumps(value)}
    turn = Session(registry, protocol="json").run_turn(Reply(calls=(ToolCall("take", arguments),)))
    results = [spec.exec(**arguments), spec.run(arguments), registry.invoke("take", arguments), *turn.results]
    assert [result.data for result in results] == [json.dumps(value)] * 4
    assert turn.reply.calls == (ToolCall("take", {"it": value}),)
    assert [problem.message for problem in turn.reply.problems] == [NOTE]


TEXTS: list[Any] = [
    {"type": "string"},
    {"type": ["array", "string"]},
    {"anyOf": [{"type": "array"}, {"type": "string"}]},
    {"oneOf": [{"type": "object"}, {"$ref": "#/$defs/Text"}]},
    {"$ref": "#/$defs/Text"},
    {"allOf": [{"$ref": "#/$defs/Text"}]},
    {"enum": ["[1]", [1]]},
    {"items": {"type": "integer"}},
    {"properties": {"a": {}}},
    {},
    True,
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("schema", TEXTS)
def test_a_text_stays_where_the_tool_takes_texts(protocol: str, schema: Any) -> None:
    root = {"type": "object", "properties": {"it": schema}, "$defs": {"Text": {"type": "string"}}}
    tool = from_schema("take", "", root, function=lambda it: it)
    for text in ("[1]", '{"a": 1}'):
        read = get(protocol).parse(written(protocol, text), [tool])
        assert [call.arguments for call in read.calls] == [{"it": text}]
        assert decode_json_texts({"it": text}, root) == ({"it": text}, ())


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "array"}, {"array"}),
        ({"type": "number"}, {"number", "integer"}),
        ({"anyOf": [{"type": "array"}, {"type": "null"}]}, {"array", "null"}),
        ({"allOf": [{"type": ["array", "string"]}, {"type": ["array", "null"]}]}, {"array"}),
        ({"type": "array", "anyOf": [{"minItems": 1}, {"maxItems": 0}]}, {"array"}),
        ({"enum": [1, "a", None]}, {"integer", "string", "null"}),
        ({"const": []}, {"array"}),
        ({"$ref": "#/$defs/List"}, {"array"}),
        ({"minItems": 1}, {"string", "number", "integer", "boolean", "object", "array", "null"}),
    ],
)
def test_the_types_of_a_schema_are_those_that_all_of_its_parts_accept(schema: Any, types: set[str]) -> None:
    assert types_accepted_by(schema, {"$defs": {"List": {"type": "array"}}}) == types


REFUSED = [
    *('"[1, 2]"', "null", "1", "[1, 2", "[NaN]", '[{"a": 1, "a": 2}]', "[" * 65 + "]" * 65, "[" + "1" * 4301 + "]"),
    *('["\\ud800"]', "{}", "words", "[draft] a list"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_another_text_is_refused_in_words(text: str) -> None:
    def take(it: list[Any]) -> str:
        """Takes a list."""
        return "taken"

    registry = ToolRegistry()
    registry.register(take)
    results = [registry.invoke("take", {"it": text}), ToolSpec.from_function(take).run({"it": text})]
    results += Session(registry, protocol="json").run_turn(written("json", text)).results
    assert [result.failure and result.failure.kind for result in results] == ["invalid_arguments"] * 3
    assert all("'it' must be an array" in str(result.error) for result in results)


def test_a_text_inside_a_value_stays_at_a_hosts_door() -> None:
    inner = {"type": "array", "items": {"type": "array"}}
    schema = {"type": "object", "properties": {"it": inner}}
    assert decode_json_texts({"it": '["[1]"]'}, schema)[0] == {"it": ["[1]"]}
    assert decode_json_texts({"it": ["[1]"]}, schema) == ({"it": ["[1]"]}, ())


def test_a_text_has_a_largest_length() -> None:
    schema = {"type": "object", "properties": {"it": {"type": "array"}}}
    longest = "[" + " " * (JSON_TEXT_LIMIT - 2) + "]"
    assert decode_json_texts({"it": longest}, schema)[0] == {"it": []}
    assert decode_json_texts({"it": f" {longest}"}, schema) == ({"it": f" {longest}"}, ())


def test_rules_people_and_the_log_see_the_value_alone() -> None:
    asked: list[Any] = []
    seen: list[Any] = []

    def approve(request: ApprovalRequest) -> Decision:
        asked.append(dict(request.arguments))
        return Decision(verdict="approve")

    def pay(to: list[str]) -> str:
        """Pays."""
        seen.append(to)
        return "paid"

    registry = ToolRegistry(approver=approve)
    registry.register(pay, permission="confirm")
    log = registry.enable_logging()
    for _ in range(2):
        assert registry.invoke("pay", {"to": '["Ada"]'}).data == "paid"
        assert (
            Session(registry, protocol="json")
            .run_turn(Reply(calls=(ToolCall("pay", {"to": '["Ada"]'}),)))
            .results[0]
            .success
        )
    assert asked == [{"to": ["Ada"]}] * 4
    assert seen == [["Ada"]] * 4
    assert [entry.arguments for entry in log.get_entries()] == [{"to": ["Ada"]}] * 4


async def test_a_client_of_a_server_may_encode_a_list_or_an_object_and_no_text() -> None:
    def take(items: list[int], place: dict[str, int], text: str) -> list[Any]:
        """Takes them."""
        return [items, place, text]

    registry = ToolRegistry()
    registry.register(take)
    async with Client(ToolServer(registry, "tests").in_memory()) as client:
        result: Any = await client.call_tool("take", {"items": "[1, 2]", "place": '{"a": 1}', "text": "[1]"})
        wrong: Any = await client.call_tool("take", {"items": "[1, NaN]", "place": {}, "text": ""})
    assert result.structured_content == {"result": [[1, 2], {"a": 1}, "[1]"]}
    assert (wrong.is_error, "'items' must be an array of integer, not '[1, NaN]'" in wrong.content[0].text) == (
        True,
        True,
    )


def test_a_program_has_values_and_no_texts() -> None:
    def take(it: list[int]) -> int:
        """Takes a list."""
        return len(it)

    registry = ToolRegistry()
    registry.register(take)
    failed, ran = registry.run_program("take(it='[1]')"), registry.run_program("__result__ = take(it=[1])")
    assert (failed.status, failed.error and failed.error.type, ran.value) == ("failed", "InvalidArguments", 1)


class Take(BaseTool):
    def get_parameters(self) -> list[ToolParameter]:
        kinds = ("string", "integer", "number", "boolean", "array", "object")
        return [ToolParameter(kind, kind, "", False) for kind in kinds]

    async def execute(self, **params: Any) -> ToolResult:
        return ToolResult(success=True, data=params)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"string": 2024}, {"string": "2024"}),
        ({"string": 3.14}, {"string": "3.14"}),
        ({"string": True}, {"string": "true"}),
        ({"integer": "5", "number": "1.0"}, {"integer": 5, "number": 1.0}),
        ({"boolean": "true"}, {"boolean": True}),
        ({"array": "[1]", "object": '{"a": "[1]"}'}, {"array": [1], "object": {"a": "[1]"}}),
        ({"string": "[1]", "number": 5}, {"string": "[1]", "number": 5}),
        ({"integer": True}, "'integer' must be an integer"),
        ({"integer": "five"}, "'integer' must be an integer"),
        ({"array": 5}, "'array' must be an array, not 5"),
        ({"string": [1]}, "'string' must be "),
    ],
)
async def test_a_class_and_its_toolkit_take_the_texts_of_numbers_and_numbers_for_texts(
    given: dict[str, Any], taken: Any
) -> None:
    take, toolkit = Take("take", "Takes."), Toolkit("agent")
    toolkit.add_tool(take)
    for result in (await take(**given), await toolkit.execute_tool("take", given)):
        said = {name: value for name, value in (result.data or {}).items() if name in given}
        assert taken in str(result.error) if isinstance(taken, str) else said == taken


async def test_a_number_stays_one_where_a_python_type_takes_it() -> None:
    def wait(time: datetime.timedelta) -> float:
        """Waits."""
        return time.total_seconds()

    toolkit = Toolkit("agent")
    toolkit.add_tool(ToolSpec.from_function(wait))
    assert (await toolkit.execute_tool("wait", {"time": 5})).data == 5.0


def test_a_number_is_no_text_in_any_other_call() -> None:
    registry = ToolRegistry()
    registry.register(Take("take", "Takes."))
    for name in PROTOCOLS:
        reply = get(name).render([ToolCall("take", {"string": 5}, id="a")])
        results = Session(registry, protocol=name).run_turn(reply).results
        # XML has texts alone.
        assert [result.success for result in results] == [name == "xml"]
    assert not registry.invoke("take", {"string": 5}).success


TAGGED = {
    "xml": "<tool_call><name>take</name><params><it><![CDATA[{}]]></it></params></tool_call>",
    "invoke": '<invoke name="take"><parameter name="it">{}</parameter></invoke>',
    "function": "<tool_call>\n<function=take>\n<parameter=it>\n{}\n</parameter>\n</function>\n</tool_call>",
    "pairs": "<tool_call>take\n<arg_key>it</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
}


@pytest.mark.parametrize("form", TAGGED)
@pytest.mark.parametrize("text", ['["a"]', '{"a": 1}', '"[1]"', '["a",]', "[]"])
def test_a_text_in_tags_stays_text_where_the_tool_also_takes_a_text(form: str, text: str) -> None:
    for other in ("array", "object"):
        tool = tool_of({"anyOf": [{"type": other}, {"type": "string"}]})
        turn = Session([ToolSpec(tool)], protocol="xml").run_turn(TAGGED[form].format(text))
        assert [call.arguments for call in turn.reply.calls] == [{"it": text}]


@pytest.mark.parametrize("form", TAGGED)
def test_a_list_in_a_json_string_is_refused_by_the_tool_that_takes_a_list(form: str) -> None:
    tool = tool_of({"type": "array", "items": {"type": "integer"}})
    session = Session([ToolSpec(tool)], protocol="xml")
    turns = [session.run_turn(TAGGED[form].format(text)) for text in ("[1]", '"[1]"')]
    assert [[result.success for result in turn.results] for turn in turns] == [[True], [False]]
