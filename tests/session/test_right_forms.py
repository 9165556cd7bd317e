"""After an error the model reads the right form of its call. It is for the model to send, and never runs."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import pytest

from toolwire import BaseTool, Caller, Session, ToolParameter, ToolRegistry, ToolResult, ToolSpec
from toolwire.protocols import get
from toolwire.protocols.foreign.meant_calls import SHOWN_LIMIT
from toolwire.protocols.right_call import KEPT_LIMIT, WRAPPERS_LIMIT
from toolwire.session.failed_calls.right_forms import HEADINGS
from toolwire.session.runs.resume import RunStore
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall

HEADING = HEADINGS["en"]
NATIVE = ("openai", "openai-responses", "anthropic", "gemini")


class Person(TypedDict):
    name: str
    age: int


RAN: list[dict[str, Any]] = []


def calculate_triangle_area(
    base: int,
    height: float,
    unit: Literal["cm", "m"] = "cm",
    is_exact: bool = False,
    points: list[int] | None = None,
    owner: Person | None = None,
) -> str:
    """Calculates an area."""
    RAN.append({"base": base, "height": height, "unit": unit, "points": points, "owner": owner, "exact": is_exact})
    return "done"


def send(text: str) -> str:
    """Sends a text."""
    RAN.append({"text": text})
    return text


def session(protocol: str, **options: Any) -> Session:
    RAN.clear()
    return Session([calculate_triangle_area, send], protocol=protocol, **options)


def reply(protocol: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """Returns a reply with one call, as the model of that protocol writes it."""
    match protocol:
        case "json":
            return json.dumps({"name": name, "arguments": arguments})
        case "xml":
            return get("xml").render([ToolCall(name, arguments)])
        case "openai":
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": "c1", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        case "openai-responses":
            return [{"type": "function_call", "call_id": "c1", "name": name, "arguments": json.dumps(arguments)}]
        case "anthropic":
            return {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": name, "input": arguments}]}
        case _:
            return {"role": "model", "parts": [{"function_call": {"name": name, "args": arguments}}]}


def told(turn: Turn) -> str:
    """Returns the last text of the turn's messages."""
    message = turn.messages[-1]
    body: Any = message.get("content") or message.get("output") or message.get("parts")
    if isinstance(body, str):
        return body
    (part,) = body
    return str(part["content"] if "content" in part else part["function_response"]["response"]["error"])


def form(turn: Turn, heading: str = HEADING) -> str:
    """Returns the right form that ends the text; empty without one."""
    _, found, after = told(turn).partition(f"{heading}\n")
    assert (bool(found), heading in after) == (bool(after), False)
    return after


def program(code: str) -> str:
    written = get("attp").render([ToolCall(CODE_EXECUTION, {"code": code})])
    assert isinstance(written, str)
    return written


MENDED = {"base": 3, "height": 0.5}
JSON_FORM = (
    '<tool_call>\n[{"name": "calculate_triangle_area", "arguments": {"base": 3, "height": <number>}}]\n</tool_call>'
)
XML_FORM = (
    "<tool_call>\n  <name>calculate_triangle_area</name>\n  <params>\n    <base><![CDATA[3]]></base>\n"
    "    <height><![CDATA[<number>]]></height>\n  </params>\n</tool_call>"
)
FORMS = {
    "json": JSON_FORM,
    "xml": XML_FORM,
    "openai": '{"name": "calculate_triangle_area", "arguments": {"base": 3, "height": <number>}}',
    "openai-responses": '{"name": "calculate_triangle_area", "arguments": {"base": 3, "height": <number>}}',
    "anthropic": '{"name": "calculate_triangle_area", "input": {"base": 3, "height": <number>}}',
    "gemini": '{"name": "calculate_triangle_area", "args": {"base": 3, "height": <number>}}',
}


@pytest.mark.parametrize("protocol", FORMS)
def test_the_call_stands_in_the_model_s_own_format_after_the_error(protocol: str) -> None:
    talk = session(protocol)
    for name, given in (
        ("calculate_triangle_area", {"base": 3}),
        ("calculate_triangle_area", {"base": 3, "height": "tall"}),
        ("compute_triangle_area", {"base": 3, "colour": "red"}),
        ("calculate_triangle_area", {"arguments": {"base": 3, "height": None}}),
    ):
        turn = talk.run_turn(reply(protocol, name, given))
        assert form(turn) == FORMS[protocol], (name, given)
        assert turn.results[0].text in told(turn).replace("\\n", "\n") or protocol == "json"
        assert HEADING not in turn.results[0].text
    assert RAN == []


@pytest.mark.parametrize("protocol", ["json", "xml"])
def test_the_heading_is_in_the_language_of_the_prompt(protocol: str) -> None:
    turn = session(protocol, language="zh").run_turn(reply(protocol, "calculate_triangle_area", {"base": 3}))
    assert form(turn, HEADINGS["zh"]) == FORMS[protocol]


@pytest.mark.parametrize("protocol", ["json", "openai"])
def test_a_stream_and_a_whole_reply_are_answered_alike(protocol: str) -> None:
    talk, whole = session(protocol), reply(protocol, "calculate_triangle_area", {"base": 3})
    stream = talk.stream(marks_end=False)
    if protocol == "json":
        for letter in whole:
            stream.feed(letter)
    else:
        (call,) = whole["tool_calls"]
        stream.feed({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]})
    assert form(talk.run_turn(stream.reply())) == form(talk.run_turn(whole)) == FORMS[protocol]


def test_a_batch_of_calls_has_the_forms_of_those_that_failed() -> None:
    calls = [
        {"name": "send", "arguments": {"text": "hello"}},
        {"name": "send", "arguments": {"words": "x"}},
        {"name": "calculate_triangle_area", "arguments": {"base": 3}},
    ]
    turn = session("json").run_turn(json.dumps(calls))
    assert json.loads(
        form(turn)[len("<tool_call>\n") : -len("\n</tool_call>")].replace("<string>", '"a"').replace("<number>", "1")
    ) == [
        {"name": "send", "arguments": {"text": "a"}},
        {"name": "calculate_triangle_area", "arguments": {"base": 3, "height": 1}},
    ]
    assert RAN == [{"text": "hello"}]


def test_parameters_beside_the_arguments_are_put_into_them() -> None:
    lost = '<tool_call>[{"name": "calculate_triangle_area", "arguments": {"base": 3}, "height": null}]</tool_call>'
    talk = session("json")
    assert talk.instructions
    turn = talk.run_turn(lost)
    assert turn.reply.is_refused
    assert told(turn).startswith("Your reply was not run.\n- line 1: The parameter 'height' stands beside")
    assert form(turn) == JSON_FORM


RIGHT_TAGS = "<height>0.5</height><owner><name><![CDATA[Eva]]></name><age>3</age></owner>"
WRONG_TAGS = "<base>three</base>"


@pytest.mark.parametrize(
    "params",
    [
        *(f"<params><{tag}>{WRONG_TAGS}{RIGHT_TAGS}</{tag}></params>" for tag in ("arguments", "params", "data")),
        f"<params><input>{RIGHT_TAGS}</input>{WRONG_TAGS}</params>",
        '<params>{"base": "three", "height": 0.5, "owner": {"name": "Eva", "age": 3}}</params>',
    ],
)
def test_tags_or_json_in_the_wrong_place_are_put_into_the_right_form(params: str) -> None:
    call = f"<tool_call><name>calculate_triangle_area</name>{params}</tool_call>"
    turn = session("xml").run_turn(call)
    assert turn.reply.is_refused
    assert form(turn).split() == [
        *("<tool_call>", "<name>calculate_triangle_area</name>", "<params>", "<base><![CDATA[<integer>]]></base>"),
        *("<height><![CDATA[0.5]]></height>", '<owner><![CDATA[{"name":', '"Eva",', '"age":', "3}]]></owner>"),
        *("</params>", "</tool_call>"),
    ]
    assert not form(session("xml").run_turn(f"The page says:\n{call}"))


@pytest.mark.parametrize(
    "params",
    [
        "<unit><unit>m</unit><base>3</base></unit>",
        f"<input>{RIGHT_TAGS}<height>1</height></input>",
        f"<input>{RIGHT_TAGS}",
    ],
    ids=["a parameter as the wrapper", "given twice", "not closed"],
)
def test_tags_whose_meaning_is_not_clear_have_no_form(params: str) -> None:
    call = f"<tool_call><name>calculate_triangle_area</name><params>{params}</params></tool_call>"
    turn = session("xml").run_turn(call)
    assert turn.reply.is_refused
    assert not form(turn)


def test_unreadable_arguments_of_a_native_call_have_a_form() -> None:
    broken = reply("openai", "calculate_triangle_area", {})
    broken["tool_calls"][0]["function"]["arguments"] = '{"base": 3, "height'
    turn = session("openai").run_turn(broken)
    assert turn.reply.is_refused
    assert form(turn) == ('{"name": "calculate_triangle_area", "arguments": {"base": <integer>, "height": <number>}}')


RIGHT = {"string": '"cm"', "integer": "3", "number": "0.5", "boolean": "true", "array": "[1]"}
RIGHT_OBJECT = '{"name": "Eva", "age": 3}'
VALUES: dict[str, list[Any]] = {
    "base": [3, "three", None, [4], {"base": 3}],
    "height": [0.5, 2, "high", None, {}],
    "unit": ["m", "mile", 5, None],
    "is_exact": [True, "perhaps"],
    "points": [[1, 2], [1, "two", 3], "points", None],
    "owner": [{"name": "Eva", "age": 3}, {"name": "Eva"}, {"age": "old", "name": 5, "more": 1}, 7, None],
}


def mistaken(chance: random.Random) -> dict[str, Any]:
    """Returns arguments with mistakes: some are left out, wrong, unknown or in objects around them."""
    names = chance.sample(list(VALUES), chance.randrange(len(VALUES) + 1))
    given: dict[str, Any] = {name: chance.choice(VALUES[name]) for name in names}
    if chance.random() < 0.3:
        given["colour"] = "red"
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        given = {chance.choice(["arguments", "params", "input"]): given}
    return given


def filled(text: str) -> str:
    """Returns the form with a right value for each blank."""
    return re.sub(
        r"<(string|integer|number|boolean|array|object)>", lambda found: RIGHT.get(found[1], RIGHT_OBJECT), text
    )


@pytest.mark.parametrize("protocol", FORMS)
def test_a_form_with_its_blanks_filled_is_accepted_as_it_stands(protocol: str) -> None:
    chance, talk, count = random.Random(36), session(protocol), 0
    for _ in range(60):
        name = chance.choice(["calculate_triangle_area", "compute_triangle_area"])
        shown = form(talk.run_turn(reply(protocol, name, mistaken(chance))))
        if not shown:
            continue
        count += 1
        if protocol == "xml":
            sent: Any = filled(shown.replace("[<string>]", "[cm]"))
        else:
            sent = filled(shown)
        if protocol in NATIVE:
            call = json.loads(sent)
            sent = reply(protocol, call.pop("name"), *call.values())
        turn = talk.run_turn(sent)
        assert [result.text for result in turn.results] == ["done"], (shown, sent)
    assert count > 30


def test_a_form_that_is_sent_as_it_is_runs_nothing() -> None:
    talk = session("json")
    assert talk.run_turn(JSON_FORM).reply.is_refused
    ran = session("attp").run_turn(program("__result__ = calculate_triangle_area(base=3, height=<number>)\n"))
    assert not ran.results[0].success
    assert RAN == []


def test_a_right_value_is_never_given_away() -> None:
    turn = session("json").run_turn(reply("json", "calculate_triangle_area", {**MENDED, "unit": "mile"}))
    assert json.loads(form(turn)[12:-13].replace("<string>", "null"))[0]["arguments"] == {**MENDED, "unit": None}
    assert "cm" not in form(turn)


def test_a_call_that_the_tool_s_own_check_refuses_has_no_form() -> None:
    class Strict(BaseTool):
        def __init__(self) -> None:
            super().__init__("post", "Posts a text.")

        def get_parameters(self) -> list[ToolParameter]:
            return [ToolParameter("text", "string", "The text")]

        def validate_params(self, params: dict[str, Any]) -> str | None:
            return f"not {params['text']}"

        async def execute(self, **params: Any) -> ToolResult:
            return ToolResult(success=True, data=params)

    turn = Session([Strict()], protocol="json").run_turn(reply("json", "post", {"text": "x"}))
    assert (turn.results[0].error, form(turn)) == ("not x", "")


def test_only_tools_that_the_caller_sees_are_named() -> None:
    registry = ToolRegistry()
    registry.register(calculate_triangle_area)
    for_all = Session(registry, protocol="json")
    hidden = Session(registry, protocol="json", visible=lambda name, caller: caller.agent == "eva")
    denied = Session(registry, protocol="json", permissions={"calculate_triangle_area": "deny"})
    wrong = reply("json", "compute_triangle_area", {"base": 3})
    for_programs = Session(registry, protocol="attp", permissions={"calculate_triangle_area": "deny"})
    assert form(for_programs.run_turn(program("compute_triangle_area(base=3)\n"))) == ""
    assert form(for_all.run_turn(wrong)) == JSON_FORM
    assert "calculate" not in told(hidden.run_turn(wrong))
    assert "calculate" not in told(denied.run_turn(wrong))
    assert form(hidden.run_turn(wrong, caller=Caller(agent="eva"))) == JSON_FORM
    registry.disable("calculate_triangle_area", "It is away.")
    assert "calculate" not in told(for_all.run_turn(wrong))


@pytest.mark.parametrize("source", ["calculat_triangle_area(3)", "tools.area(3)", "area(3)", "help()", "open('x')"])
def test_no_text_of_a_program_names_a_denied_tool(source: str) -> None:
    for_all, denied = session("attp"), session("attp", permissions={"calculate_triangle_area": "deny"})
    assert "calculate_" in told(for_all.run_turn(program(source)))
    assert "calculate_" not in told(denied.run_turn(program(source)))


def test_a_form_that_is_copied_with_its_blanks_keeps_its_values() -> None:
    copied = session("json").run_turn(JSON_FORM)
    assert (copied.reply.is_refused, form(copied)) == (True, JSON_FORM)
    native = reply("openai", "calculate_triangle_area", {})
    native["tool_calls"][0]["function"]["arguments"] = '{"base": 3, "height": <number>}'
    copied = session("openai").run_turn(native)
    assert copied.reply.is_refused
    assert form(copied) == '{"name": "calculate_triangle_area", "arguments": {"base": 3, "height": <number>}}'
    assert RAN == []


def test_an_argument_that_the_host_gives_is_in_no_form() -> None:
    spec = ToolSpec.from_function(send).bind("text", "secret", default="s3cret")
    turn = Session([spec, calculate_triangle_area], protocol="json").run_turn(reply("json", "send", {"text": "mine"}))
    assert form(turn) == '<tool_call>\n[{"name": "send", "arguments": {}}]\n</tool_call>'


@pytest.mark.parametrize("size", [KEPT_LIMIT - 2, KEPT_LIMIT - 1])
def test_a_long_value_is_left_to_the_model(size: int) -> None:
    turn = session("json").run_turn(reply("json", "send", {"text": "y" * size, "more": 1}))
    assert ("y" in form(turn), "<string>" in form(turn)) == (size == KEPT_LIMIT - 2, size > KEPT_LIMIT - 2)


def test_forms_beyond_the_limit_are_left_out() -> None:
    calls = [{"name": "send", "arguments": {"text": "x" * 390, "n": number}} for number in range(8)]
    shown = form(session("json").run_turn(json.dumps(calls)))
    assert (shown.count("send"), len(shown) <= SHOWN_LIMIT) == (4, True)


@pytest.mark.parametrize("levels", [WRAPPERS_LIMIT, WRAPPERS_LIMIT + 1])
def test_wrappers_are_taken_off_up_to_the_limit(levels: int) -> None:
    given: dict[str, Any] = {"text": "x"}
    for _ in range(levels):
        given = {"input": given}
    shown = form(session("json").run_turn(reply("json", "send", given)))
    assert ('"text": "x"' in shown, '"text": <string>' in shown) == (levels == WRAPPERS_LIMIT, levels > WRAPPERS_LIMIT)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (
            "size = 3\n__result__ = compute_triangle_area(base=size)\n",
            "calculate_triangle_area(base=size, height=<number>)",
        ),
        ("__result__ = calculate_triangle_area(3, colour='red')\n", "calculate_triangle_area(base=3, height=<number>)"),
        (
            "size = 'x'\n__result__ = calculate_triangle_area(base=size, height=0.5)\n",
            "calculate_triangle_area(base=<integer>, height=0.5)",
        ),
        ("send({'text': 'hello'})\n", 'send(text="hello")'),
        ("send(**{'words': 1})\n", ""),
        ("raise ValueError('no')\n", ""),
    ],
)
def test_a_program_reads_the_call_as_a_line_of_python(code: str, shown: str) -> None:
    turn = session("attp").run_turn(program(code))
    assert form(turn) == shown
    assert "Correct it and send the whole program." in told(turn)
    assert RAN == []


def test_a_value_that_a_program_worked_out_is_in_no_form() -> None:
    def secret() -> str:
        """Returns a text."""
        return "number 4711"

    talk = Session([secret, send, calculate_triangle_area], protocol="attp")
    turn = talk.run_turn(program("found = secret()\ncalculate_triangle_area(base=3, unit=found, height=found)\n"))
    assert form(turn) == "calculate_triangle_area(base=3, height=<number>, unit=<string>)"


def test_a_turn_that_is_resumed_has_the_same_message(store: RunStore) -> None:
    talk = Session([calculate_triangle_area], protocol="attp", store=store)
    turn = talk.run_turn(program("__result__ = compute_triangle_area(base=3)\n"))
    again = Session([calculate_triangle_area], protocol="attp", store=store).run_resume(turn.run_id)
    assert form(turn) == "calculate_triangle_area(base=3, height=<number>)"
    assert told(again) == told(turn)


def test_a_native_text_names_a_tool_as_it_was_offered() -> None:
    registry = ToolRegistry()
    registry.register(send, name="mail.send")
    for protocol in NATIVE:
        talk = Session(registry, protocol=protocol)
        wrong, unknown = reply(protocol, "mail_dot_send", {}), reply(protocol, "post", {})
        texts = told(talk.run_turn(wrong)), told(talk.run_turn(unknown))
        assert [text.count("mail.send") for text in texts] == [0, 0], protocol
        assert texts[0].startswith("The arguments of 'mail_dot_send' are wrong:\n")
        assert texts[1] == "There is no tool named 'post'.\nThe tools are: mail_dot_send."
    assert "'mail.send'" in told(Session(registry, protocol="json").run_turn(reply("json", "mail.send", {})))
