"""Calls that need a person: the client's person fills in a form, in both eras and over each transport."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from mcp import Client
from tests.gateway.conftest import OVER_STDIO_TOO, Connect, Era, Transport
from tests.gateway.served_tools import new_registry
from toolwire import Decision, Policy, Store, ToolServer
from toolwire.approvals import Decider

FAILURE = "toolwire/failure"
Said = types.ElicitResult


class Person:
    """Fills in forms, and keeps them."""

    def __init__(self, *said: Said) -> None:
        self._said, self.forms = list(said), list[types.ElicitRequestFormParams]()

    async def __call__(self, context: Any, params: Any) -> Said:
        self.forms.append(params)
        return self._said.pop(0)


def chose(decision: str) -> Said:
    return Said(action="accept", content={"decision": decision})


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record"


def effects(record: Path) -> list[str]:
    return record.read_text("utf-8").splitlines() if record.exists() else []


def told(result: Any) -> tuple[str, str]:
    kind = ((result.meta or {}).get(FAILURE) or {"kind": "success"})["kind"]
    return kind, result.content[0].text.partition("\n")[0]


@OVER_STDIO_TOO
async def test_the_form_shows_the_whole_call_and_offers_three_choices(connect: Connect, record: Path) -> None:
    person = Person(chose("once"))
    async with connect(elicitation_callback=person) as client:
        result = await client.call_tool("pay", {"amount": 5, "record": str(record)})
    assert told(result) == ("success", "paid 5")
    assert effects(record) == ["5"]
    (form,) = person.forms
    assert form.requested_schema["properties"]["decision"]["enum"] == [
        "once",
        "all calls of this tool in this run",
        "no",
    ]
    lines = form.message.splitlines()
    assert (lines[0].split(), [line.split() for line in lines if "amount" in line]) == (
        ["tool", "pay"],
        [['"amount":', "5"]],
    )


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (chose("no"), ("denied", "'pay' may not be run: the person said no.")),
        (Said(action="decline"), ("denied", "'pay' may not be run: the person declined.")),
        (chose("all calls of this tool in this run"), ("success", "paid 5")),
    ],
    ids=["no", "decline", "all"],
)
async def test_each_choice_counts(connect: Connect, record: Path, said: Said, outcome: tuple[str, str]) -> None:
    async with connect(elicitation_callback=Person(said)) as client:
        result = await client.call_tool("pay", {"amount": 5, "record": str(record)})
    assert told(result) == outcome
    assert effects(record) == (["5"] if outcome[0] == "success" else [])


async def test_a_closed_form_leaves_the_request_and_the_same_call_asks_once_more(
    connect: Connect, record: Path, transport: Transport, era: Era
) -> None:
    person = Person(Said(action="cancel"), chose("once"))
    arguments = {"amount": 5, "record": str(record)}
    async with connect(elicitation_callback=person) as client:
        first = await client.call_tool("pay", arguments)
        assert (told(first)[0], effects(record)) == ("approval_required", [])
        second = await client.call_tool("pay", arguments)
    assert (told(second), effects(record)) == (("success", "paid 5"), ["5"])
    # Without a session or a token, nothing tells whose call it is.
    is_known = (transport, era) != ("http", "auto")
    assert (person.forms[0].message == person.forms[1].message) == is_known


@OVER_STDIO_TOO
async def test_a_tool_asks_its_questions_and_acts_once(connect: Connect, record: Path) -> None:
    person = Person(Said(action="accept", content={"answer": 4}), Said(action="accept", content={"answer": "Ada"}))
    async with connect(elicitation_callback=person) as client:
        result = await client.call_tool("book", {"day": "Monday", "record": str(record)})
    assert told(result) == ("success", "a table for 4, for Ada")
    assert effects(record) == ["4 Ada"]
    fields = [form.requested_schema["properties"]["answer"] for form in person.forms]
    assert fields == [{"type": "integer", "minimum": 1, "maximum": 12}, {"type": "string"}]


async def test_an_answer_that_does_not_fit_is_asked_for_once_more(connect: Connect, record: Path) -> None:
    said = [{"answer": 99}, {"answer": 4}, {"answer": "Ada"}]
    person = Person(*(Said(action="accept", content=content) for content in said))  # type: ignore[arg-type]
    async with connect(elicitation_callback=person) as client:
        result = await client.call_tool("book", {"day": "Monday", "record": str(record)})
    assert (told(result), effects(record)) == (("success", "a table for 4, for Ada"), ["4 Ada"])


@OVER_STDIO_TOO
async def test_a_client_without_forms_gets_the_id_of_the_request_and_calls_once_more(
    connect: Connect, record: Path, store_file: Path, transport: Transport, era: Era
) -> None:
    arguments = {"amount": 5, "record": str(record)}
    async with connect() as client:
        first = await client.call_tool("pay", arguments)
        if (transport, era) == ("http", "auto"):
            # Nothing tells such a client from others, so there is no id.
            assert (told(first)[0], (first.meta or {})[FAILURE].get("requestId")) == ("approval_required", None)
            assert "this client needs a token" in first.content[0].text
            return
        request_id = (first.meta or {})[FAILURE]["requestId"]
        assert told(first) == (
            "approval_required",
            f"'pay' was not run: a person has to decide on request {request_id}.",
        )
        # The same call waits on, under the same request.
        assert (await client.call_tool("pay", arguments)).meta == first.meta
        with Store.open(f"sqlite:///{store_file}") as store:
            store.decide(request_id, Decision(verdict="approve"))
        assert told(await client.call_tool("pay", arguments)) == ("success", "paid 5")
        # A later call is another one, and is asked about anew.
        assert told(await client.call_tool("pay", arguments))[0] == "approval_required"
    assert effects(record) == ["5"]


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_person_who_may_not_approve_is_asked_once_and_another_decides(
    record: Path, tmp_path: Path, era: Any
) -> None:
    registry = new_registry()
    registry.configure(rules=Policy(approvers={"*": ["boss"]}))
    url = f"sqlite:///{tmp_path}/runs.db"
    person = Person(chose("once"), chose("once"))
    arguments = {"amount": 5, "record": str(record)}
    server = ToolServer(registry, "tests", store=url).in_memory()
    async with Client(server, mode=era, elicitation_callback=person) as client:
        refused = await client.call_tool("pay", arguments)
        assert (told(refused)[0], len(person.forms), effects(record)) == ("approval_required", 1, [])
        with Store.open(url) as store:
            by = Decider(principal="boss", channel="cli")
            store.decide((refused.meta or {})[FAILURE]["requestId"], Decision(verdict="approve", by=by))
        assert told(await client.call_tool("pay", arguments)) == ("success", "paid 5")
    assert effects(record) == ["5"]
