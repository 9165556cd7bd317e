# pip install toolwire pytest
"""An agent inside a test: a scripted model, recorded tools, a person who is played, and programs without a sandbox."""

from pathlib import Path

import pytest

from toolwire import ApprovalRequest, Decision, Session, ToolRegistry
from toolwire.testing import MemoryStore, Recorder, Replayer, ScriptedRunner, programs_run_by


def fetch_price(book: str) -> int:
    """Asks a service for a price."""
    return {"Emma": 7}[book]


def reply(tool: str, arguments: str) -> str:
    return f'{{"tool_calls": [{{"name": "{tool}", "arguments": {arguments}}}]}}'


def test_a_recorded_call_is_replayed_without_the_service(tmp_path: Path) -> None:
    cassette = tmp_path / "prices.json"
    with Recorder(cassette) as recorder:
        live = ToolRegistry(middleware=[recorder])
        live.register(fetch_price)
        assert Session(live, protocol="json").run_turn(reply("fetch_price", '{"book": "Emma"}')).results[0].data == 7
    replayed = ToolRegistry(middleware=[Replayer(cassette)])
    replayed.register(fetch_price)
    assert Session(replayed, protocol="json").run_turn(reply("fetch_price", '{"book": "Emma"}')).results[0].data == 7


@pytest.mark.parametrize(("verdict", "success"), [("approve", True), ("deny", False)])
def test_a_person_decides(verdict: str, success: bool) -> None:
    asked: list[ApprovalRequest] = []
    session = Session([fetch_price], protocol="json", permissions={"fetch_price": "confirm"}, store=MemoryStore())
    turn = session.run_turn(reply("fetch_price", '{"book": "Emma"}'))
    asked += turn.suspended.pending
    decision = Decision(verdict=verdict, request_id=asked[0].id)
    assert session.run_resume(turn.suspended, [decision]).results[0].success is success


def test_a_program_of_the_model_calls_the_tools() -> None:
    code = "print(fetch_price('Emma'))"
    with programs_run_by(ScriptedRunner({code: [("fetch_price", {"book": "Emma"})]})):
        turn = Session([fetch_price]).run_turn(f"[tool_call]\nstatus = 'success'\ncode = \"{code}\"\n")
    assert turn.results[0].program_value == 7
