"""A call that cannot run because nobody can be asked is a warning in the log, once a session."""

from __future__ import annotations

import logging

import pytest

from tests.patience import PATIENCE_S
from toolwire import CallContext, Decision, Rule, Session, ToolRegistry, ToolSpec

PAY = "<tool_call><name>pay</name><params><amount>5</amount></params></tool_call>"
WARNING = (
    "the tool 'pay' needs a person's approval, and nobody can be asked, so its call did not run: give approver=, give "
    "the session store= and decide later, or add a rule that lets it run, such as Rule(effect='auto', tool='pay'). "
    "Later calls like this are not logged"
)
QUESTION_WARNING = (
    "the tool 'book' asks a person, and nobody can be asked, so its call was stopped: give approver=, or give the "
    "session store= and decide later. Later calls like this are not logged"
)


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


TOOL = ToolSpec.from_function(pay, permission="confirm")


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "toolwire.permission")
    return caplog


def warnings(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.name == "toolwire.permission"]


def test_a_session_warns_at_the_first_call_alone(log: pytest.LogCaptureFixture) -> None:
    session = Session([TOOL], protocol="xml")
    for _ in range(3):
        (result,) = session.run_turn(PAY + PAY, deadline_s=PATIENCE_S).results[:1]
        assert result.failure is not None
        assert result.failure.kind == "approval_required"
    assert warnings(log) == [WARNING]
    Session([TOOL], protocol="xml").run_turn(PAY)
    assert warnings(log) == [WARNING, WARNING]


def test_sessions_of_one_registry_warn_each(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    registry.register(TOOL)
    for _ in range(2):
        Session(registry, protocol="xml").run_turn(PAY)
    registry.invoke("pay", {"amount": 5})
    registry.invoke("pay", {"amount": 5})
    assert warnings(log) == [WARNING] * 3


def test_programs_and_models_share_the_warning(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    registry.register(TOOL)
    registry.run_program("for _ in range(3):\n    try:\n        pay(amount=5)\n    except Exception:\n        pass")
    registry.invoke("pay", {"amount": 5})
    assert warnings(log) == [WARNING]


def test_each_cure_ends_the_warning(log: pytest.LogCaptureFixture, tmp_path: object) -> None:
    approved = Session([TOOL], protocol="xml", approver=lambda request: Decision(verdict="approve")).run_turn(PAY)
    assert approved.results[0].success
    assert Session([TOOL], protocol="xml", policy=[Rule(effect="auto", tool="pay")]).run_turn(PAY).results[0].success
    assert Session([TOOL], protocol="xml", store=f"sqlite:///{tmp_path}/runs.db").run_turn(PAY).suspended is not None
    assert warnings(log) == []


async def test_a_question_that_nobody_answers_names_its_cures(log: pytest.LogCaptureFixture) -> None:
    async def book(context: CallContext) -> str:
        """Books a table."""
        return str(await context.ask("For how many?", {"type": "integer"}))

    registry = ToolRegistry()
    registry.register(book)
    result = await registry.ainvoke("book")
    assert result.failure is not None
    assert (result.failure.kind, warnings(log)) == (
        "approval_required",
        [QUESTION_WARNING],
    )


def test_an_approver_that_gives_no_answer_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry(approver=lambda _: None)

    @registry.register(permission="confirm")
    def pay() -> None:
        """Pays."""

    for _ in range(2):
        assert not registry.invoke("pay").success
    (record,) = [one for one in caplog.records if one.name == "toolwire.permission"]
    assert "'pay' needs a person, and the approver gave no answer" in record.getMessage()
