"""A null for an optional parameter that takes none is left out, in everything that is judged, shown and recorded."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

import pytest
from pydantic import BaseModel

from tests.invocation.world import World
from toolwire import ApprovalRequest, Decision, Session, ToolRegistry, ToolSpec
from toolwire.definition.arguments import untaken_nulls
from toolwire.definition.arguments.untaken_nulls import FORMS_LIMIT, STEPS_LIMIT, drop_untaken_nulls
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.invocation.validate import Prepared, validate
from toolwire.permission.condition import Condition
from toolwire.permission.policy import Rule
from toolwire.vocabulary.calls import ToolCall


def search(query: str, limit: int = 10, tag: str | None = "any", note: str = "") -> str:
    """Searches."""
    return f"{query} {limit} {tag} {note}".strip()


def by_schema(**given: Any) -> Any:
    """Returns its arguments."""
    return given


SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "tag": {"type": ["string", "null"]},
        "any": {},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def test_a_null_that_fits_nothing_is_left_out_of_an_optional_parameter(world: World) -> None:
    world.add(search)
    assert world.call("search", query="x", limit=None).data == "x 10 any"


def test_a_nullable_parameter_keeps_its_null(world: World) -> None:
    world.add(search)
    assert world.call("search", query="x", limit=None, tag=None).data == "x 10 None"


def test_a_tool_of_a_schema_receives_no_null_that_it_does_not_take(world: World) -> None:
    world.add(from_schema("fetch", "Fetches.", SCHEMA, function=by_schema))
    result = world.call("fetch", query="x", limit=None, tag=None, any=None)
    assert result.data == {"query": "x", "tag": None, "any": None}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"query": None}, "- 'query' must be a string, not None."),
        ({"query": "x", "limt": None}, "- 'limt' is unknown: did you mean 'limit'?"),
        ({"query": None, "limit": None}, "- 'query' must be a string, not None."),
        ({"query": "x", "limit": "many", "note": None}, "- 'limit' must be an integer, not 'many'."),
    ],
)
def test_only_what_is_wrong_besides_is_refused(world: World, given: dict[str, Any], told: str) -> None:
    world.add(search)
    result = world.call("search", **given)
    assert result.failure is not None
    assert (result.error or "").splitlines()[1:] == [told]


def test_a_hidden_parameter_is_refused_even_with_null(world: World) -> None:
    tool = from_function(search)
    tool.bindings.preset("note", "mine")
    world.add(tool)
    result = world.call("search", query="x", note=None)
    assert (result.error or "").splitlines()[1:] == ["- 'note' is set by the host and not yours to give: remove it."]


def test_rules_and_people_judge_the_call_without_it(world: World) -> None:
    """Attack: a null hides the default from the rule that bounds it. The rule must see the default that runs."""
    seen: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Decision:
        seen.append(request)
        return Decision(verdict="approve")

    world.add(search)
    many = Condition(path="/arguments/limit", op=">=", value=10)
    world.rules = (Rule(effect="confirm", tool="search", when=[many]), Rule(effect="auto", tool="*"))
    world.approver = approver
    assert world.call("search", query="x", limit=None).data == "x 10 any"
    assert [(dict(one.arguments), dict(one.given)) for one in seen] == [
        ({"query": "x", "limit": 10, "tag": "any", "note": ""}, {"query": "x"})
    ]


def test_the_digest_is_that_of_the_call_without_it(world: World) -> None:
    world.add(search)
    scope = world.loop_scope()
    entry = world.catalogue.find("search")
    assert entry is not None

    def digest(**arguments: Any) -> str:
        prepared = validate(ToolCall("search", arguments, id="c1"), entry, ())
        assert isinstance(prepared, Prepared)
        return prepared.canonical_digest(scope)

    assert digest(query="x", limit=None) == digest(query="x")
    assert digest(query="x", tag=None) != digest(query="x")


def test_observers_and_the_log_see_the_call_without_it() -> None:
    tools = ToolRegistry()
    tools.register(ToolSpec.from_function(search))
    log = tools.enable_logging()
    session = Session(tools, protocol="json")
    turn = session.run_turn('{"name": "search", "arguments": {"query": "x", "limit": null, "tag": null}}')
    assert turn.results[0].data == "x 10 None"
    assert [entry.arguments for entry in log.get_entries()] == [{"query": "x", "tag": None}]


def test_as_many_nulls_as_ten_complaints_list_are_left_out(world: World) -> None:
    def tool(count: int) -> Any:
        properties = {f"p{number}": {"type": "string"} for number in range(count)}
        return from_schema(f"wide_{count}", "Wide.", {"type": "object", "properties": properties}, function=by_schema)

    for count in (100, 101):
        world.add(tool(count))
    nulls = {f"p{number}": None for number in range(101)}
    assert world.call("wide_100", **dict.fromkeys(list(nulls)[:100])).data == {}
    result = world.call("wide_101", **nulls)
    assert (result.error or "").splitlines()[1:] == ["- 'p100' must be a string, not None."]


class Filter(BaseModel):
    """What to look for."""

    text: str
    since: int = 3
    tag: str | None = "any"


class Order(TypedDict):
    place: str
    least: NotRequired[int]


def find(where: Filter) -> str:
    return repr(where)


def find_maybe(where: Filter | None = None) -> str:
    return repr(where)


def find_each(where: list[Filter]) -> str:
    return repr(where)


def find_by_key(where: dict[str, Filter]) -> str:
    return repr(where)


def find_either(where: Filter | Order | str) -> str:
    return repr(where)


def order(where: Order) -> str:
    return repr(where)


def count(where: dict[str, int]) -> str:
    return repr(where)


NULLED = {"text": "x", "since": None, "tag": None}
FOUND = "Filter(text='x', since=3, tag=None)"


@pytest.mark.parametrize(
    ("function", "where", "ran"),
    [
        (find, NULLED, FOUND),
        (find_maybe, NULLED, FOUND),
        (find_each, [NULLED] * 200, f"[{', '.join([FOUND] * 200)}]"),
        (find_by_key, {"k": NULLED}, f"{{'k': {FOUND}}}"),
        (find_either, NULLED, FOUND),
        (order, {"place": "x", "least": None}, "{'place': 'x'}"),
    ],
)
def test_a_null_inside_an_argument_is_left_out_too(world: World, function: Any, where: Any, ran: str) -> None:
    world.add(function)
    assert world.call(function.__name__, where=where).data == ran


@pytest.mark.parametrize(
    ("function", "where", "told"),
    [
        (find, {"text": None, "since": None}, "- 'where.text' must be a string, not None."),
        (find_each, [{"text": "x"}, None], "- 'where[1]' must be an object with text, since, tag, not None."),
        (count, {"a": None}, "- 'where.a' must be an integer, not None."),
        (find, {"text": "x", "sinc": None}, None),
    ],
)
def test_a_null_that_is_required_or_data_is_never_left_out(
    world: World, function: Any, where: Any, told: str | None
) -> None:
    world.add(function)
    result = world.call(function.__name__, where=where)
    assert (result.error or "").splitlines()[1:] == ([] if told is None else [told])


INNER = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "n": {"type": "integer"}, "m": {"type": ["string", "null"]}, "any": {}},
    "required": ["q"],
}
OTHER = {"type": "object", "properties": {"z": {"type": "string"}}, "required": ["z"], "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        INNER,
        {"$ref": "#/$defs/inner"},
        {"anyOf": [INNER, {"type": "null"}]},
        {"oneOf": [INNER, OTHER]},
        {"allOf": [INNER, {"description": "More."}]},
    ],
)
def test_the_inner_schema_says_which_nulls_are_left_out(world: World, schema: dict[str, Any]) -> None:
    root = {"type": "object", "properties": {"f": schema}, "required": ["f"], "$defs": {"inner": INNER}}
    world.add(from_schema("fetch", "Fetches.", root, function=by_schema))
    nulls = {"q": "x", "n": None, "m": None, "any": None, "more": None}
    given = {"f": dict(nulls)}
    assert world.call("fetch", **given).data == {"f": {"q": "x", "m": None, "any": None, "more": None}}
    assert given == {"f": nulls}, "the model's own call was changed"


def test_rules_judge_the_inner_default_that_runs(world: World) -> None:
    """Attack: an inner null hides the default from the rule that denies it. A smaller value is the control."""
    world.add(find)
    late = Condition(path="/arguments/where/since", op=">=", value=3)
    world.rules = (Rule(effect="deny", tool="find", when=[late]), Rule(effect="auto", tool="*"))
    refused = world.call("find", where=dict(NULLED))
    assert refused.failure is not None
    assert refused.failure.kind == "denied"
    assert world.call("find", where={"text": "x", "since": 2}).data == "Filter(text='x', since=2, tag='any')"


def test_a_field_of_too_many_schemas_keeps_its_null() -> None:
    def dropped(count: int) -> bool:
        field = {"anyOf": [{"const": number} for number in range(count)]}
        schema = {"type": "object", "properties": {"n": field}}
        return drop_untaken_nulls({"n": None}, schema, schema, name="f", wrong={"f.n"})

    assert (dropped(FORMS_LIMIT - 1), dropped(FORMS_LIMIT)) == (True, False)


def test_nulls_beyond_the_steps_of_one_argument_stay() -> None:
    def left(count: int) -> int:
        schema = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}}
        items: list[dict[str, Any]] = [{"n": None} for _ in range(count)]
        drop_untaken_nulls(items, schema, schema, name="f", wrong={"f[0].n"})
        return sum("n" in item for item in items)

    # The list takes a step and one for each item; each item takes a step and one for its field.
    within = (STEPS_LIMIT - 1) // 3
    assert (left(within), left(within + 1)) == (0, 2)


def test_a_null_deep_inside_a_type_that_holds_itself_is_left_out() -> None:
    # Two forms that hold both again: counted apart, they are two to the power of the levels.
    form = {"type": "object", "properties": {"below": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}}}
    form["properties"]["note"] = {"type": "string"}
    root = {"$defs": {"a": form, "b": {**form}}, "$ref": "#/$defs/a"}
    value: dict[str, Any] = {"note": None}
    for _ in range(40):
        value = {"below": value}
    assert drop_untaken_nulls(value, root, root, name="f", wrong={"f"})
    assert "note" not in str(value)


def test_a_list_beyond_the_steps_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def item(nodes: list[dict[str, Any]], at: int) -> list[Any]:
        looked.append(at)
        return []

    monkeypatch.setattr(untaken_nulls, "_item", item)
    schema = {"anyOf": [{"type": "array", "items": {}, "minItems": number} for number in range(50)]}

    def walk(count: int) -> int:
        drop_untaken_nulls([[1]] * count, schema, schema, name="f", wrong={"f"})
        return len(looked)

    within = STEPS_LIMIT // 50 - 1
    assert (walk(within), walk(within + 1)) == (within, within)
