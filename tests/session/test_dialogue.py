"""The messages of a text protocol also tell the model of repeated mistakes, of losses, and how to end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import ConfigurationError, Session, ToolRegistry
from toolwire.protocols import get
from toolwire.protocols.outgoing import ENDINGS
from toolwire.session.dialogue import (
    EARLIER,
    LEFT_OUT,
    PROGRAMS_LIMIT,
    SAME_PROGRAM,
    SAME_REPLY,
    THE_REST,
    Language,
)
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall

ENDING = ENDINGS["en"]
FAILED = "Do not send the same program again: it would fail the same way. Correct it and send the whole program."


def look_up(word: str) -> str:
    """Looks a word up."""
    if word == "gone":
        raise FileNotFoundError("no such word")
    return word.upper()


def wipe() -> None:
    """Wipes."""


XML_CALL = "<tool_call><name>look_up</name><params><word>a</word></params></tool_call>"


def session(protocol: str = "json", **options: Any) -> Session:
    return Session([look_up, wipe], protocol=protocol, **options)


def program(code: str) -> str:
    written = get("attp").render([ToolCall(CODE_EXECUTION, {"code": code})])
    assert isinstance(written, str)
    return written


def call(word: str) -> str:
    return json.dumps({"name": "look_up", "arguments": {"word": word}})


BROKEN = {
    "json": '{"name": "look_up", "arguments": {"word": "a"',
    "attp": '[tool_call]\nstatus = "success"\n',
    "xml": "<tool_call>",
}


@pytest.mark.parametrize("protocol", BROKEN)
def test_only_a_prompt_of_the_host_s_own_needs_the_form_behind_a_refusal(protocol: str) -> None:
    own, ours = session(protocol), session(protocol)
    assert ours.system_prompt
    reminded, refused = own.run_turn(BROKEN[protocol]).text, ours.run_turn(BROKEN[protocol]).text
    assert refused.startswith("Your reply was not run.\n- ")
    assert reminded == f"{refused}\n\n{get(protocol).reminder}"
    assert get(protocol).reminder


def lines(turn: Turn) -> list[str]:
    """Returns the lines of the message that the turn's text lacks."""
    content = turn.messages[0]["content"]
    before, _, after = content.partition(turn.text.rstrip("\n"))
    return [line for line in (*before.splitlines(), *after.splitlines()) if line]


@pytest.mark.parametrize("protocol", ["attp", "json", "xml"])
def test_a_clean_result_says_how_to_end_and_the_text_stays(protocol: str) -> None:
    written = get(protocol).render([ToolCall("look_up", {"word": "a"})])
    assert isinstance(written, str)
    turn = session(protocol).run_turn(written)
    answer = get(protocol).format(turn.results)
    assert turn.messages == [{"role": "user", "content": f"{answer}\n{ENDING}"}]
    assert turn.text == answer


def test_the_ending_is_in_the_language_of_the_prompt() -> None:
    language: Language = "zh"
    assert lines(session(language=language).run_turn(call("a"))) == [ENDINGS["zh"]]


def test_a_failed_call_an_empty_program_and_an_answer_are_not_told_to_end() -> None:
    assert lines(session().run_turn(call("gone"))) == []
    assert lines(session("attp").run_turn(program("x = 1"))) == []
    assert session().run_turn("All done.").messages == []


def test_a_native_protocols_messages_are_only_the_results() -> None:
    native = session("openai")
    reply = {
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"word": "gone"}'}}
        ],
    }
    for _ in range(2):
        turn = native.run_turn(reply)
        assert turn.messages == get("openai").format(turn.results)


def test_a_program_that_fails_names_the_cause_and_asks_for_another_one() -> None:
    turn = session("attp").run_turn(program("look_up('gone')"))
    assert turn.text.splitlines()[-2:] == ["FileNotFoundError: no such word", FAILED]


def test_the_same_failed_program_is_told_so_in_the_first_line() -> None:
    one = session("attp")
    assert lines(one.run_turn(program("look_up('gone')"))) == []
    repeated = one.run_turn(program("look_up('gone')\n"))
    assert repeated.messages[0]["content"].splitlines()[0] == SAME_PROGRAM
    assert SAME_PROGRAM not in repeated.text
    assert lines(one.run_turn(program("look_up('gone') + 'x'"))) == []


def test_the_same_failed_call_is_told_so_and_another_one_is_not() -> None:
    one = session()
    assert lines(one.run_turn(call("gone"))) == []
    assert lines(one.run_turn(call("gone"))) == [
        "'look_up' was called with the same arguments as before, and it failed once more."
    ]
    assert lines(one.run_turn(call("a"))) == [ENDING]
    assert lines(one.run_turn(call("gone"))) == []


def test_a_repeated_call_that_works_now_is_not_blamed() -> None:
    works: list[bool] = []

    def flaky() -> str:
        """Works later."""
        if not works:
            raise OSError("not yet")
        return "yes"

    one = Session([flaky], protocol="json")
    reply = json.dumps({"name": "flaky", "arguments": {}})
    one.run_turn(reply)
    works.append(True)
    assert lines(one.run_turn(reply)) == [ENDING]


def test_the_same_unreadable_reply_is_told_so() -> None:
    one = session()
    broken = '<tool_call>\n{"name": "look_up", "arguments": {"word'
    assert one.run_turn(broken).messages[0]["content"].startswith("Your reply was not run.")
    again = one.run_turn(broken)
    assert again.messages[0]["content"].splitlines()[:2] == [SAME_REPLY, "Your reply was not run."]
    assert again.text.startswith("Your reply was not run.")
    assert one.run_turn(broken + "x").messages[0]["content"].startswith("Your reply was not run.")


def test_a_variable_of_an_earlier_program_is_explained() -> None:
    one = session("attp")
    one.run_turn(program("first, found = 1, look_up('a')\nprint(found)"))
    turn = one.run_turn(program("print(found)"))
    assert lines(turn) == [EARLIER.format("found")]
    assert "NameError: name 'found' is not defined" in turn.text


def test_a_variable_that_no_earlier_program_set_is_not_explained() -> None:
    one = session("attp")
    one.run_turn(program("print(look_up('other'))"))
    assert lines(one.run_turn(program("print(other)"))) == []
    assert lines(session("attp").run_turn(program("print(found)\nfound = 1"))) == []


def test_the_variables_of_the_latest_programs_are_known() -> None:
    def found_after(count: int) -> list[str]:
        one = session("attp")
        one.run_turn(program("found = 1\nprint(found)"))
        for number in range(count):
            one.run_turn(program(f"print({number})"))
        return lines(one.run_turn(program("print(found)")))

    assert found_after(PROGRAMS_LIMIT - 1) == [EARLIER.format("found")]
    assert found_after(PROGRAMS_LIMIT) == []


@pytest.mark.parametrize(
    ("protocol", "reply", "told"),
    [
        (
            "attp",
            "Request: a\nReply:\n".join([program("__result__ = look_up('a')")] * 3),
            "Only the first of 3 documents was run.",
        ),
        (
            "json",
            f"{call('a')}\n```json\n{call('b')}\n```",
            "A call in a code fence was left out: those outside of fences were taken.",
        ),
        (
            "xml",
            XML_CALL + "<tool_result>x</tool_result>" + XML_CALL,
            "The reply goes on with a result of its own; calls after it were left out.",
        ),
    ],
)
def test_a_repair_that_changed_what_ran_is_told_to_the_model(protocol: str, reply: str, told: str) -> None:
    turn = session(protocol).run_turn(reply)
    assert len(turn.results) == 1
    assert lines(turn) == [told, THE_REST["en"], ENDING]


def test_a_repair_that_changed_nothing_is_not_told_to_the_model() -> None:
    turn = session().run_turn(f"```json\n{call('a')}\n```")
    assert [problem.repaired for problem in turn.reply.problems] == [True]
    assert lines(turn) == [ENDING]


@pytest.mark.parametrize("protocol", ["attp", "json", "xml"])
def test_a_note_can_stand_for_an_unreadable_reply(protocol: str) -> None:
    broken = '[tool_call]\nstatus = "success"\n<tool_call>{"name": "look_up"'
    turn = session(protocol, on_unreadable="note").run_turn(broken)
    assert turn.reply.is_refused
    assert turn.reply.message == LEFT_OUT
    assert broken not in turn.messages[0]["content"]
    assert session(protocol).run_turn(broken).reply.message == broken


def test_a_repeated_unreadable_reply_is_known_behind_its_note() -> None:
    one = session(on_unreadable="note")
    broken = '<tool_call>\n{"name": "look_up", "arguments": {"word'
    one.run_turn(broken)
    assert one.run_turn(broken).messages[0]["content"].splitlines()[0] == SAME_REPLY


def test_a_note_leaves_readable_replies_as_they_are() -> None:
    assert session(on_unreadable="note").run_turn(call("a")).reply.message == call("a")


def test_a_note_is_refused_where_it_cannot_be_given() -> None:
    with pytest.raises(ConfigurationError, match="on_unreadable='note': the protocol 'openai' is native"):
        session("openai", on_unreadable="note")
    with pytest.raises(ConfigurationError, match="on_unreadable='drop' is unknown: write 'keep' or 'note'"):
        session(on_unreadable="drop")


def test_a_resumed_turn_reads_as_it_did(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    tools = ToolRegistry()
    tools.register(look_up)
    first = Session(tools, protocol="json", store=store)
    turns = [first.run_turn(call("gone")), first.run_turn(call("gone"))]
    run_id = turns[1].results[0].call.id.partition("/")[0] if turns[1].results[0].call else ""
    assert lines(turns[1]) == ["'look_up' was called with the same arguments as before, and it failed once more."]
    again = first.run_resume(run_id)
    assert (again.messages, again.text) == (turns[1].messages, turns[1].text)
    elsewhere = Session(tools, protocol="json", store=store).run_resume(run_id)
    assert elsewhere.text == turns[1].text
