"""Every Python block of every page runs, prints what its comments say, and is found from the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolwire.seeds
import toolwire.tools
import toolwire.types
from tests.architecture.source import ROOT
from tests.documents.pages import PAGES, blocks_of, run_blocks, said_by, text_of
from toolwire import Toolkit, ToolRegistry
from toolwire.facade import old_names

OWN = {
    "README.md": "test_readme.py",
    "docs/approvals.md": "test_approvals_page.py",
    "docs/fleet.md": "test_fleet_page.py",
    "docs/fleet_engines.md": "test_fleet_page.py",
    "docs/fleet_running.md": "test_fleet_page.py",
    "docs/openai_agents.md": "test_openai_agents_page.py",
    "docs/langchain.md": "test_langchain_page.py",
    "docs/pydantic_ai.md": "test_pydantic_ai_page.py",
    "docs/limitations/sandbox.md": "test_sandbox_page.py",
    "docs/observers.md": "test_observers_page.py",
    "docs/permissions.md": "test_permissions_page.py",
    "docs/protocols.md": "test_protocols_page.py",
    "docs/toolkits.md": "test_toolkits_page.py",
    "docs/tools.md": "test_tools_page.py",
    "docs/tracing.md": "test_tracing_page.py",
}
"""Pages whose blocks another test runs: it checks values that are not printed, or needs a stand-in for a provider."""
PLAIN = [page for page in PAGES if page not in OWN and blocks_of(page)]


@pytest.mark.parametrize("page", PLAIN)
def test_a_page_prints_what_its_comments_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLWIRE_KEY", "00" * 32)
    run_blocks(page)
    assert capsys.readouterr().out == said_by(page)


@pytest.mark.parametrize("page", PLAIN)
def test_a_page_shows_some_output(page: str) -> None:
    assert said_by(page) != ""


def test_another_test_reads_each_page_with_a_test_of_its_own() -> None:
    folder = Path(__file__).parent
    assert [page for page, test in OWN.items() if page.removeprefix("docs/") not in (folder / test).read_text()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    text = text_of(page)
    paths = re.findall(r"`((?:tests|src|docs|examples)/[\w./-]+)`", text)
    links = [Path(page).parent / link for link in re.findall(r"\]\(([\w./-]+\.md)\)", text)]
    assert [path for path in (*paths, *links) if not (ROOT / path).exists()] == []


def test_each_public_name_of_the_root_the_box_and_a_registry_is_on_a_page() -> None:
    text = "\n".join(text_of(page) for page in PAGES)
    names = [*toolwire.__all__, *toolwire.tools.__all__, *toolwire.seeds.__all__, *toolwire.types.__all__]
    for kind in (ToolRegistry, Toolkit):
        old = {name for base in kind.__mro__ if base.__module__ == old_names.__name__ for name in vars(base)}
        names += [name for name in dir(kind) if not name.startswith("_") and name not in {"draw", *old}]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_the_index_leads_to_every_page_and_to_sections_that_exist() -> None:
    folder = ROOT / "docs"
    rows = re.findall(r'\]\(([\w./-]+\.md)\)(?:, "(.+?)")? \|$', text_of("docs/README.md"), re.MULTILINE)
    found = {(folder / page).resolve() for page, _ in rows}
    # The pages of single tools have an index of their own.
    links = re.findall(r"\]\((\w+\.md)\)", text_of("docs/built_in/README.md"))
    found |= {(folder / "built_in" / link).resolve() for link in links}
    assert {ROOT / page for page in PAGES if page != "docs/README.md"} - found == set()
    missing = [
        (page, section)
        for page, section in rows
        if section and f"\n## {section}\n" not in (folder / page).read_text("utf-8")
    ]
    assert missing == []
