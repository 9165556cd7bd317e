"""The text that a person reads before the decision: complete, and without misleading look-alikes."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.permission.screen import seen
from toolwire.permission.approval import ApprovalRequest
from toolwire.permission.rendering import WIDTH_MIN, render, span
from toolwire.permission.visible import visible
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import digest


def asked(arguments: dict[str, Any], **more: Any) -> ApprovalRequest:
    defaults: dict[str, Any] = {"tool": "pay", "reasons": ("rule confirm 'pay'",)}
    if "arguments_digest" not in more:
        defaults["arguments_digest"] = digest(arguments)
    return ApprovalRequest(id="a_1c", call_id="c1", arguments=arguments, **{**defaults, **more})


def test_a_rendering_says_all_there_is() -> None:
    request = asked(
        {"amount": 5, "to": "Ada\u202e", "text": "one\ntwo ", "rows": [{"a": None}, [], 1.5]},
        reasons=("rule confirm 'pay': money leaves", "second"),
        caller=Caller(principal="user:42", agent="clerk", tenant="shop"),
        run_id="r_9",
        parent="r_9/1",
        attempt=2,
        given={"amount": "5", "extra": 1, "to": "Ada\u202e", "rows": [{"a": None}, [], 1.5]},
        effects=("spend", "write"),
        taints=("untrusted",),
        expires_at=1_800_000_000.0,
    )
    assert render(request, now=1_799_900_000.0) == (
        "tool       pay\n"
        "for        user:42\n"
        "agent      clerk\n"
        "tenant     shop\n"
        "why        rule confirm 'pay': money leaves\n"
        "why        second\n"
        "does       spend, write\n"
        "has read   untrusted\n"
        "attempt    2: it may have run already\n"
        "expires    2027-01-15 08:00:00 UTC (1 d 3 h)\n"
        "request    a_1c\n"
        "call       c1 of run r_9, made by the call r_9/1\n"
        "arguments\n"
        '  "amount": 5\n'
        '  "to": "Ada\\u202e"\n'
        '  "text": text of 2 lines\n'
        "    | one\n"
        "    | two\\x20\n"
        '  "rows": [\n'
        "    - {\n"
        '      "a": null\n'
        "    }\n"
        "    - []\n"
        "    - 1.5\n"
        "  ]\n"
        "changed    the model wrote it otherwise:\n"
        '  ~ "amount": "5"\n'
        '  - "extra": 1\n'
        '  + "text": filled in'
    )


def test_absent_facts_are_left_out_of_the_request() -> None:
    assert render(asked({})) == (
        "tool       pay\n"
        "why        rule confirm 'pay'\n"
        "does       not stated by the tool\n"
        "expires    never\n"
        "request    a_1c\n"
        "call       c1\n"
        "arguments  none"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3_601, "1 h"), (3_660, "1 h 1 min"), (604_800, "7 d")],
)
def test_time_is_told_in_two_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_an_expired_request_says_so() -> None:
    assert "expires    1970-01-01 00:00:10 UTC: expired" in render(asked({}, expires_at=10.0), now=10.5).split("\n")


def told_plainly(request: ApprovalRequest) -> str:
    """The output of a naive prompt."""
    lines = [f"{request.tool}?", *(f"why: {reason}" for reason in request.reasons)]
    lines += [f"{name}: {str(value)[:2000]}" for name, value in request.arguments.items()]
    return "\n".join(lines)


class Pair:
    """Two requests; on a terminal, told plainly, the second looks like the first."""

    def __init__(self, honest: Any, attack: Any) -> None:
        self.honest = honest if isinstance(honest, ApprovalRequest) else asked(_named(honest))
        self.attack = attack if isinstance(attack, ApprovalRequest) else asked(_named(attack))


def _named(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"to": value}


TAGS = "".join(chr(0xE0000 + ord(character)) for character in "pay mallory")
ATTACKS = {
    "right-to-left override": Pair("ab.exe", "\u202eexe.ba\u202c"),
    "right-to-left isolate": Pair("ab.exe", "\u2067exe.ba\u2069"),
    "left-to-right mark": Pair("ada", "a\u200eda"),
    "Arabic letter mark": Pair("ada", "a\u061cda"),
    "zero-width space": Pair("ada", "a\u200bda"),
    "zero-width joiner": Pair("ada", "a\u200dda"),
    "word joiner": Pair("ada", "a\u2060da"),
    "byte order mark": Pair("ada", "\ufeffada"),
    "soft hyphen": Pair("ada", "a\u00adda"),
    "tag characters": Pair("ada", f"ada{TAGS}"),
    "variation selectors": Pair("ada", "ada\ufe0f\U000e0121"),
    "grapheme joiner": Pair("ada", "a\u034fda"),
    "Hangul filler": Pair("ada", "ada\u3164"),
    "invisible operator": Pair("5", "5\u2062"),
    "Cyrillic letters": Pair("paypa", "раура"),
    "one Greek letter": Pair("google", "gοogle"),
    "fullwidth letters": Pair("pay", "ｐａｙ"),
    "mathematical letters": Pair("pay", "\U0001d5c9\U0001d5ba\U0001d5d2"),
    "erased line": Pair("ada", "mallory\x1b[2Kto: ada"),
    "colour of the background": Pair("ada", "ada\x1b[8m and mallory\x1b[0m"),
    "title set": Pair("ada", "ada\x1b]0;pay mallory\x07"),
    "one line up": Pair("ada", "mallory\n\x1b[1A\x1b[2Kto: ada"),
    "carriage return": Pair("ada", "mal\rto: ada"),
    "backspaces": Pair("ada", "eve\b\b\bada"),
    "null": Pair("ada", "ada\x00"),
    "delete": Pair("ada", "a\x7fda"),
    "a line that looks like an argument": Pair({"to": "ada", "amount": 5}, {"to": "ada\namount: 5"}),
    "a line separator": Pair({"to": "ada", "amount": 5}, {"to": "ada\u2028amount: 5"}),
    "a line that looks like a reason": Pair(
        asked({}, reasons=("asked", "approved by root")), asked({}, reasons=("asked\nwhy: approved by root",))
    ),
    "a number as text": Pair(5, "5"),
    "a list as text": Pair(["a"], "['a']"),
    "nothing as text": Pair(None, "None"),
    "trailing spaces": Pair("ada", "ada   "),
    "a space of another kind": Pair("a b", "a\u00a0b"),
    "spelled like an escape": Pair("ada", "ada\u200b"),
    "what is far to the right": Pair("a" * 2000, "a" * 2000 + "; rm -rf /"),
    "a key with a zero-width space": Pair({"to": "a"}, {"t\u200bo": "a"}),
    "a tool with another's look": Pair(asked({}), asked({}, tool="рау")),
    "a caller nobody sees": Pair(asked({}), asked({}, caller=Caller(agent="mallory"))),
    "what the host does not say it filled in": Pair(asked({"to": "a"}), asked({"to": "a"}, given={"to": "b"})),
}  # fmt: skip


@pytest.mark.threat(14)
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_the_eye_is_seen(name: str) -> None:
    pair = ATTACKS[name]
    assert seen(told_plainly(pair.attack)) == seen(told_plainly(pair.honest)), "the control does not hide it"
    assert seen(render(pair.attack)) != seen(render(pair.honest))


def test_there_are_at_least_thirty_attacks() -> None:
    assert len(ATTACKS) >= 30


class Unwilling:
    """Has no written form."""


@pytest.mark.threat(14)
@pytest.mark.parametrize(
    "request_", [asked({"a": 1}, arguments_digest=digest({"a": 2})), asked({}, arguments_digest="sha256:0")], ids=repr
)
def test_other_arguments_than_the_digest_is_for_are_not_shown(request_: ApprovalRequest) -> None:
    with pytest.raises(Unrepresentable, match="do not match its digest"):
        render(request_)


@pytest.mark.threat(14)
def test_a_value_without_a_written_form_is_not_shown() -> None:
    with pytest.raises(Unrepresentable):
        render(asked({"a": Unwilling()}, arguments_digest=""))


HIDDEN = re.compile(r"[^\n\x20-\x7e]")


@given(st.text(max_size=200), st.integers(WIDTH_MIN, 120))
def test_in_ascii_nothing_but_ascii_is_written_and_no_line_is_longer(text: str, width: int) -> None:
    rendered = render(asked({text or "x": text}), width=width, ascii_only=True)
    assert HIDDEN.search(rendered) is None
    assert [line for line in rendered.split("\n") if len(line) > width] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_the_arguments_can_be_read_back_from_what_is_shown(arguments: dict[str, Any]) -> None:
    if "$t" in json.dumps(arguments):
        return
    shown = render(asked(arguments), width=10_000, ascii_only=True).partition("\narguments")[2]
    lines = [line for line in shown.split("\n")[1:] if line]
    assert digest(_members(lines, 2)) == digest(arguments)


def _members(lines: list[str], indent: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while lines and lines[0].startswith(" " * indent + '"'):
        head = re.match(r' *("(?:[^"\\]|\\.)*"): ', lines[0] + " ")
        assert head is not None
        rest = lines.pop(0)[head.end() :]
        found[_text(head[1])] = _value(rest, lines, indent)
    return found


def _value(rest: str, lines: list[str], indent: int) -> Any:
    if re.match(r"text of \d+ lines", rest):
        texts: list[str] = []
        while lines and lines[0].startswith(" " * (indent + 2) + "|"):
            texts.append(_text(f'"{lines.pop(0)[indent + 4 :]}"'))
        return "\n".join(texts)
    if rest == "{":
        found = _members(lines, indent + 2)
        assert lines.pop(0) == " " * indent + "}"
        return found
    if rest == "[":
        items: list[Any] = []
        while lines[0].startswith(" " * (indent + 2) + "-"):
            items.append(_value(lines.pop(0)[indent + 4 :], lines, indent + 2))
        assert lines.pop(0) == " " * indent + "]"
        return items
    return _text(rest) if rest.startswith('"') else json.loads(rest)


_ESCAPE = re.compile(r"\\(?:x(..)|u(....)|U(.{8})|(.))")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


def _text(quoted: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        return chr(int(code, 16)) if code else _LETTERS.get(found[4], found[4])

    return _ESCAPE.sub(one, quoted[1:-1])


@given(st.text(), st.text())
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    assert (visible(one) == visible(other)) == (one == other)


@pytest.mark.parametrize(
    "text", ["Straße", "naïve", "Привет", "你好 世界", "日本語テキスト", "Tiếng Việt", "हिन्दी", "5 €"]
)
def test_honest_text_of_any_language_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert render(asked({"to": text})).split("\n")[-1] == f'  "to": "{text}"'


def test_text_that_reads_from_the_right_is_spelled_out_too() -> None:
    assert render(asked({"to": "שלום 5"})).split("\n")[-2:] == [
        '  "to": "שלום 5"',
        "  = \\u05e9\\u05dc\\u05d5\\u05dd 5",
    ]


def test_the_whole_of_a_long_argument_is_shown_in_lines_that_say_that_they_go_on() -> None:
    lines = render(asked({"to": "x" * 100_000}), width=80).split("\n")[7:]
    assert {line[:4] for line in lines[1:]} == {"  > "}
    assert sum(line.count("x") for line in lines) == 100_000
