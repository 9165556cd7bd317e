"""The page on long results gives the limits of the code."""

from __future__ import annotations

from tests.architecture.source import ROOT
from toolwire.builtin.background_calls import WAIT_LIMIT_S
from toolwire.facade.built_in.background import KEPT_LIMIT, RUNNING_LIMIT
from toolwire.facade.built_in.pages import BYTES_LIMIT, ENTRIES_LIMIT

PAGE = (ROOT / "docs" / "long_results.md").read_text("utf-8")


def test_the_page_gives_the_limits() -> None:
    for said in (
        f"{BYTES_LIMIT // 1024 // 1024} MiB and {ENTRIES_LIMIT} results",
        f"{RUNNING_LIMIT} run at once",
        f"{KEPT_LIMIT} results are kept",
        f"wait up to {WAIT_LIMIT_S} s",
    ):
        assert said in PAGE
