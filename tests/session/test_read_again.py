"""A run that is resumed elsewhere remembers its reading: a restart opens no way out for private data."""

from __future__ import annotations

from typing import Any

import pytest

from tests.session.till import calls, program
from toolwire import Session, ToolRegistry, ToolSpec
from toolwire.session.runs.resume import RunStore

READS = "print(mail())\nprint(pay(5))"
SENDS = calls(("send", {"text": "hello"}))


class House:
    """A registry with mail, a payment that waits for a person, and a way out."""

    def __init__(self, labels: list[Any]) -> None:
        self.sent: list[str] = []
        self.registry = ToolRegistry()
        self.registry.register(ToolSpec.from_function(self.mail, labels=labels))
        self.registry.register(ToolSpec.from_function(self.pay, permission="confirm"))
        self.registry.register(ToolSpec.from_function(self.send, effects=["send"]))

    def mail(self) -> str:
        """Reads the mail."""
        return "hello"

    def pay(self, amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    def send(self, text: str) -> None:
        """Sends."""
        self.sent.append(text)

    def session(self, store: RunStore, protocol: str = "attp") -> Session:
        """A session as a process that has just started would make it."""
        return Session(self.registry, protocol=protocol, store=store)

    async def resumed(self, store: RunStore, reply: Any, protocol: str = "attp") -> tuple[Session, str]:
        """The session that went on with a turn in which everything that waited was approved."""
        turn = await self.session(store, protocol).turn(reply)
        assert turn.suspended is not None
        session = self.session(store, protocol)
        decisions = [{"request_id": request.id, "verdict": "approve"} for request in turn.suspended.pending]
        await session.resume(turn.suspended.run_id, decisions)
        return session, turn.suspended.run_id


BOTH, NEITHER = ["private", "untrusted"], []
LABELS = pytest.mark.parametrize(("labels", "sent"), [(BOTH, []), (NEITHER, ["hello"])], ids=["both", "neither"])
"""Only the run that has read both private data and untrusted text is stopped."""


@LABELS
@pytest.mark.threat(25)
async def test_a_program_that_goes_on_elsewhere_has_read_what_it_read(
    store: RunStore, labels: list[Any], sent: list[str]
) -> None:
    house = House(labels)
    await house.resumed(store, program(f"{READS}\nsend('hello')"))
    assert house.sent == sent


@LABELS
@pytest.mark.threat(25)
@pytest.mark.parametrize(
    ("reply", "protocol"),
    [(program(READS), "attp"), (calls(("mail", {}), ("pay", {"amount": 5})), "openai")],
    ids=["program", "calls"],
)
async def test_a_session_that_is_told_a_finished_run_again_has_read_it(
    store: RunStore, reply: Any, protocol: str, labels: list[Any], sent: list[str]
) -> None:
    house = House(labels)
    _, run_id = await house.resumed(store, reply, protocol)
    later = house.session(store, "openai")
    await later.resume(run_id)
    await later.turn(SENDS)
    assert house.sent == sent
