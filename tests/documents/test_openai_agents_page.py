"""The example of docs/openai_agents.md runs as it is written."""

from __future__ import annotations

from agents import set_tracing_disabled

from tests.documents.pages import run_blocks
from tests.frameworks.killed_openai_agent import PaysOnce
from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import store as store
from tests.journal.conftest import url as url
from toolwire import Store

set_tracing_disabled(True)


async def test_the_first_call_is_approved_as_the_page_says(store: Store) -> None:
    names = run_blocks("docs/openai_agents.md")
    agent = names["agent_of"](PaysOnce("never", to="shop"), store)
    assert await names["first_call"](agent) == "done"
    [run] = store.runs()
    [paid] = store.calls(run.run_id)
    assert paid.result is not None
    assert paid.result.text == "paid 5 to shop"
