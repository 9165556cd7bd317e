"""Portable forms carry every text: lone surrogates, NUL and noncharacters come back exactly as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.session.suspended_runs import KEY, NOW, request, view
from toolwire.permission.approval import Decider, Decision, DecisionRefused
from toolwire.session.runs.portable_json import LONE_SURROGATES_KEY, from_portable, portable_json
from toolwire.session.runs.wire import decisions_to_json, read_decisions, read_suspended, suspended_to_json
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.values import canonical

pytestmark = pytest.mark.threat(75)

HALF = "\ud83d"
PAIR = "\ud83d\ude00"
ODD = ["\ud83d", "\ude00", "\udfff", "\x00", "\u2028", "\u2029", "\ufffe", "\uffff", "\U0001fffe", "\x1b", "😀"]

odd_texts = st.text(st.sampled_from([*ODD, "a", '"', "\\", "u"]), max_size=6) | st.sampled_from(
    [LONE_SURROGATES_KEY, PAIR, PAIR * 2, PAIR[::-1], "\\ud83d", "keys", "values"]
)
odd_values = st.recursive(
    odd_texts | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_texts, inner, max_size=3),
    max_leaves=6,
)
odd_objects = st.dictionaries(odd_texts, odd_values, max_size=3)


@given(value=odd_values)
@example(value=PAIR)
@example(value={LONE_SURROGATES_KEY: [PAIR]})
@example(value={LONE_SURROGATES_KEY: {"keys": ["a"], "values": ["b"]}})
@example(value={PAIR: {LONE_SURROGATES_KEY: PAIR, "😀": HALF}})
def test_every_value_comes_back_from_text_that_utf_8_can_encode(value: Any) -> None:
    text = portable_json(value)
    assert canonical(from_portable(json.loads(text.encode("utf-8")))) == canonical(value)


@given(value=odd_values)
def test_text_without_surrogates_is_the_canonical_text(value: Any) -> None:
    text = canonical(value)
    if LONE_SURROGATES_KEY not in text and not any("\ud800" <= character <= "\udfff" for character in text):
        assert portable_json(value) == text


def test_the_control_of_plain_escapes_joins_two_halves() -> None:
    assert json.loads(json.dumps(PAIR)) == "😀"
    assert json.loads(portable_json(PAIR)) == {LONE_SURROGATES_KEY: ["\ud83d", "\ude00"]}
    assert from_portable(json.loads(portable_json(PAIR))) == PAIR != "😀"


@pytest.mark.parametrize(
    "held", [1, "x", [1], {}, {"keys": []}, {"keys": [1], "values": [1]}, {"keys": [], "values": [1]}]
)
def test_a_mapping_that_was_never_written_so_is_left_alone(held: Any) -> None:
    assert from_portable({LONE_SURROGATES_KEY: held}) == {LONE_SURROGATES_KEY: held}


@given(text=odd_texts, arguments=odd_objects)
@example(text=HALF, arguments={HALF: HALF})
@example(text=PAIR, arguments={PAIR: [PAIR]})
def test_every_text_of_a_suspended_run_comes_back(text: str, arguments: dict[str, Any]) -> None:
    pending = replace(
        request(1, **arguments),
        id=f"a{text}",
        call_id=text,
        tool=text,
        arguments_digest=text,
        effects=(text,),
        taints=(text,),
        reasons=(text,),
        tool_digest=text,
        arguments_schema={"title": text, text: arguments},
        caller=Caller(principal=text),
        run_id=f"r{text}",
    )
    whole = view(pending)
    start = replace(
        whole.start,
        run_id=f"r{text}",
        caller=Caller(principal=text),
        policy_digest=text,
        tools={text: text},
        engine=text,
    )
    whole = replace(whole, start=start, root=text)
    saved = suspended_to_json(whole, KEY)
    for form in (saved, saved.encode("utf-8")):
        assert read_suspended(form, KEY, now=NOW) == whole


@given(text=odd_texts, arguments=odd_objects)
@example(text=HALF, arguments={HALF: HALF})
@example(text=PAIR, arguments={PAIR: [PAIR]})
def test_every_text_of_decisions_comes_back(text: str, arguments: dict[str, Any]) -> None:
    decision = Decision(
        verdict="edit",
        request_id=f"a{text}",
        arguments=arguments,
        reason=text,
        seen_arguments_digest=text,
        by=Decider(principal=text, channel=text, authn=text),
    )
    written = decisions_to_json(view(run_id=f"r{text}"), [decision])
    read = read_decisions(written.encode("utf-8"))
    assert (read.run_id, read.items) == (f"r{text}", (decision,))


def test_a_half_that_was_changed_is_not_read() -> None:
    saved = suspended_to_json(view(request(1, text=PAIR)), KEY)
    for was, now in (
        ("\\ude00", "\\ude01"),
        ('["\\ud83d","\\ude00"]', '["\\ud83d\\ude00"]'),
        (LONE_SURROGATES_KEY, "$halfes"),
    ):
        assert was in saved
        with pytest.raises(DecisionRefused, match="changed"):
            read_suspended(saved.replace(was, now), KEY, now=NOW)
