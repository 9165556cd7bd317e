"""Damaged ATTP replies: read as they were meant, with every repair told, or refused; never read as something else."""

from __future__ import annotations

import random
import re

import pytest

from tests.protocols.damages import DAMAGES, PROSE, Damage
from tests.protocols.replies import RESULTS, TRIPLES, Written, lines_of, program, text_of, written
from toolwire.protocols import get
from toolwire.protocols.base import CALL_LIMIT
from toolwire.vocabulary.calls import Reply

ATTP = get("attp")
ROUNDS = 50


def asked(reply: Reply) -> tuple[list[object], str | None]:
    return [call.arguments for call in reply.calls], reply.failure


def meant(reply: Written) -> tuple[list[object], str | None]:
    return ([] if reply.code is None else [{"code": reply.code}]), reply.message


def chance_of(name: str) -> random.Random:
    return random.Random(f"attp {name}")


@pytest.mark.threat(47)
@pytest.mark.requirement("attp.protocol.damaged")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.make.__name__)
def test_a_damaged_reply_is_read_as_it_was_meant_or_refused(damage: Damage) -> None:
    chance, recovered = chance_of(damage.make.__name__), 0
    for _ in range(ROUNDS):
        reply = written(chance, triple=damage.triple, fails=damage.fails)
        damaged = damage.make(reply, chance)
        parsed = ATTP.parse(damaged)
        assert parsed.problems, damaged
        if not parsed.is_refused:
            assert asked(parsed) == meant(reply), damaged
            recovered += 1
    assert recovered >= damage.recovered


def test_an_undamaged_reply_has_no_problems() -> None:
    chance = chance_of("undamaged")
    for _ in range(ROUNDS):
        reply = written(chance, triple=chance.random() < 0.5, whole=chance.random() < 0.5)
        parsed = ATTP.parse(text_of(reply))
        assert (asked(parsed), parsed.problems) == (meant(reply), ())


def test_two_damages_at_once_never_make_another_program() -> None:
    chance = chance_of("two damages")
    for _ in range(400):
        damage = chance.choice(DAMAGES)
        reply = written(chance, triple=damage.triple, whole=chance.random() < 0.5, fails=damage.fails)
        damaged = around(damage.make(reply, chance), chance)
        parsed = ATTP.parse(damaged)
        if not parsed.is_refused:
            assert asked(parsed) == meant(reply), damaged


def around(text: str, chance: random.Random) -> str:
    match chance.randrange(5):
        case 0:
            return f"{chance.choice(['', *PROSE])}```toml\n{text}```\n{chance.choice(['', *PROSE])}"
        case 1:
            return f"{chance.choice(PROSE)}{text}"
        case 2:
            return f"{text}\n{chance.choice(PROSE)}"
        case 3:
            return f"<think>hm\n</think>\n{text}"
        case _:
            return f"\ufeff{text}".replace("\n", "\r\n")


def test_a_reply_cut_anywhere_is_read_whole_or_refused() -> None:
    chance = chance_of("cut")
    for _ in range(12):
        reply = written(chance)
        text = text_of(reply)
        for length in range(len(text)):
            parsed = ATTP.parse(text[:length])
            assert parsed.is_refused or asked(parsed) == meant(reply), text[:length]


def test_a_cut_reply_whose_program_gathers_its_result_is_never_run() -> None:
    chance = chance_of("cut early")
    for _ in range(12):
        text = text_of(written(chance, whole=False, fails=False))
        for length in range(text.rindex("'")):
            assert ATTP.parse(text[:length]).calls == ()


HEAD = 'thought = "t"\n\n[tool_call]\nstatus = "success"\ntarget = "g"\n'
WHOLE = HEAD + "code = '''\nx = f()\n__result__ = x\n'''\n"
OTHER = WHOLE.replace("f()", "other()")


def code_of(reply: str) -> str | None:
    parsed = ATTP.parse(reply)
    return parsed.calls[0].arguments["code"] if parsed.calls else None


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (HEAD + "code = '''\n__result__ = f(1)\n", "__result__ = f(1)\n"),
        (HEAD + "code = '''\n__result__ = f(1)\n''", "__result__ = f(1)\n"),
        (HEAD + 'code = """\n__result__ = f(1)\n', "__result__ = f(1)\n"),
        ("```toml\n" + HEAD + "code = '''\nprint(f(1))\n```\n", "print(f(1))\n"),
        (HEAD + "code = '''\n__result__ = f(1)", None),
        (HEAD + "code = '''\n__result__ = f(1)\n\n", None),
        (HEAD + "code = '''\nprint(f(1))\n", None),
        (HEAD + "code = '''\n__result__ = []\n", None),
        (HEAD + "code = '''\n__result__ = f(1)\n__result__ = g(__result__)\n", None),
        (HEAD + "code = '''\nif x:\n    __result__ = f(1)\n", None),
        (HEAD + "code = '''\nx = '''a'''\n__result__ = f(x)\n", None),
        (HEAD + "code = '''\n__result__ = f(\n", None),
        ("```toml\n" + HEAD + "code = '''\nprint(f(1)\n```\n", None),
        ("```toml\n" + HEAD + 'code = \'\'\'\nx = """\n```\n"""\n__result__ = x\n```\n', None),
        (HEAD + 'code = "__result__ = f(1)', None),
    ],
)
def test_an_unclosed_program_is_run_only_if_it_is_over(reply: str, code: str | None) -> None:
    assert code_of(reply) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ('"""\nre.findall(r"\\d", "a\\nb")\n"""', 're.findall(r"\\d", "a\\nb")\n'),
        ("\"x = 1\\nre.findall(r'\\d', y)\"", "x = 1\nre.findall(r'\\d', y)"),
        ("\"open('C:\\Users\\data')\"", "open('C:\\Users\\data')"),
        ('"""\nx = \'\\d\' # \\t\n"""', None),
        ('"__result__ = search("a")"', '__result__ = search("a")'),
        ('"__result__ = search("a") + "b" # "c""', '__result__ = search("a") + "b" # "c"'),
        ("```python\nx = '''a'''\n```", "x = '''a'''\n"),
        ("r'''\nx = '\\d'\n'''", "x = '\\d'\n"),
        ("‘’’\nx = '“”'\n’’’", "x = '“”'\n"),
        ("“x = 1”", "x = 1"),
        ("x = 1", None),
        ("'''\nx = '''a\n'''", None),
        ("'''\nx = '''\nmessage = 'm'\n'''\ny = 1\n'''", None),
        ("'''\n\x01 = '''a'''\n'''", None),
    ],
)
def test_a_program_is_read_only_where_one_reading_compiles(value: str, code: str | None) -> None:
    assert code_of(f"{HEAD}code = {value}\n") == code


@pytest.mark.parametrize(
    "reply",
    [
        f"```toml\n{WHOLE}```\n```toml\n{OTHER}```\n",
        f"{WHOLE}\n```toml\n{OTHER}```\n",
        f"```toml\n{OTHER}```\n{WHOLE}",
        f"The tool said:\n{OTHER}\nSo I do this:\n{WHOLE}",
        f"The tool said:\n```\n{OTHER}```\nSo I do this:\n{WHOLE}",
        f"````markdown\n```toml\n{OTHER}```\n````\n",
        f"```toml\nExample:\n{OTHER}```\n",
        f"```toml\n{OTHER}\n{WHOLE}```\n",
        "".join(f"> {line}\n" for line in OTHER.splitlines()),
        "".join(f"# {line}\n" for line in OTHER.splitlines()),
        f"{OTHER}</think>\n{WHOLE}",
        f"<think>\n{OTHER}",
        f"{OTHER}\n</think>",
        repr(OTHER),
        f"{HEAD}{WHOLE}",
    ],
)
@pytest.mark.threat(24)
def test_a_document_that_may_be_quoted_is_not_run(reply: str) -> None:
    parsed = ATTP.parse(reply)
    assert (parsed.is_refused, parsed.calls) == (True, ())


@pytest.mark.threat(24)
@pytest.mark.parametrize("quoted", [OTHER, f"```toml\n{OTHER}```\n", "</think>\n" + OTHER.replace("'''", '"""')])
@pytest.mark.parametrize("wrap", ["{}", "Sure:\n{}", "{}\nDone.", "```toml\n{}```\n", "<think>a</think>{}", "\ufeff{}"])
def test_a_document_inside_a_value_is_never_the_call(quoted: str, wrap: str) -> None:
    escaped = quoted.replace("\\", "\\\\").replace('"', '\\"')
    thinking = WHOLE.replace('"t"', f'"""\n{escaped}"""')
    program = WHOLE.replace("'''\nx = f()\n__result__ = x\n'''", f"\"\"\"\nx = '''{escaped}'''\n__result__ = x\n\"\"\"")
    assert code_of(wrap.format(thinking)) in ("x = f()\n__result__ = x\n", None)
    assert code_of(wrap.format(program)) in (f"x = '''{quoted}'''\n__result__ = x\n", None)


@pytest.mark.parametrize("before", ["", *PROSE])
@pytest.mark.parametrize("after", ["", *PROSE])
def test_noise_around_a_document_changes_no_call(before: str, after: str) -> None:
    chance = chance_of(before + after)
    reply = written(chance)
    for document in (text_of(reply) + "\n", f"```toml\n{text_of(reply)}```\n"):
        assert asked(ATTP.parse(before + document + after)) == meant(reply)


def test_prose_around_is_kept_for_the_user() -> None:
    parsed = ATTP.parse(f"First this.\n\n```toml\n{WHOLE}```\n\nThen that.\n")
    assert parsed.text == "First this.\nThen that."


def test_a_repaired_value_stands_in_the_reply_as_it_is() -> None:
    chance = chance_of("invents nothing")
    for damage in DAMAGES:
        for _ in range(20):
            damaged = damage.make(written(chance, triple=damage.triple, fails=damage.fails), chance)
            parsed = ATTP.parse(damaged)
            text = damaged.replace("\r\n", "\n")
            values = [parsed.thought, parsed.target, parsed.failure or "", *(c.arguments["code"] for c in parsed.calls)]
            for value in values:
                assert any(form in text for form in (value, escaped(value), escaped(value).replace("\\n", "\n"))), (
                    damaged
                )


def escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return re.sub('"(?="")|"', '\\"', text) if '"""' not in text else text.replace('"""', '""\\"')


def test_looking_at_a_program_warns_of_nothing() -> None:
    program = "x = 1if y else 0x1f\nz = '\\d' + b'\\w'\n__result__ = x\n"
    assert code_of(f"Hi.\n{HEAD}code = '''\n{program}'''\n") == program


@pytest.mark.requirement("attp.format.status-closed")
def test_a_status_beside_two_kinds_of_evidence_is_not_guessed() -> None:
    for status in ("ok", "done", "partial", "need_approval", "success?"):
        both = HEAD.replace('"success"', f'"{status}"') + "code = 'f()'\nmessage = 'm'\n"
        assert ATTP.parse(both).is_refused


def test_json_with_the_keys_of_attp_is_read() -> None:
    document = '{"thought": "t", "tool_call": {"status": "success", "target": "g", "code": "x = \'a\\\\n\'\\n"}}'
    for reply in (document, f"```json\n{document}\n```"):
        parsed = ATTP.parse(reply)
        assert asked(parsed) == ([{"code": "x = 'a\\n'\n"}], None)
        assert [problem.message for problem in parsed.problems] == [
            "The reply is JSON; it was read with the keys of ATTP."
        ]
    assert ATTP.parse(document.replace('"target": "g"', '"code": "y"')).is_refused
    assert ATTP.parse(document.replace("a\\\\n", "\\ud800")).is_refused


@pytest.mark.parametrize(
    ("reply", "problems"),
    [
        (f"```toml\n{WHOLE}```", [("line 1", "The code fence around the reply was left out.")]),
        (
            f"```toml\n{WHOLE}",
            [
                ("line 1", "The code fence around the reply was left out."),
                ("line 11", "The code fence around the reply is not closed."),
            ],
        ),
        (f"Hi.\n{WHOLE}", [("line 1", "The text before the document was left out.")]),
        (f"{WHOLE}\nBye.", [("line 11", "The text after the document was left out.")]),
        (f"<think>a\nb</think>\n{WHOLE}", [("line 1", "The text in <think> was left out.")]),
        (f"a\nb</think>\n{WHOLE}", [("line 2", "The text up to </think> was left out.")]),
        (f"\ufeff{WHOLE}", [("line 1", "A byte order mark was left out.")]),
        (WHOLE.replace("\n", "\r\n"), [("line 1", "Lines end in CR LF; they were read as LF.")]),
        (
            WHOLE.replace("f()", "'''a'''"),
            [("line 6", "`code` was read as it stands between its quotes: ''' stands inside it.")],
        ),
        (WHOLE[:-4], [("line 6", "`code` is never closed; it was read up to the end of the reply.")]),
        (
            WHOLE.replace('"t"', '"C:\\d"'),
            [
                (
                    "line 1",
                    "`thought` was read as it stands between its quotes: a backslash in it does not begin an escape.",
                )
            ],
        ),
        (
            WHOLE.replace('"t"', "“t”"),
            [("line 1", "`thought` was read as it stands between its quotes: they are not straight quotes.")],
        ),
        (WHOLE.replace('"t"', "t and u"), [("line 1", "`thought` has no quotes; it was read as it stands.")]),
        (
            WHOLE.replace('"t"\n', '"""t\n'),
            [("line 1", "`thought` is never closed; it was read up to [tool_call].")],
        ),
        (
            f"<tool_call>\n{WHOLE}</tool_call>",
            [
                ("line 1", "<tool_call> was read as [tool_call]."),
                ("line 4", "[tool_call] stands twice; its keys were read as one table."),
            ],
        ),
        (WHOLE.replace("[tool_call]", "[tool_call"), [("line 3", "[tool_call was read as [tool_call].")]),
        (WHOLE.replace("[tool_call]", "[Tool_Call]"), [("Tool_Call", "`Tool_Call` was read as `tool_call`.")]),
        (WHOLE.replace("status", "Status"), [("line 4", "`Status` was read as `status`.")]),
        (WHOLE.replace("[tool_call]\n", ""), [("", "The line [tool_call] is missing; its keys were read without it.")]),
        (WHOLE.replace('thought = "t"\n', ""), [("thought", "`thought` is missing.")]),
        (
            WHOLE.replace('status = "success"\n', ""),
            [("status", 'The missing status was read as "success": the reply has code.')],
        ),
        (
            WHOLE.replace('"success"', '"OK"'),
            [("line 4", "The status 'OK' was read as \"success\": the reply has code.")],
        ),
        (f"{WHOLE}\nRequest: go on\n{OTHER}", [("line 12", "Only the first of 2 documents was run.")]),
        (f"{WHOLE}\n{WHOLE}", [("line 11", "The same program stands in several documents; it runs once.")]),
    ],
)
def test_each_repair_is_told_with_its_place(reply: str, problems: list[tuple[str, str]]) -> None:
    parsed = ATTP.parse(reply)
    assert [(problem.place, problem.message) for problem in parsed.problems] == problems
    assert all(problem.repaired for problem in parsed.problems)
    assert len(parsed.calls) == 1


PRINTS = WHOLE.replace("__result__ = x", "print(x)")
THIRD = OTHER.replace("other()", "third()")
TWO_RUN = "2 documents have programs: each runs once the one before it has finished."
TWO = "Two documents stand in the reply, and it is not clear which is meant. Write one, without a code fence."


@pytest.mark.parametrize(
    ("reply", "programs", "told"),
    [
        (WHOLE + OTHER, "f other", [TWO_RUN]),
        (f"{PRINTS}\n\n{OTHER}\n{THIRD}\n\n", "f other third", [TWO_RUN.replace("2", "3")]),
        (
            f"{WHOLE}{OTHER}{WHOLE}",
            "f other",
            [TWO_RUN, "The same program stands in several documents; it runs once."],
        ),
        (
            f"{WHOLE}{OTHER}请求：go on\n回复：\n{THIRD}",
            "f other",
            [TWO_RUN, "Only the first 2 of 3 documents were run."],
        ),
        (WHOLE + OTHER.replace("other()", "other()\nthought = 1"), "f other", [TWO_RUN]),
    ],
    ids=["two", "three", "the first again", "goes on", "a line like a document's"],
)
def test_programs_with_thoughts_of_their_own_all_run_in_order(reply: str, programs: str, told: list[str]) -> None:
    parsed = ATTP.parse(reply)
    assert [call.arguments["code"].split()[2][:-2] for call in parsed.calls] == programs.split()
    assert [problem.message for problem in parsed.problems] == told
    assert parsed.is_sequence


@pytest.mark.parametrize("first", [WHOLE, PRINTS], ids=["a result", "prints"])
@pytest.mark.parametrize("second", [OTHER, OTHER[:-20]], ids=["whole", "cut off"])
@pytest.mark.parametrize("fence", ["", "```"])
@pytest.mark.parametrize("asked_for", ["Request: And then?\nReply:", "请求：然后呢？\n回复：", "Request: more"])
def test_a_request_that_the_model_made_up_ends_the_reply(first: str, second: str, fence: str, asked_for: str) -> None:
    opening = f"{fence}toml\n" if fence else ""
    parsed = ATTP.parse(f"{opening}{first}{fence}\n{asked_for}\n{opening}{second}{fence}\n")
    assert [call.arguments["code"] for call in parsed.calls] == [code_of(first)]
    losses = [problem.message for problem in parsed.problems if problem.is_loss]
    assert losses == ["Only the first of 2 documents was run."]
    assert not parsed.is_sequence


@pytest.mark.threat(24)
@pytest.mark.parametrize(
    "between",
    ["Then:", "Result: 5", "---", "5", "<tool_result>5</tool_result>", "Observation: 5", "5\nRequest: go on"],
)
def test_what_else_stands_between_two_documents_refuses_them(between: str) -> None:
    parsed = ATTP.parse(f"{WHOLE}\n{between}\n\n{OTHER}")
    assert (parsed.calls, [problem.message for problem in parsed.problems]) == ((), [TWO])


@pytest.mark.parametrize(
    "rest",
    [
        OTHER[: OTHER.rindex("'''")],
        OTHER.replace("success", "fail"),
        OTHER.replace("x = other()", "x = ("),
        OTHER.replace("status", "extra = 1\nstatus"),
        f"{OTHER}Then:\n",
        f"{OTHER}'''\n",
        f"# again\n{OTHER}",
    ],
    ids=["cut off", "a failure", "no Python", "another key", "prose behind", "quotes behind", "a comment between"],
)
def test_the_control_documents_that_are_not_whole_programs_are_left_out(rest: str) -> None:
    parsed = ATTP.parse(f"{WHOLE}\n{rest}")
    assert [call.arguments["code"] for call in parsed.calls] == ["x = f()\n__result__ = x\n"]
    assert any(problem.is_loss for problem in parsed.problems)
    assert not parsed.is_sequence


def test_a_reply_has_only_so_many_programs() -> None:
    def documents(count: int) -> str:
        return "\n".join(OTHER.replace("other()", f"other({number})") for number in range(count))

    assert len(ATTP.parse(documents(CALL_LIMIT)).calls) == CALL_LIMIT
    refused = ATTP.parse(documents(CALL_LIMIT + 1))
    assert [problem.message for problem in refused.problems] == [
        "The reply makes more than 64 calls. Make fewer at a time."
    ]


TABLE = OTHER[OTHER.index("[tool_call]") :]
"""A program below the thought of another one."""


def test_programs_below_one_thought_are_one_call_each() -> None:
    parsed = ATTP.parse(WHOLE + TABLE + TABLE.replace("other()", "third()"))
    assert [call.arguments["code"] for call in parsed.calls] == [
        "x = f()\n__result__ = x\n",
        "x = other()\n__result__ = x\n",
        "x = third()\n__result__ = x\n",
    ]
    assert [(problem.place, problem.message, problem.is_loss) for problem in parsed.problems] == [
        ("line 10", "[tool_call] stands 3 times: each program was run on its own.", False)
    ]


@pytest.mark.parametrize("program", ["f({})", "print(f({}))"])
def test_programs_below_one_thought_need_no_result_and_each_runs_once(program: str) -> None:
    first, second = program.format(1), program.format(2)
    tables = [TABLE.replace("x = other()\n__result__ = x", code) for code in (first, second, first)]
    parsed = ATTP.parse("thought = 't'\n" + "".join(tables))
    assert [call.arguments["code"] for call in parsed.calls] == [f"{first}\n", f"{second}\n"]
    assert [problem.message for problem in parsed.problems] == [
        "[tool_call] stands 3 times: each program was run on its own.",
        "The same program stands in several documents; it runs once.",
    ]
    # A program that its own quotes cut short may hold the second one.
    assert not ATTP.parse("thought = 't'\n" + TABLE.replace("__result__ = x", "y = ") + tables[1]).calls


@pytest.mark.parametrize(
    "rest",
    [
        TABLE + "Request: go on\nReply:\n" + OTHER,
        "Request: go on\n" + TABLE,
        TABLE[: TABLE.rindex("'''")],
        TABLE.replace("success", "fail"),
        TABLE.replace("x = other()", "x = ("),
        TABLE.replace("status", "extra = 1\nstatus"),
    ],
    ids=["goes on", "after prose", "cut off", "a failure", "no Python", "another key"],
)
def test_the_control_any_other_rest_is_left_out(rest: str) -> None:
    parsed = ATTP.parse(WHOLE + rest)
    assert [call.arguments["code"] for call in parsed.calls] == ["x = f()\n__result__ = x\n"]
    assert any(problem.is_loss for problem in parsed.problems)


@pytest.mark.parametrize(
    ("reply", "place", "message"),
    [
        (
            WHOLE[: WHOLE.index("__result__")],
            "line 6",
            (
                "`code` cannot be read to its end. Close it by ''' on a line of its own, write no other ''' in it, and "
                "write nothing after the document. If the reply was cut off, make it shorter."
            ),
        ),
        (
            HEAD + "code = f()\n",
            "line 6",
            "The value of `code` has no quotes. Write it between ''' and '''.",
        ),
        (
            'thought = "t"\n[tool_call]\nstatus = "fail"\nmessage = "no\n',
            "line 4",
            "`message` is never closed. Close it on its own line, and if the reply was cut off, make it shorter.",
        ),
        (
            f"<think>\n{WHOLE}",
            "line 1",
            "<think> is never closed, so the reply is all thinking. Write the TOML document after it.",
        ),
        (
            f"{OTHER}</think>\n{WHOLE}",
            "line 10",
            "</think> stands behind a document: what is before it may be thinking. Write one document after it.",
        ),
        (
            f"```\n{OTHER}```\n{WHOLE}",
            "line 11",
            "Two documents stand in the reply, and it is not clear which is meant. Write one, without a code fence.",
        ),
        (
            HEAD + "so:\ncode = 'f()'\n",
            "line 7",
            "Text stands in the middle of the document. Write nothing but TOML.",
        ),
    ],
)
def test_a_refusal_says_where_and_what_to_write(reply: str, place: str, message: str) -> None:
    parsed = ATTP.parse(reply)
    assert [(problem.place, problem.message, problem.repaired) for problem in parsed.problems] == [
        (place, message, False)
    ]


def test_generated_programs_hold_what_makes_recovery_hard() -> None:
    chance = chance_of("programs")
    programs = [program(chance, triple=True) for _ in range(ROUNDS)]
    together = "".join(programs)
    assert all("'''" in code for code in programs)
    assert all(sign in together for sign in ('"""', "\\", "中文", "\n\n\n", 'f"', "{'", "#", "”", "🙂"))
    assert len(TRIPLES) + len(RESULTS) + len(lines_of(written(chance, fails=False))) == 15
