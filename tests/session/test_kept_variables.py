"""`Session(variables="keep")`: variables of a program are there in the next one of its conversation and caller."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import pytest
from sqlalchemy import text

from tests.forks import forked
from tests.journal.conftest import opened as opened
from tests.journal.conftest import url as url
from tests.patience import PATIENCE_S
from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, calls, program
from toolwire import Agent, CallContext, Caller, ConfigurationError, Session, Store, ToolSpec, Turn
from toolwire.facade.built_in.kept_variables import CALLERS_LIMIT, KeptVariables
from toolwire.journal.ledger import forms
from toolwire.permission.approval import DecisionRefused
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore, ScriptedModel
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.variables import VARIABLES_LIMIT_BYTES, VariablesChange

ANN = Caller(principal="ann", agent="clerk", tenant="acme")
SHOW = "print(globals().get('x'))"


def keeping(store: RunStore | None, caller: Caller = ANN, conversation: str = "c-1", **options: Any) -> Session:
    """A session as a process that has just started would make it."""
    given: dict[str, Any] = {"protocol": "attp", "variables": "keep"} | options
    return Till().session(store, caller=caller, conversation=conversation, **given)


def ran(session: Session, code: str, **options: Any) -> str:
    """The text of one turn with this program."""
    return session.run_turn(program(code), **options).text.strip()


@pytest.fixture
def kept(opened: Callable[[], Store]) -> Store:
    """A real store."""
    return opened()


# -- from program to program -------------------------------------------------------------------------------------------


def test_the_next_program_has_the_variables_in_this_session_and_in_another_process(store: RunStore) -> None:
    first = keeping(store)
    assert ran(first, "x = [1]\ndef twice(n):\n    return 2 * n + price('tea')\nprint(x)") == "[1]"
    assert ran(first, "x.append(twice(2))\nprint(x)") == "[1, 7]"
    assert ran(keeping(store), "print(x, twice(1))\ndel x") == "[1, 7] 5"
    assert ran(keeping(store), SHOW) == "None"


def test_without_a_store_they_are_there_in_the_same_session() -> None:
    session = keeping(None)
    ran(session, "x = 1")
    assert ran(session, "x += 1\nprint(x)") == "2"
    assert ran(session, "x = 5\n1 / 0").startswith("Traceback")
    assert ran(session, SHOW) == "5"


def test_each_program_starts_empty_unless_the_host_asks(store: RunStore) -> None:
    session, plain = keeping(store, variables=None), keeping(store)
    ran(plain, "x = 1")
    assert ran(session, SHOW) == "None"
    assert session.system_prompt == Till().session(None, protocol="attp").system_prompt
    line = "Plain variables and functions of your earlier programs are still there."
    told = plain.system_prompt.split("\n")
    assert [one for one in told if one != line] == session.system_prompt.split("\n")
    assert told.count(line) == 1
    native = keeping(store, protocol="openai", programs=True).request_tools
    assert [line in tool["function"]["description"] for tool in native] == [False, False, True]
    assert "之前程序里的普通变量和函数仍然可用。" in keeping(None, language="zh").system_prompt


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "Plain variables and functions of your earlier programs are still there."),
        ("zh", "之前程序里的普通变量和函数仍然可用。"),
    ],
)
def test_json_says_it_where_it_explains_programs(language: str, line: str) -> None:
    options: dict[str, Any] = {"protocol": "json", "programs": True, "language": language}
    plain = keeping(None, **options, variables=None).system_prompt
    before, after = keeping(None, **options).system_prompt.split(f"{line}\n")
    assert before + after == plain
    assert "```python" in before


def test_a_variable_that_the_model_deleted_is_not_there_any_more() -> None:
    session = keeping(None)
    ran(session, "x = 1")
    ran(session, "del x")
    told = ran_message(session, "print(x)")
    assert told.startswith("`x` was set by an earlier program, and is not there any more: set it in this program.\n")


def test_what_is_left_out_is_named_in_the_result() -> None:
    assert ran(keeping(None), "import math as m\nx = 1\nprint(x)") == (
        "1\n[Not kept for the next program: m (module).]"
    )
    chinese = keeping(None, language="zh")
    assert ran(chinese, "import math as m\nprint(1)") == "1\n[没有为下一个程序保留：m (module)。]"
    assert ran(chinese, "t = datetime.time(1, fold=1)\nprint(1)") == "1\n[没有为下一个程序保留：t (time 的 fold=1)。]"
    missing = ran_message(chinese, "print(m)")
    assert missing.startswith("`m` was set by an earlier program, and is not there any more: set it in this program.\n")


def ran_message(session: Session, code: str) -> str:
    return session.run_turn(program(code)).messages[0]["content"]


def test_programs_of_one_reply_run_in_order_and_share_variables(store: RunStore) -> None:
    session = keeping(store, protocol="openai", programs=True)
    codes = ["x = [price('tea')]", "x.append(price('bread'))", "print(x)"]
    turn = session.run_turn(calls(*(("code_execution", {"code": code}) for code in codes)))
    assert turn.results[2].text == "[3, 5]\n"


def test_the_option_is_refused_where_no_program_runs() -> None:
    with pytest.raises(ConfigurationError, match="variables='keep': this session runs no programs"):
        keeping(None, protocol="json")
    with pytest.raises(ConfigurationError, match="programs=False: variables is for programs"):
        keeping(None, protocol="json", programs=False)
    with pytest.raises(ConfigurationError, match="variables='all': write 'keep', or leave it out"):
        keeping(None, variables="all")


async def test_an_agent_has_them_in_the_next_prompt_of_its_conversation(kept: Store) -> None:
    for store in (None, kept):
        model = ScriptedModel([program("x = 3"), "Done.", program(SHOW), "Three."], protocol="attp")
        agent = Agent("clerk", model, [Till().price], variables="keep", store=store, caller=ANN)
        for prompt in ("Set it.", "Show it."):
            await agent.run(prompt, conversation="c-1")
        assert model.requests[3].messages[-1]["content"].startswith("3\n")


# -- whose they are ----------------------------------------------------------------------------------------------------

OTHERS = [
    (replace(ANN, agent="other"), "c-1"),
    (replace(ANN, principal="eve"), "c-2"),
    (replace(ANN, tenant="other"), "c-2"),
    (ANN, "c-2"),
]


@pytest.mark.threat(25)
@pytest.mark.parametrize(("caller", "conversation"), OTHERS, ids=["agent", "principal", "tenant", "conversation"])
def test_nobody_else_reads_them(store: RunStore, caller: Caller, conversation: str) -> None:
    ran(keeping(store), "x = 'secret'")
    assert ran(keeping(store, caller, conversation), SHOW) == "None"
    # A session that was made for one caller may have turns of others.
    if conversation == "c-1":
        assert ran(keeping(store), SHOW, caller=caller) == "None"
    # The control: its own next session does.
    assert ran(keeping(store), SHOW) == "secret"


@pytest.mark.threat(25)
def test_without_a_principal_they_stay_in_the_session_object(store: RunStore) -> None:
    for caller in (Caller(), Caller(agent="clerk", tenant="acme")):
        session = keeping(store, caller, caller.agent or "c-1")
        ran(session, "x = 'secret'")
        assert ran(keeping(store, caller, caller.agent or "c-1"), SHOW) == "None"
        assert ran(session, SHOW) == "secret"


@pytest.mark.threat(25)
def test_the_labels_of_what_a_program_has_read_stay_on_the_conversation(store: RunStore) -> None:
    sent: list[str] = []
    labelled: tuple[tuple[list[Label], bool], ...] = ((["private", "untrusted"], False), ([], True))
    for labels, is_sent in labelled:
        sent.clear()

        def mail() -> str:
            """Reads mail."""
            return "hello"

        def send(text: str) -> None:
            """Sends."""
            sent.append(text)

        tools = [
            ToolSpec.from_function(mail, effects=["read"], labels=labels),
            ToolSpec.from_function(send, effects=["send"]),
        ]
        options: dict[str, Any] = {"store": store, "caller": ANN, "conversation": f"c-{is_sent}", "variables": "keep"}
        ran(Session(tools, **options), "x = mail()")
        turn = Session(tools, **options).run_turn(program("send(x)"))
        assert (sent, turn.suspended is None) == (["hello"] if is_sent else [], is_sent)


def test_they_go_when_the_run_that_set_them_is_forgotten(kept: Store) -> None:
    ran(keeping(kept), "x = 1\ny = 1")
    between = kept.clock() + 0.2
    while kept.clock() < between + 0.2:
        time.sleep(0.05)
    ran(keeping(kept), "y = 2")
    assert ran(keeping(kept), "print(x, y)") == "1 2"
    assert kept.forget(before=between) == 1
    assert ran(keeping(kept), "print(globals().get('x'), y)") == "None 2"


def test_a_toolwire_that_does_not_know_them_forgets_them_too(kept: Store) -> None:
    ran(keeping(kept), "x = 1")

    def older(connection: Any) -> None:
        for table in ("notes", "steps", "runs"):
            connection.execute(text(f"DELETE FROM {table}"))

    kept._database.run(older).result(PATIENCE_S)
    assert ran(keeping(kept), SHOW) == "None"


def test_a_toolwire_that_does_not_know_them_refuses_to_continue_the_run(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(keeping(kept), "x = 1")
    turn = keeping(kept).run_turn(program("pay(x)"))
    assert turn.suspended is not None
    monkeypatch.setattr(forms, "FORM", forms.GIVEN - 1)
    with pytest.raises(DecisionRefused) as refused:
        keeping(kept).run_resume(turn.suspended.run_id)
    assert refused.value.code == "schema_too_new"
    monkeypatch.undo()
    assert keeping(kept).run_resume(turn.suspended.run_id, decided(waiting(turn), "approve")).suspended is None


@pytest.mark.threat(19)
def test_they_are_sealed_and_bound_to_their_conversation_and_run(kept: Store) -> None:
    ran(keeping(kept), "x = 'secret'")
    ran(keeping(kept, conversation="c-2"), "x = 'other'")

    def exchange(connection: Any) -> list[bytes]:
        rows = connection.execute(text("SELECT run_id, data FROM variables ORDER BY run_id")).all()
        for row, other in zip(rows, reversed(rows), strict=True):
            change = text("UPDATE variables SET data = :data WHERE run_id = :run_id")
            connection.execute(change, {"data": other.data, "run_id": row.run_id})
        return [bytes(row.data) for row in rows]

    data = kept._database.run(exchange).result(PATIENCE_S)
    assert not any(b"secret" in one for one in data)
    with pytest.raises(DecisionRefused) as refused:
        keeping(kept).run_turn(program(SHOW))
    assert refused.value.code == "bad_mac"


# -- suspended, killed, resumed ----------------------------------------------------------------------------------------


def approved(session: Session, turn: Turn) -> Turn:
    assert turn.suspended is not None
    return session.run_resume(turn.suspended.run_id, decided(waiting(turn), "approve"))


def test_a_resumed_turn_has_the_variables_of_its_start_and_changes_only_its_own(store: RunStore) -> None:
    ran(keeping(store), "x = 'old'\ny = 1")
    turn = keeping(store).run_turn(program("print(x)\npay(1)\nprint(x)\ny = 2"))
    ran(keeping(store), "x = 'new'\nz = 3")
    assert approved(keeping(store), turn).text == "old\nold\n"
    assert ran(keeping(store), "print(x, y, z)") == "new 2 3"


def test_a_program_that_begins_only_after_a_decision_has_the_variables_of_the_start_of_its_turn(
    store: RunStore,
) -> None:
    options: dict[str, Any] = {"permissions": {"code_execution": "confirm"}}
    ran(keeping(store), "x = 'old'")
    turn = keeping(store, **options).run_turn(program(SHOW))
    ran(keeping(store), "x = 'new'")
    assert approved(keeping(store, **options), turn).text == "old\n"


def test_a_later_program_of_a_suspended_reply_keeps_what_it_started_with(store: RunStore) -> None:
    session = keeping(store, protocol="openai", programs=True)
    codes = ["x = price('tea')", "pay(x)\ny = 1", "print(x, globals().get('y'))\npay(2)\nprint('end')"]
    turn = session.run_turn(calls(*(("code_execution", {"code": code}) for code in codes)))
    done = turn
    while done.suspended is not None:
        done = approved(keeping(store, protocol="openai", programs=True), done)
    assert [result.text for result in done.results][2] == "3 None\nend\n"
    assert ran(keeping(store), "print(x, y)") == "3 1"


def test_a_resumed_run_that_kept_none_keeps_none(store: RunStore) -> None:
    ran(keeping(store), "x = 1")
    turn = keeping(store, variables=None).run_turn(program(f"{SHOW}\npay(1)\n{SHOW}\nx = 2"))
    assert approved(keeping(store), turn).text == "None\nNone\n"
    assert ran(keeping(store), SHOW) == "1"
    # And the other way round: its record decides, and not the session that resumes it.
    turn = keeping(store).run_turn(program(f"{SHOW}\npay(1)\n{SHOW}\nx = 2"))
    assert approved(keeping(store, variables=None), turn).text == "1\n1\n"
    assert ran(keeping(store), SHOW) == "2"


def work(url: str, pipe: Connection) -> None:
    """A process that dies in the call of its second program."""

    def price(thing: str) -> int:
        """The price of a thing."""
        pipe.send("in the call")
        pipe.poll(PATIENCE_S)
        return len(thing)

    with Store.open(url) as store:
        session = Session([price], store=store, conversation="c-1", caller=ANN, variables="keep")
        session.run_turn(program("x = 'old'"))
        session.run_turn(program("x += '!'\nx += str(price('tea'))\nprint(x)"))


def test_a_killed_turn_goes_on_in_another_process_with_what_it_had(url: str, opened: Callable[[], Store]) -> None:
    here, there = multiprocessing.Pipe()
    process = forked(work, url, there)
    there.close()
    assert here.poll(PATIENCE_S)
    assert here.recv() == "in the call"
    process.kill()
    process.join()
    store = opened()
    assert ran(keeping(store), "y = x\nx = 'new'\nprint(y)") == "old"
    (lost,) = store.runs(conversation="c-1", status="running")
    # Its call is in doubt, and a person lets it run again.
    assert approved(keeping(store), keeping(store).run_resume(lost.run_id)).text == "old!3\n"
    assert ran(keeping(store), "print(x, y)") == "old!3 old"


# -- below a running tool ----------------------------------------------------------------------------------------------


def test_programs_below_a_tool_share_none_with_the_turn_above_it() -> None:
    below = Session([Till().price], protocol="attp", variables="keep", caller=Caller(agent="helper"))

    async def ask(code: str, context: CallContext) -> str:
        """Asks the helper."""
        return (await below.turn(program(code), below=context)).text

    above = Session([ask], protocol="attp", variables="keep")
    assert ran(above, f"x = 'lead'\nprint(ask({SHOW!r}))\nprint(ask('x = 1'))") != ""
    assert ran(above, f"print(x, ask({SHOW!r}))") == "lead 1"
    # Another principal's turn above does not read what the helper had set for the first.
    assert ran(Session([ask], variables="keep"), f"print(ask({SHOW!r}))", caller=Caller(principal="eve")) == "None"


# -- limits in memory --------------------------------------------------------------------------------------------------


def test_a_session_object_keeps_the_variables_of_so_many_callers_and_bytes(caplog: pytest.LogCaptureFixture) -> None:
    kept = KeptVariables("en", is_on=True)
    for number in range(CALLERS_LIMIT + 1):
        kept.keep(Caller(agent=str(number)), VariablesChange(set={"a": "1"}))
    assert [kept.of(Caller(agent=str(number))) for number in (0, 1)] == [{}, {"a": "1"}]
    half = "x" * (VARIABLES_LIMIT_BYTES // 2 - 1)
    for name in "ab":
        kept.keep(ANN, VariablesChange(set={name: half}))
    assert [*(kept.of(ANN) or ())] == ["a", "b"]
    # Turns that end side by side may leave more than one program can.
    kept.keep(ANN, VariablesChange(set={"c": "1"}))
    assert [*(kept.of(ANN) or ())] == ["b", "c"]
    assert caplog.messages == ["more than 1048576 bytes of variables in one conversation: dropped ['a']"]


def test_a_store_keeps_so_many_bytes(kept: Store) -> None:
    half = VARIABLES_LIMIT_BYTES // 2 - 100
    turn = keeping(kept).run_turn(program(f"a = 'x' * {half}\npay(1)"))
    ran(keeping(kept), f"b = 'x' * {half}\nc = 'x' * 200")
    ran(keeping(kept), "d = 1")
    assert ran(keeping(kept), "print(len(b), d)") == f"{half} 1"
    approved(keeping(kept), turn)
    names = "print([name for name in 'abcd' if name in globals()])"
    assert ran(keeping(kept), names) == "['a', 'c', 'd']"


async def test_turns_side_by_side_keep_what_each_of_them_changed(store: RunStore) -> None:
    sessions = [keeping(store) for _ in range(3)]
    await asyncio.gather(*(each.turn(program(f"x{place} = {place}")) for place, each in enumerate(sessions)))
    turn = await keeping(store).turn(program("print(x0, x1, x2)"))
    assert turn.text == "0 1 2\n"


def test_a_store_in_memory_is_as_the_others() -> None:
    store = MemoryStore()
    ran(keeping(store), "x = 1")
    assert ran(keeping(store), SHOW) == "1"
