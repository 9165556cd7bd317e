"""Schemas of strangers cost the host little, and only the host's developer is told of their faults."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema
import pytest

from tests import processor
from tests.definition.json_schema.hostile_schemas import BOMBS, EVIL, Bomb, ladder, nested, taking
from toolwire.definition.arguments.problems import COMPLAINT_LIMIT_BYTES, COMPLAINT_PROBLEMS_LIMIT
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.hostile.keywords import STEPS_LIMIT
from toolwire.definition.hostile.schema_limits import SCHEMA_LEVELS_LIMIT, SCHEMA_NODES_LIMIT, SCHEMA_TEXT_LIMIT
from toolwire.definition.shape import Invalid
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.results import ToolResult

SECONDS = 1.0
"""Seconds of the processor for a definition or a call, on a machine at rest."""


def take(**arguments: Any) -> str:
    return "taken"


def tool_of(schema: Mapping[str, Any]) -> Any:
    return from_schema("stranger", "", schema, None, take)


def seconds(do: Callable[[], object]) -> float:
    start = time.thread_time()
    do()
    return time.thread_time() - start


def refused(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    found = tool_of(schema).validate(arguments)
    return list(found.lines) if isinstance(found, Invalid) else []


def refusal(schema: Mapping[str, Any]) -> str:
    with pytest.raises(DefinitionError) as failed:
        tool_of(schema)
    return str(failed.value)


@pytest.mark.threat(68)
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_hostile_schema_costs_little_and_its_complaint_is_short(bomb: Bomb) -> None:
    registry, problem = ToolRegistry(), ""
    results: list[ToolResult] = []

    def define() -> None:
        nonlocal problem
        try:
            registry.register(
                ToolSpec.from_jsonschema(name="stranger", description="", input_schema=bomb.schema, function=take),
                replace=True,
            )
        except DefinitionError as error:
            problem = str(error)

    def invoke() -> None:
        results.append(registry.invoke("stranger", bomb.arguments))

    assert processor.seconds(define, enough=SECONDS) <= SECONDS
    assert processor.seconds(invoke, enough=SECONDS) <= SECONDS
    result = results[-1]
    told = f"{result.error or ''}{'' if result.failure is None else result.failure.hint}"
    assert len(told.encode()) <= COMPLAINT_LIMIT_BYTES
    if problem:
        assert (problem.partition(": ")[0], len(problem) <= 1_000) == ("tool 'stranger'", True)
    elif result.failure is not None:
        assert result.failure.kind in ("invalid_arguments", "unavailable")
        assert len(result.failure.data["problems"]) <= COMPLAINT_PROBLEMS_LIMIT


@pytest.mark.threat(68)
def test_the_naive_engine_takes_time_that_doubles_with_each_character() -> None:
    schema = taking({"pattern": EVIL})
    naive = jsonschema.Draft202012Validator(schema)
    short, long = ({"a": "a" * count + "b"} for count in (12, 21))
    assert seconds(lambda: naive.is_valid(long)) > 50 * seconds(lambda: naive.is_valid(short))
    ours = tool_of(schema)
    ours.validate(short)
    assert processor.seconds(lambda: ours.validate({"a": "a" * 5_000 + "b"}), enough=0.1) <= 0.1


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("b", "abc", "ac"),
        ("^b", "bc", "ab"),
        (r"^\d+$", "12", "\u0661"),
        (r"^\w+$", "ab_1", "\u00e9"),
        (r"^[\w-]+$", "a-b", "a b"),
        (r"^\D$", "x", "1"),
        (r"^[^\W]$", "x", "-"),
        (r"^[[]$", "[", "]"),
        (r"^[&&]$", "&", "x"),
        ("^a$", "a", "a\n"),
        (r"^(?<year>[0-9]{4})$", "2024", "24"),
        (r"^\/x\u0041$", "/xA", "xA"),
        (r"^\p{L}+$", "\u00e9", "1"),
        ("^a{2,3}$", "aa", "aaaa"),
    ],
)
def test_patterns_mean_what_json_schema_says(pattern: str, fits: str, does_not: str) -> None:
    schema = taking({"type": "string", "pattern": pattern})
    assert (refused(schema, {"a": fits}), len(refused(schema, {"a": does_not}))) == ([], 1)
    names = {"type": "object", "patternProperties": {pattern: {"type": "integer"}}, "additionalProperties": False}
    assert (refused(names, {fits: 1}), len(refused(names, {fits: "x"})), len(refused(names, {does_not: 1}))) == (
        [],
        1,
        1,
    )


def test_a_pattern_that_the_engine_cannot_hold_is_left_to_the_tool_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "toolwire.definition"):
        assert refused(taking({"pattern": "^(?!admin)"}), {"a": "admin"}) == []
        assert refused({"type": "object", "patternProperties": {"(?=x)": False}}, {"x": 1}) == []
    assert [record.getMessage().partition(" is not")[0] for record in caplog.records] == [
        "tool 'stranger': the pattern '^(?!admin)'",
        "tool 'stranger': the pattern '(?=x)'",
    ]


def test_a_name_that_only_an_unchecked_pattern_can_allow_is_not_refused() -> None:
    schema = {"type": "object", "patternProperties": {"(?=x)": True}, "additionalProperties": False}
    assert refused(schema, {"x": 1}) == []


def test_a_pattern_that_is_not_one_is_refused_at_its_definition() -> None:
    assert refusal(taking({"pattern": "(a"})).startswith(
        "tool 'stranger': the schema's pattern '(a' is not a regular expression: "
    )


@pytest.mark.parametrize(
    ("items", "are_unique"),
    [
        ([1, 1.0], False),
        ([0, -0.0], False),
        ([10**22, 1e22], False),
        ([1, True], True),
        ([0, False], True),
        ([1, "1"], True),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], False),
        ([[1], [True]], True),
        ([None, False, 0, "", [], {}], True),
    ],
)
def test_unique_items_are_compared_as_json_schema_says(items: list[Any], are_unique: bool) -> None:
    schema = taking({"type": "array", "uniqueItems": True})
    assert (refused(schema, {"a": items}) == []) is are_unique
    assert jsonschema.Draft202012Validator(schema).is_valid({"a": items}) is are_unique


def test_a_ladder_is_blamed_on_the_schema_and_not_on_the_model() -> None:
    registry = ToolRegistry()
    registry.register(
        ToolSpec.from_jsonschema(name="stranger", description="", input_schema=ladder("anyOf"), function=take)
    )
    result = registry.invoke("stranger", {"a": 1})
    assert result.failure is not None
    assert (result.failure.kind, result.failure.hint, result.error) == (
        "unavailable",
        "The owner of the tool has to fix this; the arguments were not the cause.",
        (
            "'stranger' cannot run: tool 'stranger': its schema cannot be used: a check of 2 values takes more than "
            "20,000 steps or 128 levels"
        ),
    )
    assert tool_of(ladder("anyOf", rungs=6)).validate({"a": "x"}).values == {"a": "x"}


def test_a_reference_that_an_inner_base_leads_nowhere_is_blamed_on_the_schema() -> None:
    schema = {"type": "object", "$defs": {"l": {"type": "object"}}, "allOf": [{"$ref": "#/$defs/l"}]}
    rebased = {**schema, "allOf": [{"$id": "https://example.com/a", "$ref": "#/$defs/l"}]}
    registry = ToolRegistry()
    for name, given in (("honest", schema), ("stranger", rebased)):
        registry.register(ToolSpec.from_jsonschema(name=name, description="", input_schema=given, function=take))
    assert registry.invoke("honest", {}).data == "taken"
    result = registry.invoke("stranger", {})
    assert result.failure is not None
    assert (result.failure.kind, result.error) == (
        "unavailable",
        (
            "'stranger' cannot run: tool 'stranger': its schema cannot be used: PointerToNowhere: '/$defs/l' does not "
            "exist within {'$id': 'https://example.com/a', '$ref': '#/$defs/l'}"
        ),
    )


def test_too_many_values_are_blamed_on_the_arguments() -> None:
    schema = taking({"type": "array", "items": {"type": "integer"}})
    assert refused(schema, {"a": list(range(STEPS_LIMIT // 2 - 2_000))}) == []
    assert refused(schema, {"a": list(range(2 * STEPS_LIMIT))}) == [
        (
            "The arguments hold 40,002 values and 1 character, and checking them takes more than 20,000 steps or 128 "
            "levels: give less in one call."
        )
    ]


def test_a_recursive_schema_takes_values_of_sixty_levels() -> None:
    value: dict[str, Any] = {}
    for _ in range(60):
        value = {"a": value}
    assert refused(taking({"$ref": "#"}), value) == []


def test_a_schema_of_the_most_levels_is_taken() -> None:
    levels = (SCHEMA_LEVELS_LIMIT - 4) // 2
    assert tool_of(nested(levels)).digest.startswith("sha256:")
    assert refusal(nested(200)) == (
        "tool 'stranger': the schema is nested deeper than 60 levels, at schema.properties.a.properties"
        f"{'.x.properties' * 100}"[:330].partition(".a.")[0]
        + ".a."
        + ("properties.x." * 40)[: 200 - len("schema.properties.a.")]
        + "...: move inner schemas to '$defs' and refer to them"
    )


def test_a_schema_of_the_most_values_is_taken() -> None:
    schema = taking({"enum": list(range(SCHEMA_NODES_LIMIT - 5))})
    assert refused(schema, {"a": 3}) == []
    assert refusal(taking({"enum": list(range(SCHEMA_NODES_LIMIT))})) == (
        "tool 'stranger': the schema holds more than 20,000 values: leave out the parts that no call needs"
    )


def test_a_schema_of_the_most_text_is_taken() -> None:
    assert refused(taking({"description": "x" * (SCHEMA_TEXT_LIMIT - 100)}), {"a": 3}) == []
    assert refusal(taking({"description": "x" * SCHEMA_TEXT_LIMIT})) == (
        "tool 'stranger': the texts of the schema have more than 1,000,000 characters: shorten them"
    )


def test_an_output_schema_has_the_same_limits() -> None:
    with pytest.raises(DefinitionError, match=r"^tool 'stranger': the output schema is nested deeper than 60 levels"):
        from_schema("stranger", "", {"type": "object"}, nested(200), take)


def test_an_id_that_is_not_a_url_is_refused_by_its_schema() -> None:
    told = refusal({"$id": "http://example.com/a", **taking({"$id": "http://[", "type": "string"})})
    assert told.startswith("tool 'stranger': an `$id` of the schema is not a URL"), told
    assert not refused({"$id": "http://example.com/a", **taking({"$id": "b", "type": "string"})}, {"a": "x"})


def test_a_schema_that_applies_itself_to_the_same_value_is_refused() -> None:
    assert refusal({"type": "object", "$ref": "#"}) == (
        "tool 'stranger': the schema's reference '#' refers to itself, so that a check of a value would never end: put "
        "it under 'properties' or 'items'"
    )
    two = {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}
    assert "refers to itself" in refusal(taking({"$ref": "#/$defs/a"}, **{"$defs": two}))
    tree = {"type": "object", "properties": {"inner": {"$ref": "#/$defs/tree"}}}
    assert refused(taking({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": tree}}), {"a": {"inner": {}}}) == []


def test_a_complaint_tells_ten_problems_and_how_many_more_there_are() -> None:
    schema = taking({"type": "array", "items": {"type": "string"}})
    found = tool_of(schema).validate({"a": list(range(30))})
    assert isinstance(found, Invalid)
    assert (len(found.problems), found.more, found.lines[-1]) == (10, 20, "20 more problems are not shown.")
    assert len(refused(schema, {"a": list(range(10))})) == 10


@pytest.mark.threat(68)
def test_the_complaint_of_a_function_is_bounded_too() -> None:
    def total(values: list[int], **more: int) -> int:
        return sum(values)

    registry = ToolRegistry()
    registry.register(total)
    result = registry.invoke("total", {"values": [f"word {number}" * 50 for number in range(500)]})
    assert result.failure is not None
    assert len(f"{result.error}{result.failure.hint}".encode()) <= COMPLAINT_LIMIT_BYTES
    assert str(result.error).endswith("\n- 490 more problems are not shown.")
    assert len(result.failure.data["problems"]) == COMPLAINT_PROBLEMS_LIMIT
    assert isinstance(from_function(total).validate({"values": ["x"] * 10}), Invalid)
    assert registry.invoke("total", {"values": list(range(500))}).success
