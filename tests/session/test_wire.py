"""The portable form of a suspended run: signed, data only, and refused when anything about it is not as written."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.suspended_runs import FIXTURES, KEY, NOW, VIEWS, request, view
from toolwire.journal.run import SuspendedRun
from toolwire.permission.approval import Decider, Decision, DecisionRefused
from toolwire.permission.rendering import render
from toolwire.session.runs import wire
from toolwire.session.runs.wire import decisions_to_json, read_decisions, read_suspended, suspended_to_json
from toolwire.session.runs.wire_shape import WIRE_LIMIT_BYTES
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable
from toolwire.vocabulary.values import canonical

SAVED = {name: suspended_to_json(each, KEY) for name, each in VIEWS.items()}


def reading(text: str | bytes, **more: Any) -> str:
    """The code of the refusal, or `read`."""
    try:
        read_suspended(text, **{"key": KEY, "now": NOW, **more})
    except DecisionRefused as refused:
        return refused.code
    return "read"


def unsigned(text: str | bytes) -> str:
    """The control: the same reader without its signature."""
    try:
        wire._view(wire.read_json(text))  # pyright: ignore[reportPrivateUsage] - what is left without the check
    except DecisionRefused as refused:
        return refused.code
    return "read"


@pytest.mark.parametrize("name", VIEWS)
def test_a_written_value_is_read_back(name: str) -> None:
    read = read_suspended(SAVED[name], KEY, now=NOW)
    assert read == VIEWS[name]
    assert suspended_to_json(read, KEY) == SAVED[name]
    assert [sorted(render(each)) for each in read.pending] == [sorted(render(each)) for each in VIEWS[name].pending]


def test_the_form_is_as_it_is_documented() -> None:
    document = json.loads(SAVED["one_request"])
    mac = document.pop("mac")
    assert (mac["alg"], re.fullmatch("[0-9a-f]{8}", mac["kid"]) is None) == ("HS256", False)
    assert document == {
        "v": "1.0",
        "kind": "suspended_run",
        "run_id": "r_9f",
        "rev": 7,
        "principal": "user:42",
        "created_at": "2027-01-15T08:00:00+00:00",
        "expires_at": "2027-02-14T08:00:00+00:00",
        "engine": "0.1.0",
        "policy_digest": "sha256:" + "b2" * 32,
        "tools": {"bank/pay": "sha256:" + "a1" * 32},
        "journal": {"head": 12, "root": "sha256:" + "c3" * 32},
        "pending": [
            {
                "id": "a_00000000000000000000000000000001",
                "path": ["root"],
                "call_id": "r_9f/1",
                "tool": "bank/pay",
                "arguments": {"amount": 5},
                "arguments_digest": VIEWS["one_request"].pending[0].arguments_digest,
                "effects": ["spend"],
                "taints": ["untrusted"],
                "reasons": ["rule:spend-confirm"],
                "expires_at": "2027-01-16T08:00:00+00:00",
                "decisions": ["approve", "edit", "deny", "stop_run"],
                "arguments_schema": {
                    "type": "object",
                    "properties": {"amount": {"type": "integer"}},
                    "required": ["amount"],
                },
            }
        ],
    }


@pytest.mark.threat(19)
def test_every_saved_form_that_was_ever_released_is_read() -> None:
    files = sorted(FIXTURES.glob("*.json"))
    assert {file.name for file in files} >= {f"1.0_{name}.json" for name in VIEWS}
    for file in files:
        text = file.read_text("utf-8").rstrip("\n")
        read = read_suspended(text, KEY, now=NOW)
        assert read.run_id == "r_9f", file.name
        name = file.stem.partition("_")[2]
        assert name not in VIEWS or (read, text) == (VIEWS[name], SAVED[name])


def signed(document: dict[str, Any], key: bytes = KEY) -> str:
    """The document with a good signature, whatever is in it."""
    body = {name: value for name, value in document.items() if name != "mac"}
    return json.dumps({**body, "mac": wire._mac(body, key)})  # pyright: ignore[reportPrivateUsage] - a forger with the key


@pytest.mark.threat(19)
@pytest.mark.parametrize("version", ["1.1", "2.0", "1.10", "99999.0"])
def test_a_newer_form_is_refused_at_once(version: str) -> None:
    document = {**json.loads(SAVED["one_request"]), "v": version}
    assert (reading(json.dumps(document)), reading(signed(document))) == ("schema_too_new", "schema_too_new")


@pytest.mark.parametrize("version", ["0.9", "1", "", None, 1.0, "1.0.0", "a.b", "1.-1", "²."])
def test_a_version_that_there_never_was_is_refused(version: Any) -> None:
    assert reading(signed({**json.loads(SAVED["one_request"]), "v": version})) == "malformed"


@pytest.mark.threat(2)
@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80])
@pytest.mark.parametrize("name", VIEWS)
def test_no_changed_byte_is_read(name: str, flip: int) -> None:
    text = SAVED[name].encode("utf-8")
    changed = [text[:place] + bytes([text[place] ^ flip]) + text[place + 1 :] for place in range(len(text))]
    # A capital in an escape or in an exponent is the same text, written otherwise.
    other = [each for each in changed if _means(each) != _means(text)]
    assert len(other) >= len(text) - 4
    assert {reading(each) for each in other} <= {"malformed", "bad_mac", "schema_too_new"}
    if flip == 0x01:
        assert sum(unsigned(each) == "read" for each in other) > len(text) // 4, "the control refuses them too"


def _means(text: bytes) -> Any:
    try:
        return canonical(json.loads(text))
    except (ValueError, Unrepresentable):
        return None


Leaf = tuple[Any, Any]


def leaves(value: Any) -> Iterator[Leaf]:
    """Each leaf as its container and key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in cast("Any", pairs):
        if isinstance(item, dict | list) and item:
            yield from leaves(item)
        else:
            yield (value, key)


OTHERS = [None, True, False, 0, 1, -1, 7.5, "", "x", "sha256:0", [], {}, ["approve"], {"lc": 1}]


@pytest.mark.threat(2)
@pytest.mark.parametrize("name", VIEWS)
def test_no_changed_leaf_is_read(name: str) -> None:
    count = passed = 0
    places = len(list(leaves(json.loads(SAVED[name]))))
    for place in range(places):
        for other in OTHERS:
            document = json.loads(SAVED[name])
            container, key = list(leaves(document))[place]
            if container[key] == other and type(container[key]) is type(other):
                continue
            container[key] = other
            count += 1
            passed += reading(json.dumps(document)) == "read"
    assert (count >= 200 or places < 20, passed) == (True, 0)


@pytest.mark.threat(2)
@pytest.mark.parametrize("name", VIEWS)
def test_nothing_can_be_left_out_or_added(name: str) -> None:
    document = json.loads(SAVED[name])
    for key in document:
        less = {other: value for other, value in document.items() if other != key}
        assert reading(json.dumps(less)) in {"bad_mac", "malformed"}
    assert reading(json.dumps({**document, "approvals": {"a_1": True}})) == "bad_mac"
    assert reading(signed({**document, "approvals": {"a_1": True}})) == "malformed"


MACS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nothing": lambda mac: None,
    "a text": lambda mac: mac["val"],
    "no algorithm": lambda mac: {**mac, "alg": "none"},
    "another algorithm": lambda mac: {**mac, "alg": "HS512"},
    "small letters": lambda mac: {**mac, "alg": "hs256"},
    "another key's id": lambda mac: {**mac, "kid": "00000000"},
    "no value": lambda mac: {**mac, "val": ""},
    "half the value": lambda mac: {**mac, "val": mac["val"][:32]},
    "capitals": lambda mac: {**mac, "val": mac["val"].upper() + " "},
    "a list": lambda mac: {**mac, "val": [mac["val"]]},
    "true": lambda mac: {**mac, "val": True},
    "one more": lambda mac: {**mac, "also": 1},
    "letters beyond ASCII": lambda mac: {**mac, "val": "é" * 64},
    "an empty object": lambda mac: {},
}


@pytest.mark.threat(2)
@pytest.mark.parametrize("name", MACS)
def test_no_other_signature_is_taken(name: str) -> None:
    document = json.loads(SAVED["one_request"])
    document["mac"] = MACS[name](document["mac"])
    assert reading(json.dumps(document)) == "bad_mac"
    del document["mac"]
    assert reading(json.dumps(document)) == "bad_mac"


@pytest.mark.threat(2)
def test_signatures_cannot_be_swapped_between_runs() -> None:
    first, second = (json.loads(suspended_to_json(view(request(1, amount=5), run_id=each), KEY)) for each in "ab")
    first["mac"], second["mac"] = second["mac"], first["mac"]
    assert [reading(json.dumps(each)) for each in (first, second)] == ["bad_mac", "bad_mac"]


@pytest.mark.threat(2)
def test_another_keys_signature_is_not_taken() -> None:
    assert reading(SAVED["one_request"], key=KEY[::-1]) == "bad_mac"


@pytest.mark.threat(2)
def test_it_is_for_one_run_one_revision_one_principal_and_for_a_time() -> None:
    text = SAVED["one_request"]
    assert reading(text, run_id="r_9f", rev=7, principal="user:42") == "read"
    assert reading(text, run_id="r_9e") == "unknown_run"
    assert reading(text, rev=8) == "stale_rev"
    assert reading(text, rev=6) == "stale_rev"
    assert reading(text, principal="user:43") == "not_permitted"
    expires_at = VIEWS["one_request"].start.expires_at
    assert reading(text, now=expires_at) == "read"
    assert reading(text, now=expires_at + 0.001) == "expired"


def test_without_a_time_given_it_is_the_time_that_it_is() -> None:
    old = replace(VIEWS["one_request"], start=replace(VIEWS["one_request"].start, expires_at=1.0))
    with pytest.raises(DecisionRefused) as caught:
        read_suspended(suspended_to_json(old, KEY), KEY)
    assert caught.value.code == "expired"


def test_it_may_be_written_otherwise_as_long_as_it_says_the_same() -> None:
    document = json.loads(SAVED["every_json_type"])
    assert reading(json.dumps(dict(reversed(document.items())), indent=2)) == "read"


@pytest.mark.parametrize(("length", "is_refused"), [(15, True), (16, False), (32, False)])
def test_a_key_that_could_be_guessed_is_refused(length: int, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(ConfigurationError) as caught:
            suspended_to_json(VIEWS["one_request"], KEY[:length])
        assert str(caught.value) == "the key has 15 bytes: give at least 16, for example from os.urandom"
    else:
        assert reading(suspended_to_json(VIEWS["one_request"], KEY[:length]), key=KEY[:length]) == "read"


def test_the_stores_own_key_signs_when_none_is_given() -> None:
    kept: SuspendedRun = replace(VIEWS["one_request"], key=KEY)
    assert suspended_to_json(kept) == SAVED["one_request"]


def test_more_than_the_limit_is_not_read() -> None:
    padding = " " * (WIRE_LIMIT_BYTES - len(SAVED["one_request"]))
    assert reading(SAVED["one_request"] + padding) == "read"
    assert reading(SAVED["one_request"] + padding + " ") == "malformed"


# -- decisions --------------------------------------------------------------------------------------------------------

ITEM = {
    "request_id": "a_1c",
    "verdict": "edit",
    "arguments": {"amount": 4},
    "reason": "limit is 4",
    "seen_arguments_digest": "sha256:0",
    "by": {"principal": "user:42", "channel": "cli"},
}
DOCUMENT = {"kind": "decisions", "run_id": "r_9f", "rev": 7, "items": [ITEM]}
DECISION = Decision(
    verdict="edit",
    arguments={"amount": 4},
    reason="limit is 4",
    request_id="a_1c",
    by=Decider(principal="user:42", channel="cli"),
    seen_arguments_digest="sha256:0",
)


def deciding(value: Any) -> str:
    try:
        read_decisions(value)
    except DecisionRefused as refused:
        return refused.code
    return "read"


@pytest.mark.parametrize("as_text", [True, False])
def test_decisions_are_read_from_text_mappings_and_lists(as_text: bool) -> None:
    def form(value: Any) -> Any:
        return json.dumps(value) if as_text else value

    read = read_decisions(form(DOCUMENT))
    assert (read.run_id, read.rev, read.items) == ("r_9f", 7, (DECISION,))
    read = read_decisions(form([ITEM]))
    assert (read.run_id, read.rev, read.items) == ("", None, (DECISION,))
    assert read_decisions([DECISION]).items == (DECISION,)


def test_decisions_are_written_as_they_are_read() -> None:
    text = decisions_to_json(VIEWS["one_request"], [DECISION])
    assert json.loads(text) == {"v": "1.0", **DOCUMENT}
    assert read_decisions(text).items == (DECISION,)
    plain = Decision(verdict="approve", request_id="a_1c")
    assert read_decisions(decisions_to_json(VIEWS["one_request"], [plain])).items == (plain,)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"verdict": "yes"}, "malformed"),
        ({"verdict": True}, "malformed"),
        ({"verdict": None}, "malformed"),
        ({"verdict": ["approve"]}, "malformed"),
        ({"verdict": "edit", "arguments": None}, "malformed"),
        ({"arguments": [4]}, "malformed"),
        ({"request_id": ""}, "unknown_request"),
        ({"request_id": 5}, "malformed"),
        ({"by": "root"}, "malformed"),
        ({"by": {"principal": 5}}, "malformed"),
        ({"by": {"is_admin": True}}, "malformed"),
        ({"remember": {"tool": "*", "effect": "auto"}}, "malformed"),
        ({"at": 5}, "malformed"),
        ({"__class__": "Decision"}, "malformed"),
    ],
)
def test_a_decision_that_is_none_is_refused(change: dict[str, Any], code: str) -> None:
    assert deciding({**DOCUMENT, "items": [{**ITEM, **change}]}) == code


def test_an_edit_without_arguments_is_refused() -> None:
    assert deciding([{"request_id": "a_1c", "verdict": "edit"}]) == "malformed"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({**DOCUMENT, "v": "1.0"}, "read"),
        ({**DOCUMENT, "v": "1.1"}, "schema_too_new"),
        ({**DOCUMENT, "kind": "suspended_run"}, "malformed"),
        ({**DOCUMENT, "items": [ITEM, ITEM]}, "malformed"),
        ({**DOCUMENT, "items": {}}, "malformed"),
        ({**DOCUMENT, "rev": "7"}, "malformed"),
        ({**DOCUMENT, "rev": True}, "malformed"),
        ({**DOCUMENT, "more": 1}, "malformed"),
        ([None], "malformed"),
        ([[ITEM]], "malformed"),
        ("approve", "malformed"),
        ("", "malformed"),
        (b"\xff", "malformed"),
        ("5", "malformed"),
    ],
)
def test_decisions_that_are_none_are_refused(document: Any, code: str) -> None:
    assert deciding(document) == code


# -- gadgets ----------------------------------------------------------------------------------------------------------

CANARY = "toolwire_gadget_canary"
NAMES = ["os.system", "subprocess.Popen", "builtins.eval", "builtins.__import__", f"{CANARY}.run", "toolwire.ToolSpec"]
OBJECTS: list[Any] = [
    *({"lc": 1, "type": "constructor", "id": name.split("."), "kwargs": {"args": ["id"]}} for name in NAMES),
    *({"lc": 1, "type": "secret", "id": [name]} for name in ("TOOLWIRE_KEY", "HOME")),
    *({"lc": 2, "type": "not_implemented", "id": ["x"]},),
    *({"py/object": name} for name in NAMES),
    *({"py/reduce": [{"py/type": name}, {"py/tuple": ["id"]}]} for name in NAMES),
    *({"py/function": name} for name in NAMES),
    *({"__reduce__": [name, ["id"]]} for name in NAMES),
    *({"__class__": name, "__init__": ["id"]} for name in NAMES),
    *({"__type__": name} for name in NAMES),
    *({"!!python/object/apply:" + name: ["id"]} for name in NAMES),
    *({"$type": name + ", System"} for name in NAMES),
    *({"@class": name} for name in NAMES),
    *({"$t": kind, "v": value} for kind, value in [("bytes", "AA=="), ("object", NAMES[0]), ("Decimal", "1e999999")]),
    *({"__pydantic__": name} for name in NAMES),
    {"__proto__": {"is_admin": True}},
    {"constructor": {"prototype": {}}},
    {"$ref": "file:///etc/passwd"},
    {"__msgpack_ext__": [5, "Y29zCnN5c3RlbQ=="]},
    {"type": "pickle", "data": "gASVIQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAZpZAohIS6UhZRSlC4="},
]
RAW: list[str | bytes] = [
    b"cos\nsystem\n(S'id'\ntR.",
    b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
    b"\x80\x02c__builtin__\neval\nU\x021+q\x01\x85R.",
    b"\xc7\x03\x05abc",
    b"\xd4\x01\x00",
    b"\x85\xa1v\xa31.0",
    b"\xdf\xff\xff\xff\xff",
    "!!python/object/apply:os.system ['id']",
    "!!python/object/new:subprocess.Popen [[id]]",
    "--- !!python/module:os\n",
    "a: &a [*a, *a]",
    "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
    "{'verdict': __import__('os').system('id')}",
    '{"v": "1.0", "v": "1.0"}',
    '{"rev": NaN}',
    '{"rev": Infinity}',
    '{"rev": -Infinity}',
    '{"rev": 1e999}',
    f'{{"rev": {"9" * 5_000}}}',
    f'{{"rev": {"9" * 4_301}}}',
    "[" * 100_000,
    '{"a":' * 100_000,
    "[" * 65 + "]" * 65,
    '{"v": "1.0"}{"v": "1.0"}',
    '{"v": "1.0",}',
    '{"v": "\\ud800"}',
    '{"v": "1.0"} // comment',
    "\ufeff" + SAVED["one_request"],
    '{"' + "k" * 300 + '": 1}',
    "",
    "null",
    "true",
    '"suspended_run"',
    "0",
    "[]",
]


def test_there_are_at_least_a_hundred_gadgets() -> None:
    assert len(OBJECTS) + len(RAW) >= 100


def kinds(value: Any) -> set[type]:
    """The types in a value, all the way down."""
    if isinstance(value, dict | list):
        inner = cast("list[Any]", list(value.values()) if isinstance(value, dict) else value)
        return {type(value)}.union(*(kinds(each) for each in inner))
    return {type(value)}


@pytest.mark.threat(20)
@pytest.mark.parametrize("payload", RAW, ids=range(len(RAW)))
def test_a_form_that_is_not_plain_json_is_refused_and_builds_nothing(payload: str | bytes) -> None:
    before = set(sys.modules)
    assert reading(payload) in {"malformed", "bad_mac"}
    assert deciding(payload) == ("read" if payload == "[]" else "malformed")
    assert set(sys.modules) == before


@pytest.mark.threat(20)
@pytest.mark.parametrize("payload", OBJECTS, ids=range(len(OBJECTS)))
def test_a_gadget_in_plain_json_stays_data_or_is_refused(payload: Any) -> None:
    """Signed with the right key, so that only its shape can be refused."""
    before = set(sys.modules)
    document = json.loads(SAVED["one_request"])
    assert reading(signed(payload)) == "malformed"
    for key in document:
        if key not in ("mac", "tools"):
            assert reading(signed({**document, key: payload})) in {"malformed", "bad_mac", "schema_too_new"}
    assert reading(signed({**document, "pending": [payload]})) == "malformed"
    assert deciding([payload]) == "malformed"
    assert deciding({**DOCUMENT, "items": [{**ITEM, "by": payload}]}) == "malformed"
    # Arguments are the model's own: there it is data, and stays data.
    hidden = copy.deepcopy(document)
    hidden["pending"][0]["arguments"] = {"x": payload}
    (read,) = read_suspended(signed(hidden), KEY, now=NOW).pending
    decided = read_decisions([{**ITEM, "arguments": {"x": payload}}]).items[0]
    assert (read.arguments, decided.arguments) == ({"x": payload}, {"x": payload})
    assert kinds(read.arguments) | kinds(decided.arguments) <= {dict, list, str, int, float, bool, type(None)}
    assert set(sys.modules) == before


@given(st.text() | st.binary())
def test_any_text_at_all_is_refused_with_a_code(text: str | bytes) -> None:
    assert reading(text) in {"malformed", "bad_mac", "schema_too_new"}
    assert deciding(text) in {"malformed", "unknown_request", "schema_too_new", "read"}
