"""The example of docs/langchain.md runs as it is written."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from tests.documents.pages import run_blocks
from tests.frameworks.killed_langchain_agent import PaysOnce
from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import store as store
from tests.journal.conftest import url as url
from toolwire import Store


def test_the_first_call_is_approved_as_the_page_says(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_blocks("docs/langchain.md")
    agent = names["agent_of"](PaysOnce(arguments={"amount": 5, "to": "shop"}), InMemorySaver(), store)
    assert names["first_call"](agent) == "done: paid 5 to shop"
    assert "amount" in capsys.readouterr().out
