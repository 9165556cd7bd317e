"""The judged values are those that run: no rule, remembered decision or cache takes two different values for equal."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, cast

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    Secret,
    SecretBytes,
    SecretStr,
    model_validator,
)

from tests.invocation.world import World
from tests.processor import seconds
from toolwire.definition.arguments.canonical import canonical
from toolwire.definition.from_function import from_function
from toolwire.definition.shape import Validated
from toolwire.definition.tool import Tool
from toolwire.invocation.middleware.cache import Cache
from toolwire.invocation.middleware.onion import CallNext, PreparedCall, colourless
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.condition import Condition
from toolwire.permission.deciding import rule_for
from toolwire.permission.policy import Policy
from toolwire.permission.rule import Rule
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult


class Login(BaseModel):
    user: str
    password: SecretBytes


class Keyring(BaseModel):
    tokens: dict[str, list[SecretStr]]


@dataclasses.dataclass
class Transfer:
    to: str
    amount: dataclasses.InitVar[int]

    def __post_init__(self, amount: int) -> None:
        self.cents = amount * 100


class Hidden(BaseModel):
    to: str
    _amount: int = PrivateAttr(default=0)

    @model_validator(mode="wrap")
    @classmethod
    def keep_the_amount(cls, value: Any, handler: Any) -> Any:
        made = handler({"to": value["to"]})
        made._amount = value.get("amount", 0)
        return made


class Limits(BaseModel):
    model_config = ConfigDict(extra="allow")
    amount: int = Field(validation_alias=AliasChoices(AliasPath("limits", 0), "amount"))


class Shared(BaseModel):
    model_config = ConfigDict(validate_by_name=True)
    least: int = Field(default=0, validation_alias="amount")
    most: int = Field(default=0, validation_alias="amount")


class Loose(BaseModel):
    value: bytes | str


def starred(value: Any) -> Any:
    return value if value.startswith("*") else SecretStr(value)


MaybeSecret = Annotated[Any, BeforeValidator(starred)]
Halved = Annotated[int, AfterValidator(lambda number: number // 2)]

PAIRS: dict[str, tuple[Any, Any, Any]] = {
    "two secrets": (SecretStr, "alice", "mallory"),
    "a secret and none": (SecretStr, "alice", ""),
    "secret bytes in a model": (Login, {"user": "a", "password": "YQ=="}, {"user": "a", "password": "Yg=="}),
    "secrets deep inside": (Keyring, {"tokens": {"a": ["x"]}}, {"tokens": {"a": ["y"]}}),
    "secret numbers": (Secret[int], 1, 2),
    "a secret and its stars": (MaybeSecret, "alice", None),
    "a dataclass with InitVar": (Transfer, {"to": "a", "amount": 5}, {"to": "a", "amount": 5000}),
    "a private attribute": (Hidden, {"to": "a", "amount": 5}, {"to": "a", "amount": 5000}),
    "an alias beside an extra value": (Limits, {"limits": [5], "amount": 1}, {"limits": [5000], "amount": 1}),
    "two fields of one alias": (Shared, {"least": 5, "most": 1}, {"least": 5000, "most": 1}),
    "bytes and text": (Any, "eA==", b"x"),
    "bytes and text in a union": (bytes | str, "eA==", b"x"),
    "bytes and text in a model": (Loose, {"value": "eA=="}, {"value": b"x"}),
    "bytes and text in a list": (list[Any], ["eA=="], [b"x"]),
    "infinity and its name": (Any, "Infinity", math.inf),
    "infinity and its name in a union": (float | str, "Infinity", math.inf),
    "NaN and its name": (Any, "NaN", math.nan),
    "one and its name as keys": (dict[int | str, int], {"1": 1}, {1: 1}),
    "one and its name as keys of anything": (Any, {"1": 1}, {1: 1}),
    "one and true": (Any, 1, True),
    "one and its text": (Any, 1, "1"),
    "one and its float": (Any, 1, 1.0),
    "zero and its negative": (float, 0.0, -0.0),
    "a list and a tuple": (Any, [1], (1,)),
    "a list and a set": (Any, [1], {1}),
    "a sequence": (Sequence[int], [1], (1,)),
    "a date and its text": (Any, "2026-01-01", dt.date(2026, 1, 1)),
    "a Decimal and its text": (Any, "1.0", Decimal("1.0")),
    "two Decimals of one number": (Decimal, "1.0", "1.00"),
    "numbers that a validator makes smaller": (Halved, 5, 11),
}


def tool_of(annotation: Any, ran: list[Any] | None = None) -> Tool:
    def take(value: Any) -> str:
        """Takes a value."""
        if ran is not None:
            ran.append(value)
        return repr(value)

    take.__annotations__["value"] = annotation
    return from_function(take, effects=["read"], idempotent="natural")


def mask_of(secret: str) -> str:
    validated = tool_of(SecretStr).validate({"value": secret})
    assert isinstance(validated, Validated)
    return cast("str", canonical(validated)["value"])


def pair(name: str) -> tuple[Any, Any, Any]:
    annotation, one, other = PAIRS[name]
    return annotation, one, mask_of("alice") if other is None else other


class Asker:
    """A person who approves everything for good, and counts how often they were asked."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        remember = rule_for(request, scope="workspace")
        return Decision(verdict="approve", remember=remember, by=Decider(principal="ada"))


@pytest.mark.threat(66)
@pytest.mark.parametrize("name", PAIRS)
def test_a_decision_about_one_value_is_none_about_the_other(world: World, name: str) -> None:
    annotation, one, other = pair(name)
    ran: list[Any] = []
    world.add(tool_of(annotation, ran), permission="confirm")
    world.approver, world.policy = asker, _ = Asker(), Policy()
    world.call("take", value=one)
    before = len(ran), len(asker.asked)
    world.call("take", value=other)
    assert len(ran) - before[0] == len(asker.asked) - before[1], "it ran unasked"


@pytest.mark.threat(66)
@pytest.mark.parametrize("name", PAIRS)
def test_the_cache_gives_no_other_values_result(world: World, name: str) -> None:
    annotation, one, other = pair(name)
    ran: list[Any] = []
    world.add(tool_of(annotation, ran))
    world.middleware = (Cache(),)
    for value in (one, other, one, other):
        assert world.call("take", value=value).success
    assert {repr(real) for real in ran[:2]} == {repr(real) for real in ran}
    assert len(ran) >= 2
    assert repr(ran[0]) != repr(ran[1]) or name in ("a private attribute", *SECRET), "they are two values"


SECRET = ("two secrets", "secret bytes in a model", "secrets deep inside", "secret numbers", "a dataclass with InitVar")

PLAIN: dict[str, tuple[Any, Any]] = {
    "text": (str, "a"),
    "a secret": (SecretStr, "alice"),
    "a secret in a model": (Login, {"user": "a", "password": "YQ=="}),
    "an empty secret": (SecretStr, ""),
    "anything in JSON types": (Any, {"a": [1, 1.5, "x", None, True, {}]}),
    "a union": (int | str, "5"),
    "a path": (Path, "a/b"),
    "a date": (dt.date, "2026-01-01"),
    "a moment with a zone": (dt.datetime, "2026-01-01T10:00:00+02:00"),
    "a set": (set[int], [3, 1, 2]),
    "infinity": (float, "Infinity"),
    "NaN": (float, "NaN"),
    "a model": (Shared | Login, {"user": "a", "password": "YQ=="}),
    "a model with an extra value": (Limits, {"amount": 5, "more": 1}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_control_the_same_value_is_remembered_and_cached(world: World, name: str) -> None:
    annotation, value = PLAIN[name]
    ran: list[Any] = []
    world.add(tool_of(annotation, ran), permission="confirm")
    world.approver, world.policy, world.middleware = asker, _, _ = Asker(), Policy(), (Cache(),)
    results = [world.call("take", value=value) for _ in range(3)]
    assert [result.success for result in results] == [True] * 3
    assert (len(asker.asked), len(ran)) == (1, 1)


@pytest.mark.threat(66)
@pytest.mark.parametrize("given", [{"limits": [5000], "amount": 1}, {"limits": [5000]}, {"amount": 5000}])
def test_a_limit_holds_however_the_amount_is_given(world: World, given: dict[str, Any]) -> None:
    ran: list[Any] = []
    world.add(tool_of(Limits, ran))
    world.rules = [
        Rule(effect="deny", tool="take", when=[Condition(path="/arguments/value/amount", op=">", value=100)])
    ]
    result = world.call("take", value=given)
    assert (result.failure and result.failure.kind, ran) == ("denied", [])


def test_the_control_an_amount_within_the_limit_runs(world: World) -> None:
    ran: list[Any] = []
    world.add(tool_of(Limits, ran))
    world.rules = [
        Rule(effect="deny", tool="take", when=[Condition(path="/arguments/value/amount", op=">", value=100)])
    ]
    assert [world.call("take", value=given).success for given in ({"limits": [99]}, {"amount": 99})] == [True, True]


def test_the_model_is_told_which_argument_is_unrepresentable(world: World) -> None:
    world.add(tool_of(Any))
    world.rules = [Rule(effect="deny", tool="take", when=[Condition(path="/arguments/value", op="==", value="x")])]
    result = world.call("take", value=b"x")
    assert result.error is not None
    assert result.error.splitlines()[0] == (
        "'take' may not be run: rules cannot look at these arguments: a value that changes when it is read again "
        "from JSON cannot be written as JSON at value."
    )


def test_without_a_rule_that_looks_at_it_an_unrepresentable_call_runs(world: World) -> None:
    ran: list[Any] = []
    world.add(tool_of(Any, ran))
    assert world.call("take", value=b"x").success
    assert ran == [b"x"]


def test_a_person_sees_stars_and_a_hash_that_needs_the_key() -> None:
    validated = tool_of(SecretStr).validate({"value": "alice"})
    assert isinstance(validated, Validated)
    first, second = canonical(validated, b"1" * 32), canonical(validated, b"2" * 32)
    assert first["value"].startswith("********** #")
    assert "alice" not in first["value"]
    assert first != second
    assert first == canonical(validated, b"1" * 32)


def test_an_edit_of_something_else_keeps_the_secret(world: World) -> None:
    ran: list[Any] = []

    def log_in(login: Login, times: int) -> None:
        ran.append((login.password.get_secret_value(), times))

    def approver(request: ApprovalRequest) -> Decision:
        return Decision(verdict="edit", arguments={**request.arguments, "times": 1})

    world.add(log_in, permission="confirm")
    world.approver = approver
    result = world.call("log_in", login={"user": "a", "password": "YQ=="}, times=9)
    assert (result.success, ran) == (True, [(b"a", 1)])
    assert dict(result.metadata)["approval"]["changed"] == {"times": {"before": 9, "after": 1}}


def test_a_middleware_that_changes_something_else_keeps_the_secret(world: World) -> None:
    ran: list[Any] = []

    def log_in(login: Login, times: int) -> None:
        ran.append((login.password.get_secret_value(), times))

    @colourless
    async def once(call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        return await call_next(call.with_arguments({**call.arguments, "times": 1}))

    world.add(log_in)
    world.middleware = (once,)
    assert world.call("log_in", login={"user": "a", "password": "YQ=="}, times=9).success
    assert ran == [(b"a", 1)]


def made_twice() -> Callable[[int], int]:
    seen: list[int] = []

    def raise_the_second_time(number: int) -> int:
        seen.append(number)
        if len(seen) > 1:
            raise RuntimeError
        return number

    return raise_the_second_time


def test_a_validator_that_raises_the_second_time_makes_the_call_unrepresentable() -> None:
    validated = tool_of(Annotated[int, AfterValidator(made_twice())]).validate({"value": 1})
    assert isinstance(validated, Validated)
    with pytest.raises(Unrepresentable, match="raised RuntimeError when it was read again"):
        canonical(validated)


class Leaf(BaseModel):
    name: str = ""


def test_the_canonical_form_of_many_models_is_bounded() -> None:
    tool = tool_of(list[Leaf])
    for count, is_bounded in ((16_600, False), (16_700, True), (300_000, True)):
        validated = tool.validate({"value": [{}] * count})
        assert isinstance(validated, Validated)

        def judge(validated: Validated = validated, count: int = count, is_bounded: bool = is_bounded) -> None:
            if is_bounded:
                with pytest.raises(Unrepresentable, match=r"more than 200,000 values, or 20,000 models, in one arg"):
                    canonical(validated)
            else:
                assert len(canonical(validated)["value"]) == count

        assert seconds(judge, enough=1) <= 1


class Sloppy(BaseModel):
    timeout: float = 10
    folder: Path = "."  # type: ignore[assignment]
    id: str = Field(default_factory=lambda: "made")


def test_a_default_that_does_not_fit_its_type_is_accepted() -> None:
    def take(sloppy: Sloppy, tags: tuple[str, ...] = [], wait: float = 5) -> None: ...  # type: ignore[assignment]

    tool = from_function(take)
    validated = tool.validate({"sloppy": {}})
    assert isinstance(validated, Validated)
    assert canonical(validated) == {"sloppy": {"timeout": 10, "folder": ".", "id": "made"}, "tags": [], "wait": 5}
