"""The example of docs/pydantic_ai.md runs as it is written."""

from __future__ import annotations

import pytest
from pydantic_ai.models.test import TestModel

from tests.documents.pages import run_blocks
from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import store as store
from tests.journal.conftest import url as url
from toolwire import Store


async def test_the_first_call_is_approved_as_the_page_says(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_blocks("docs/pydantic_ai.md")
    said = await names["first_call"](names["agent_of"](TestModel(), store))
    assert said.startswith('{"pay":"paid ')
    assert "amount" in capsys.readouterr().out
