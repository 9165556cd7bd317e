"""Tools known by their JSON schema."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Callable
from typing import Any

import pytest

from toolwire import ToolRegistry
from toolwire.definition.from_schema import from_schema
from toolwire.definition.parameters import ToolParameter, schema_of
from toolwire.definition.shape import ArgumentProblem, Invalid, Validated
from toolwire.definition.tool import Tool, canonical
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import DefinitionError

ROW = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "default": 10, "minimum": 1},
        "query": {"type": "string", "description": "the words"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "order": {"enum": ["asc", "desc"]},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "filter": {"type": "object"},
        "any": True,
        "ratio": {"type": ["number", "null"]},
    },
    "required": ["query"],
    "$defs": {"Row": ROW},
}


def take(**arguments: Any) -> dict[str, Any]:
    return arguments


def search(function: Callable[..., Any] | None = take) -> Tool:
    return from_schema("search", "Searches.", SEARCH, None, function)


def run(tool: Tool, arguments: dict[str, Any]) -> Any:
    validated = tool.validate(arguments)
    assert isinstance(validated, Validated), validated
    return tool.invoke(validated)


def refused(tool: Tool, arguments: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = tool.validate(arguments)
    assert isinstance(found, Invalid), found
    return [(problem.path, problem.kind, problem.message) for problem in found.problems]


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(DefinitionError) as failed:
        make()
    return str(failed.value)


def test_the_schema_is_kept_as_it_was_given() -> None:
    tool = search()
    assert (tool.name, tool.description, tool.input_schema) == ("search", "Searches.", SEARCH)


def test_the_function_gets_the_arguments_and_the_defaults_as_keywords() -> None:
    assert run(search(), {"query": "x", "tags": ["a"]}) == {"query": "x", "tags": ["a"], "limit": 10}


def test_values_of_python_are_taken_in_their_json_form() -> None:
    day = dt.date(2024, 5, 6)
    assert run(search(), {"query": "x", "tags": ("a",), "any": day}) == {
        "query": "x",
        "tags": ["a"],
        "any": "2024-05-06",
        "limit": 10,
    }
    assert refused(search(), {"query": "x", "any": len}) == [
        (
            "any",
            "invalid",
            (
                "'any' must be JSON, not <built-in function len>: a value of type builtin_function_or_method cannot be "
                "written as JSON."
            ),
        )
    ]


def test_parameters_are_read_from_the_schema_the_required_first() -> None:
    found = [(item.name, item.annotation, item.required, item.default) for item in search().parameters]
    missing = search().parameters[0].default
    assert found == [
        ("query", "str", True, missing),
        ("limit", "int", False, 10),
        ("tags", "list[str]", False, missing),
        ("order", "Literal['asc', 'desc']", False, missing),
        ("rows", "list[dict]", False, missing),
        ("note", "str | None", False, missing),
        ("filter", "dict", False, missing),
        ("any", "Any", False, missing),
        ("ratio", "float | None", False, missing),
    ]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    given = {"limit": 0, "tags": ["a", 3], "order": "up", "rows": [{"nam": "a"}], "note": 3}
    assert refused(search(), given) == [
        ("limit", "invalid", "'limit' must be an integer (at least 1), not 0."),
        ("tags[1]", "invalid", "'tags[1]' must be a string, not 3."),
        ("order", "invalid", "'order' must be one of 'asc', 'desc', not 'up'."),
        ("rows[0].name", "missing", "'rows[0].name' is missing: give a string."),
        ("note", "invalid", "'note' must be a string or null, not 3."),
        ("query", "missing", "'query' is missing: give a string."),
    ]


def test_a_number_in_text_is_not_a_number_and_a_boolean_is_not_an_integer() -> None:
    assert refused(search(), {"query": "x", "limit": "3"}) == [
        ("limit", "invalid", "'limit' must be an integer (at least 1), not '3'.")
    ]
    assert refused(search(), {"query": "x", "limit": True}) == [
        ("limit", "invalid", "'limit' must be an integer (at least 1), not True.")
    ]


def test_a_forbidden_argument_is_refused_with_the_nearest_name() -> None:
    closed = {**SEARCH, "additionalProperties": False}
    assert refused(from_schema("s", "", closed), {"query": "x", "limits": 3}) == [
        ("limits", "unexpected", "'limits' is unknown: did you mean 'limit'?")
    ]


def test_what_the_schema_allows_is_refused_only_if_the_function_cannot_take_it() -> None:
    def narrow(query: str) -> str:
        return query

    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    assert run(from_schema("s", "", schema, None, take), {"query": "x", "more": 1}) == {"query": "x", "more": 1}
    assert refused(from_schema("s", "", schema, None, narrow), {"query": "x", "querry": 1}) == [
        ("querry", "unexpected", "'querry' is unknown: did you mean 'query'?")
    ]


def test_the_message_is_about_the_intended_alternative() -> None:
    schema = {"type": "object", "properties": {"it": {"anyOf": [{"type": "string"}, ROW]}}}
    assert refused(from_schema("s", "", schema), {"it": {}}) == [
        ("it.name", "missing", "'it.name' is missing: give a string.")
    ]
    assert refused(from_schema("s", "", schema), {"it": 3}) == [
        ("it", "invalid", "'it' must be a string or an object with name, not 3.")
    ]


def test_a_keyword_that_our_words_do_not_say_is_explained() -> None:
    schema = {"type": "object", "properties": {"it": {"type": "array", "uniqueItems": True}}, "minProperties": 1}
    assert refused(from_schema("s", "", schema), {"it": [1, 1]}) == [
        ("it", "invalid", "'it' must be an array, not [1, 1]: [1, 1] has non-unique elements.")
    ]
    assert refused(from_schema("s", "", schema), {}) == [
        ("arguments", "invalid", "'arguments' must be an object with it, not {}: {} should be non-empty.")
    ]


def test_formats_are_not_asserted() -> None:
    schema = {"type": "object", "properties": {"it": {"type": "string", "format": "date-time"}}}
    assert run(from_schema("s", "", schema, None, take), {"it": "soon"}) == {"it": "soon"}


def test_bound_properties_disappear_and_cannot_be_given() -> None:
    tool = search()
    tool.bindings.bind("query", default="mine")
    assert "query" not in tool.input_schema["properties"]
    assert tool.input_schema["required"] == []
    assert run(tool, {}) == {"query": "mine", "limit": 10}
    assert refused(tool, {"query": "yours"}) == [
        ("query", "hidden", "'query' is set by the host and not yours to give: remove it.")
    ]


def test_the_canonical_form_validates_to_the_same() -> None:
    tool = search()
    validated = tool.validate({"query": "x", "rows": [{"name": "a"}], "tags": ("b",)})
    assert isinstance(validated, Validated)
    assert tool.validate(canonical(validated)) == validated


def test_a_default_is_not_shared_between_calls() -> None:
    def fill(items: list[int]) -> list[int]:
        items.append(1)
        return items

    schema = {"type": "object", "properties": {"items": {"type": "array", "default": []}}}
    tool = from_schema("fill", "", schema, None, fill)
    assert [run(tool, {}), run(tool, {})] == [[1], [1]]


def test_a_function_may_ask_for_the_context() -> None:
    async def fetch(url: str, context: CallContext) -> Any:
        return url, context

    tool = from_schema("fetch", "", {"type": "object", "properties": {"url": {"type": "string"}}}, None, fetch)
    assert (tool.is_async, tool.context_parameter) == (True, "context")
    assert refused(tool, {"url": "x", "context": 1}) == [
        ("context", "hidden", "'context' is set by the host and not yours to give: remove it.")
    ]


def test_a_tool_known_by_its_schema_alone_cannot_be_called() -> None:
    tool = search(None)
    assert tool.function is None
    validated = tool.validate({"query": "x"})
    assert isinstance(validated, Validated)
    assert refusal(lambda: tool.invoke(validated)) == (
        "tool 'search' is known by its schema alone and cannot be called: give function=..."
    )


def test_a_schema_may_be_of_an_older_draft() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
    }
    assert refused(from_schema("s", "", schema), {"pair": ["a", "b"]}) == [
        ("pair[1]", "invalid", "'pair[1]' must be an integer, not 'b'.")
    ]


def test_no_type_means_object() -> None:
    assert from_schema("s").input_schema == {"type": "object", "properties": {}}
    assert from_schema("s", "", {"properties": {}}).input_schema == {"type": "object", "properties": {}}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array"}, "tool 's': input_schema must have \"type\": \"object\", not 'array'"),
        (3, "tool 's': input_schema must be a JSON schema as a dict, not 3"),
        (
            {"type": "object", "properties": {"a": {"type": "text"}}},
            (
                "tool 's': schema.properties.a.type is not a JSON schema: 'text' is not valid under any of the given "
                "schemas"
            ),
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}},
            (
                "tool 's': the schema refers to another document, 'https://example.com/a.json', and toolwire does not "
                "fetch it: "
                "copy its target under '$defs' and write '#/$defs/NAME'"
            ),
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
            "tool 's': the schema's reference '#/$defs/A' leads nowhere: add it under '$defs'",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/required"}}, "required": ["a"]},
            (
                "tool 's': the schema's reference '#/required' leads to a list, which is not a schema: "
                "write '#/$defs/NAME'"
            ),
        ),
        (
            {"type": "object", "properties": {"a": {"const": float("nan")}}},
            "tool 's': schema.properties.a.const is NaN, which JSON lacks: write a number, or leave it out",
        ),
        (
            {"type": "object", "properties": {"a-b": {}, "a_b": {}}},
            "tool 's': a program writes 'a_b' for both 'a-b' and 'a_b': rename one",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_at_once(schema: Any, message: str) -> None:
    assert refusal(lambda: from_schema("s", "", schema)) == message


def test_a_property_called_ref_is_not_a_reference() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string", "default": {"$ref": "nowhere"}}}}
    assert from_schema("s", "", schema).input_schema == schema


def test_a_function_that_does_not_fit_the_schema_is_refused_at_once() -> None:
    def f(a: int) -> None: ...

    both = {"type": "object", "properties": {"a": {}, "b": {}}}
    none = {"type": "object", "properties": {}}
    assert refusal(lambda: from_schema("s", "", both, None, f)) == (
        "tool 's': the function has no parameter for the property 'b' (it takes 'a'): add it, or **more"
    )
    assert refusal(lambda: from_schema("s", "", none, None, f)) == (
        "tool 's': the function needs 'a', which the schema lacks: add it to 'properties', or give it a default"
    )
    assert refusal(lambda: from_schema("s", "", none, None, 3)) == (  # pyright: ignore[reportArgumentType]
        "tool 's': function=3 cannot be called"
    )


def test_parameters_make_a_schema_that_accepts_nothing_else() -> None:
    parameters = [
        ToolParameter(name="query", type="string", description="the words", required=True),
        ToolParameter("count", "integer", "how many", required=False, default=10),
        ToolParameter("safe", "boolean", "", False),
    ]
    tool = from_schema("web_search", "Searches the web", schema_of(parameters, "tool 'web_search'"), None, take)
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "the words"},
            "count": {"type": "integer", "description": "how many", "default": 10},
            "safe": {"type": "boolean"},
        },
        "additionalProperties": False,
        "required": ["query"],
    }
    assert run(tool, {"query": "x"}) == {"query": "x", "count": 10}
    assert refused(tool, {"q": "x"}) == [
        ("query", "missing", "'query' is missing: give a string."),
        ("q", "unexpected", "'q' is unknown: it takes 'query', 'count', 'safe'."),
    ]


def test_an_own_check_comes_after_the_schema() -> None:
    seen: list[dict[str, Any]] = []

    def check(arguments: dict[str, Any]) -> str | None:
        seen.append(arguments)
        return "no cats" if arguments["query"] == "cats" else None

    parameters = [ToolParameter("query", "string", ""), ToolParameter("user", "string", "")]
    tool = from_schema("s", "", schema_of(parameters, "tool 's'"), None, take, check=check)
    tool.bindings.bind("user", default="me")
    assert isinstance(tool.validate({"query": 3}), Invalid)
    assert seen == []
    assert tool.validate({"query": "cats"}) == Invalid(
        problems=(ArgumentProblem(path="", kind="refused", message="no cats"),)
    )
    assert run(tool, {"query": "dogs"}) == {"query": "dogs", "user": "me"}
    assert seen == [{"query": "cats", "user": "me"}, {"query": "dogs", "user": "me"}]


def test_wrong_parameters_are_refused_at_once() -> None:
    assert refusal(lambda: schema_of([ToolParameter("a", "text", "")], "tool 's'")) == (
        "tool 's': parameter 'a' has the unknown type 'text': write string, integer, number, boolean, array, object"
    )
    twice = [ToolParameter("a", "string", ""), ToolParameter("a", "string", "")]
    assert refusal(lambda: schema_of(twice, "tool 's'")) == "tool 's': two parameters are called 'a': rename one"


CONTEXT_SCHEMA = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}


@pytest.mark.parametrize("is_async", [False, True])
def test_a_context_parameter_passed_by_position_collides_with_no_argument(is_async: bool) -> None:
    def call(own: CallContext, /, **arguments: Any) -> list[Any]:
        return [type(own).__name__, arguments]

    async def call_later(own: CallContext, /, **arguments: Any) -> list[Any]:
        return call(own, **arguments)

    def call_same(context: CallContext, /, **arguments: Any) -> list[Any]:
        return call(context, **arguments)

    for function in (call_later if is_async else call, call_same):
        registry = ToolRegistry()
        registry.register(from_schema("s", "", CONTEXT_SCHEMA, None, function))
        assert registry.invoke("s", {"context": "mine"}).data == ["CallContext", {"context": "mine"}]


@pytest.mark.parametrize(
    "schema", [CONTEXT_SCHEMA, {"type": "object", "anyOf": [{"properties": {"context": {"type": "string"}}}]}]
)
def test_a_property_that_the_context_parameter_would_hide_is_refused_at_once(schema: dict[str, Any]) -> None:
    def call(context: CallContext, **arguments: Any) -> None: ...

    assert refusal(lambda: from_schema("s", "", schema, None, call)) == (
        "tool 's': the property 'context' has the name of the function's context parameter: write that parameter "
        "first, and '/' after it"
    )


@pytest.mark.parametrize("keyword", [{"$recursiveRef": "#"}, {"dependencies": {"a": ["b"]}}])
def test_a_keyword_of_an_older_draft_is_checked_without_a_crash(keyword: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": keyword}}
    assert isinstance(from_schema("s", "", schema).validate({"a": 1}), Validated)
