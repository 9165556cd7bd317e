"""Every provider takes the declaration of every tool, whatever draft and form its author wrote the schema in."""

from __future__ import annotations

import copy
import json
import logging
from random import Random
from typing import Any

import pytest
from anthropic.types import ToolParam
from google.genai.types import Tool as GeminiTool
from mcp_types.methods import SERVER_RESULTS, validate_server_result
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from tests.catalogue.service_tools import service_tools
from tests.protocols.schema_rules import check_anthropic, check_gemini, check_openai, nodes
from tests.protocols.tools_corpus import corpus
from toolwire import DefinitionError, ToolSpec
from toolwire.protocols import get
from toolwire.protocols.native.declared_schema import SAID_LIMIT

DRAFT_7, DRAFT_4 = "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema#"
TEXT: dict[str, Any] = {"type": "string"}
WHOLE = "The arguments as a whole must also match this JSON schema: "


def properties(**found: Any) -> dict[str, Any]:
    return {"type": "object", "properties": found}


def declared(name: str, schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The description and the parameters, as the provider gets them."""
    return declared_tool(name, ToolSpec.from_mcp({"name": "t", "description": "D.", "inputSchema": schema}))


def declared_tool(name: str, tool: ToolSpec) -> tuple[str, dict[str, Any]]:
    found: Any
    (found,) = get(name).describe([tool])
    if name == "gemini":
        (found,) = found["function_declarations"]
    inner = found.get("function", found)
    keys = ("parameters", "input_schema", "parameters_json_schema")
    return inner.get("description", ""), next(inner[key] for key in keys if key in inner)


TYPES: dict[str, TypeAdapter[Any]] = {
    "openai": TypeAdapter(ChatCompletionFunctionToolParam),
    "openai-responses": TypeAdapter(FunctionToolParam),
    "anthropic": TypeAdapter(ToolParam),
    "gemini": TypeAdapter(GeminiTool),
}
VERSIONS = sorted(version for method, version in SERVER_RESULTS if method == "tools/list")
NEWS_OF_2026 = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
CHECKS = {
    "openai": check_openai,
    "openai-responses": check_openai,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
}
TAKEN: dict[str, dict[str, Any]] = {
    "a root anyOf": {**properties(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "a root oneOf": {"type": "object", "oneOf": [properties(a=TEXT), properties(b=TEXT)]},
    "a root allOf": {"type": "object", "allOf": [properties(a=TEXT), {**properties(b=TEXT), "required": ["b"]}]},
    "a root not": {**properties(a=TEXT), "not": {"required": ["a"]}},
    "a root enum": {**properties(a=TEXT), "enum": [{"a": "x"}]},
    "a root const": {**properties(a=TEXT), "const": {"a": "x"}},
    "a root if": {**properties(a=TEXT), "if": {"required": ["a"]}, "then": {"minProperties": 1}},
    "an array without items": properties(a={"type": "array"}),
    "an inner array without items": properties(a=properties(b={"type": ["array", "null"]})),
    "an array in a union": properties(a={"anyOf": [{"type": "array"}, TEXT]}),
    "an array in a definition": {**properties(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "array"}}},
    "a tuple": {"$schema": DRAFT_7, **properties(a={"type": "array", "items": [TEXT], "additionalItems": False})},
    "a tuple of no draft": properties(a={"type": "array", "items": [TEXT, {"type": "number"}]}),
    "a tuple in a tuple": properties(a={"type": "array", "items": [{"type": "array", "items": [TEXT]}]}),
    "an exclusive bound": {
        "$schema": DRAFT_4,
        **properties(a={"type": "number", "minimum": 0, "exclusiveMinimum": True}),
    },
    "an exclusive bound of no draft": properties(a={"type": "number", "maximum": 9, "exclusiveMaximum": True}),
    "a bound that is not exclusive": properties(a={"type": "number", "minimum": 0, "exclusiveMinimum": False}),
    "dependencies": {"$schema": DRAFT_7, **properties(a=TEXT, b=TEXT), "dependencies": {"a": ["b"], "b": properties()}},
    "dependencies of no draft": {**properties(a=TEXT, b=TEXT), "dependencies": {"a": ["b"]}},
    "a root reference": {"$ref": "#/$defs/A", "$defs": {"A": {**properties(a=TEXT), "required": ["a"]}}},
    "a root reference beside": {"$ref": "#/$defs/A", **properties(b=TEXT), "$defs": {"A": properties(a=TEXT)}},
    "a reference to a renamed property": properties(**{"a b": TEXT, "c": {"$ref": "#/properties/a%20b"}}),
    "a reference into a tuple": properties(a={"type": "array", "items": [TEXT]}, b={"$ref": "#/properties/a/items/0"}),
    "a reference that leads on": properties(a={"$ref": "#/properties/b"}, b={"$ref": "#/properties/c"}, c=TEXT),
    "a recursive reference": {
        **properties(a={"$ref": "#/$defs/N"}),
        "$defs": {"N": properties(n={"$ref": "#/$defs/N"})},
    },
    "required without a property": {**properties(a=TEXT), "required": ["a", "b"]},
    "required in a part": properties(a={**properties(b=TEXT), "required": ["c"]}),
    "required is null": {**properties(a=TEXT), "required": None},
    "properties are null": {"type": "object", "properties": None},
    "an inner null": properties(a={"type": "object", "properties": None, "required": None, "enum": None}),
    "a list of one type": {"type": ["object"], "properties": {"a": TEXT}},
    "a root that may be null": {"type": ["object", "null"], "properties": {"a": TEXT}},
    "true and false": properties(a=True, b=False, c={"type": "array", "items": True}, d={"anyOf": [True, TEXT]}),
    "a pattern of ECMA-262": properties(a={**TEXT, "pattern": "^[^]+$"}, b={**TEXT, "pattern": r"\cA"}),
    "a look-ahead and a property": properties(a={**TEXT, "pattern": r"^(?=x)\p{L}+$"}),
    "a named group": properties(a={**TEXT, "pattern": r"(?<year>\d{4})-\k<year>"}),
    "no type": {"properties": {"a": TEXT}},
}


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("schema", TAKEN.values(), ids=TAKEN)
def test_every_provider_takes_the_schema(name: str, schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    CHECKS[name](declared(name, schema)[1])
    assert schema == before


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic"])
def test_what_the_root_combines_is_told_in_words_and_checked(name: str) -> None:
    schema = TAKEN["a root anyOf"]
    description, parameters = declared(name, schema)
    assert description == f"D.\n\n{WHOLE}" + '{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}'
    assert parameters == properties(a=TEXT, b=TEXT)
    tool = ToolSpec.from_jsonschema(name="t", input_schema=schema, function=lambda **given: sorted(given))
    assert not tool.run({}).success
    assert tool.run({"b": "x"}).data == ["b"]


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_the_fields_of_combined_schemas_are_properties(name: str) -> None:
    assert declared(name, TAKEN["a root allOf"])[1] == {**properties(a=TEXT, b=TEXT), "required": ["b"]}


def test_words_of_any_length_are_cut_and_say_so() -> None:
    for count, is_cut in ((SAID_LIMIT // 25, False), (SAID_LIMIT // 15, True)):
        words = {"anyOf": [{"required": ["a"]}] * count}
        description, _ = declared("anthropic", {**properties(a=TEXT), **words})
        assert description.endswith(f"… (cut, {len(json.dumps(words)):,} characters)") is is_cut
        assert len(description) < SAID_LIMIT + 200


def test_words_of_an_older_draft_keep_their_meaning() -> None:
    _, tuple_of = declared("anthropic", TAKEN["a tuple"])
    assert tuple_of["properties"]["a"] == {"type": "array", "prefixItems": [TEXT], "items": {"not": {}}}
    _, bound = declared("anthropic", TAKEN["an exclusive bound"])
    assert bound["properties"]["a"] == {"type": "number", "exclusiveMinimum": 0}
    _, needs = declared("anthropic", TAKEN["dependencies"])
    assert (needs["dependentRequired"], needs["dependentSchemas"]) == ({"a": ["b"]}, {"b": properties()})
    tool = ToolSpec.from_jsonschema(name="t", input_schema=TAKEN["a tuple of no draft"], function=lambda a: a)
    assert [tool.run({"a": value}).success for value in (["x", 1], ["x", "y"], [1])] == [True, False, False]


def test_a_strict_tool_of_a_root_reference_can_be_called() -> None:
    _, parameters = declared("openai", TAKEN["a root reference"])
    assert (parameters["properties"], parameters["required"]) == ({"a": TEXT}, ["a"])


@pytest.mark.parametrize("name", CHECKS)
def test_definitions_of_older_drafts_stand_where_providers_look(name: str) -> None:
    schema = {
        **properties(a={"$ref": "#/definitions/A"}),
        "required": ["a"],
        "definitions": {"A": properties(b={"$ref": "#/definitions/B", "minLength": 1}), "B": {"enum": []}},
    }
    found = declared_tool(name, ToolSpec.from_jsonschema(name="t", description="D.", input_schema=schema))[1]
    assert found["properties"]["a"] == {"$ref": "#/$defs/A"}
    assert found["$defs"]["B"] == {"description": "No value is allowed."}
    CHECKS[name](found)


@pytest.mark.parametrize("name", CHECKS)
def test_a_value_that_is_allowed_twice_is_declared_once(name: str) -> None:
    found = declared(name, {**properties(a={"enum": ["a", "b", "a"]}), "required": ["a"]})[1]
    assert found["properties"]["a"]["enum"] == ["a", "b"]


def test_required_in_a_property_is_a_name_of_its_object() -> None:
    given = {**properties(a={**TEXT, "required": True}, b={**TEXT, "required": False}), "required": ["c", "c"]}
    tool = ToolSpec.from_mcp({"name": "t", "description": "D.", "inputSchema": given})
    assert tool.__tool__().input_schema == {**properties(a=TEXT, b=TEXT), "required": ["c", "a"]}


def test_a_reference_to_a_renamed_property_leads_to_its_schema() -> None:
    _, parameters = declared("anthropic", TAKEN["a reference to a renamed property"])
    assert parameters["properties"] == {"a_space_b": TEXT, "c": {"$ref": "#/$defs/target_0"}}
    assert parameters["$defs"] == {"target_0": TEXT}


def test_a_name_that_is_required_and_no_property_is_told_as_one() -> None:
    assert declared("gemini", TAKEN["required without a property"])[1]["properties"] == {"a": TEXT, "b": {}}


def test_a_pattern_that_cannot_be_checked_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "toolwire.definition"):
        tool = ToolSpec.from_jsonschema(
            name="t", input_schema=TAKEN["a pattern of ECMA-262"], function=lambda **given: len(given)
        )
    assert "the pattern '^[^]+$', like 1 other, is not checked here" in caplog.text
    assert tool.run({"a": "x"}).data == 1


@pytest.mark.parametrize("pattern", ["(a", "[", "a{2,1}", "*", r"\p{", "(?<1>a)"])
def test_a_broken_pattern_is_still_an_error(pattern: str) -> None:
    with pytest.raises(DefinitionError, match="is not a regular expression"):
        declared("openai", properties(a={**TEXT, "pattern": pattern}))


def test_a_boolean_schema_in_draft_4_is_an_error() -> None:
    with pytest.raises(DefinitionError, match=r"true or false stands for a schema.*: leave '\$schema' out"):
        declared("openai", properties(a={"$schema": DRAFT_4, **properties(b=True)}))


CHANGES: list[dict[str, Any]] = [
    *({key: [properties(x=TEXT), {"required": ["y"]}]} for key in ("anyOf", "oneOf", "allOf")),
    *({"type": "array", "items": items} for items in ([TEXT, True], [], True, {})),
    *({"type": kind} for kind in ("array", ["array", "null"], ["object"])),
    *({key: None} for key in ("required", "properties", "enum", "items", "description")),
    *({"$ref": target} for target in ("#", "#/properties/a", "#/$defs/A", "#/properties/a/items/0")),
    {"not": {"type": "array"}},
    {"if": {"required": ["a"]}, "then": True, "else": False},
    {"enum": [{"a": 1}, None]},
    {"exclusiveMinimum": True, "minimum": 1},
    {"exclusiveMaximum": False},
    {"required": ["unknown", "a b"]},
    {"dependencies": {"a": ["b"], "c": properties()}},
    {"prefixItems": [True, TEXT]},
    {"additionalProperties": True},
    {"patternProperties": {"^[^]$": True}},
    {"pattern": r"^(?=a)\p{L}$"},
    {"$schema": DRAFT_7},
    {"$schema": DRAFT_4},
    {"default": float("inf")},
    {"const": None},
]


def mutated(seed: int) -> dict[str, Any]:
    random = Random(seed)
    schema = copy.deepcopy(random.choice(corpus()).input_schema)
    schema.setdefault("$defs", {"A": properties(b={"type": "array"})})
    schema.setdefault("properties", {}).setdefault(random.choice(["a", "a b", "a/b", "é", "x" * 70]), dict(TEXT))
    for _ in range(random.randrange(1, 6)):
        places = [node for node in nodes_of(schema) if node is not schema["$defs"]]
        node = schema if random.random() < 0.4 else random.choice(places)
        node.update(copy.deepcopy(random.choice(CHANGES)))
    return schema


def nodes_of(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found += [node] if "type" in node else []
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return found


def test_every_provider_takes_every_tool_that_can_be_defined() -> None:
    logging.getLogger("toolwire.definition").disabled = True
    try:
        taken = sum(is_taken_by_all(mutated(seed)) for seed in range(600))
    finally:
        logging.getLogger("toolwire.definition").disabled = False
    assert taken > 200


def is_taken_by_all(schema: dict[str, Any]) -> bool:
    """Whether it can be defined. Then the SDKs' types, each version of MCP and the rules of the servers take it."""
    try:
        tool = ToolSpec.from_mcp({"name": "t", "inputSchema": schema})
    except DefinitionError:
        return False
    for name, kind in TYPES.items():
        for found in get(name).describe([tool]):
            kind.validate_python(found)
    for version in VERSIONS:
        listed = {"tools": [json.loads(tool.to_mcp().model_dump_json(by_alias=True, exclude_none=True))]}
        validate_server_result("tools/list", version, {**NEWS_OF_2026, **listed})
    for name, check in CHECKS.items():
        parameters = declared_tool(name, tool)[1]
        try:
            check(parameters)
        except Exception as error:
            raise AssertionError(
                f"{name}: {error}\n{json.dumps(schema)[:3000]}\n{json.dumps(parameters)[:3000]}"
            ) from error
        assert list(nodes(parameters))
    return True


@pytest.mark.parametrize("at", range(len(corpus())))
def test_every_provider_takes_the_tools_of_public_servers(at: int) -> None:
    assert is_taken_by_all(corpus()[at].input_schema)


def test_every_provider_takes_the_tools_of_real_services() -> None:
    taken = [is_taken_by_all(tool.input_schema) for tool in service_tools()[::5]]
    assert len(taken) > 391
    assert all(taken)
