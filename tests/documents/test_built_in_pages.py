"""Every tool in the box has a page, and each page is the one that its definition makes."""

from __future__ import annotations

import pytest

from tests.documents.built_in_pages import FOLDER, pages
from toolwire.tools import built_in_tools


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


def test_each_tool_in_the_box_has_a_page(made: dict[str, str]) -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(made)
    assert set(made) == {"README.md", *(f"{spec.name}.md" for spec in built_in_tools())}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_a_page_is_the_one_of_its_definition(name: str, made: dict[str, str]) -> None:
    """If it fails: make tool-pages."""
    assert (FOLDER / name).read_text("utf-8") == made.get(name)


def test_a_page_has_the_facts_of_the_definition(made: dict[str, str]) -> None:
    for spec in built_in_tools():
        page = made[f"{spec.name}.md"]
        for name in spec.input_schema["properties"]:
            assert f"| `{name}` |" in page
        assert f"| permission | `{spec.permission}` |" in page
        assert ("## Example\n" in page, "## Errors\n" in page, "## Limits\n" in page) == (True, True, True)
