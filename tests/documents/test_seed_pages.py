"""The page of each seed lists the differences that the manifest has, with their reasons."""

from __future__ import annotations

import pytest

from tests.documents.pages import PAGES, text_of
from tests.seeds.manifest import load

SEEDS = {"attp": "000", "tool_spec": "001", "toolkit": "002", "programs": "003", "base_tool": "004"}


def test_each_seed_has_a_page() -> None:
    pages = {page for page in PAGES if page.startswith("docs/seeds/")}
    assert pages == {f"docs/seeds/{name}.md" for name in SEEDS}
    assert sorted(SEEDS.values()) == sorted(load().headings)


@pytest.mark.parametrize("name", SEEDS)
def test_a_page_lists_every_difference_of_its_seed_with_the_reason(name: str) -> None:
    listed = text_of(f"docs/seeds/{name}.md").partition("\n## Differences\n")[2]
    lines = [line for line in listed.splitlines() if line.startswith("- ")]
    assert lines == [
        f"- `{each.id}`{' (not built yet)' if each.status == 'open' else ''}: {each.text} *{each.differs}*"
        for each in load().requirements
        if each.seed == SEEDS[name] and each.differs is not None
    ]
