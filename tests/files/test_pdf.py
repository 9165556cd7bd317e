"""A PDF in a folder is read as its text, by a process that can reach nothing."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from toolwire import ToolRegistry, ToolResult
from toolwire.builtin.web import page_reader
from toolwire.tools import workspace_tools
from toolwire.vocabulary.errors import SandboxUnavailable

LACKS = "pypdfium2"


def pdf(*pages: str) -> bytes:
    """A PDF with these texts in Helvetica, a line of each below the other."""
    numbers = range(len(pages))
    kids = " ".join(f"{10 + number} 0 R" for number in numbers)
    objects = [
        "1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj",
        f"2 0 obj<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>endobj",
        "3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj",
    ]
    for number, page in zip(numbers, pages, strict=True):
        lines = " ".join(f"({line}) Tj 0 -12 Td" for line in page.split("\n"))
        drawn = f"BT /F 9 Tf 9 900 Td {lines} ET" if page else ""
        resources = "/MediaBox[0 0 999 999]/Resources<</Font<</F 3 0 R>>>>"
        objects += [
            f"{10 + number} 0 obj<</Type/Page/Parent 2 0 R{resources}/Contents {5_000 + number} 0 R>>endobj",
            f"{5_000 + number} 0 obj<</Length {len(drawn)}>>stream\n{drawn}\nendstream endobj",
        ]
    return "\n".join(["%PDF-1.4", *objects, "trailer<</Root 1 0 R>>\n"]).encode()


def called(tmp_path: Path, tool: str, /, **arguments: Any) -> ToolResult:
    registry = ToolRegistry()
    for spec in workspace_tools(tmp_path):
        registry.register(spec)
    return registry.invoke(tool, arguments)


def read(tmp_path: Path, content: bytes, **arguments: Any) -> ToolResult:
    (tmp_path / "plan.pdf").write_bytes(content)
    return called(tmp_path, "read_text_file", path="/workspace/plan.pdf", **arguments)


PLAN = pdf("Plan\nBuy nails", "Build a boat")


def test_a_model_reads_the_text_of_a_pdf_or_some_of_its_lines(tmp_path: Path) -> None:
    assert read(tmp_path, PLAN).data == "Plan\nBuy nails\n\nBuild a boat"
    assert read(tmp_path, PLAN, start_line=2, read_lines=1).data == "Buy nails\n"


def test_several_files_may_have_a_pdf_among_them(tmp_path: Path) -> None:
    (tmp_path / "plan.pdf").write_bytes(PLAN)
    (tmp_path / "notes.txt").write_text("hello")
    paths = ["/workspace/plan.pdf", "/workspace/notes.txt"]
    found = called(tmp_path, "read_multiple_files", paths=paths).data
    assert found == {paths[0]: "Plan\nBuy nails\n\nBuild a boat", paths[1]: "hello"}


UNREADABLE = [
    (b"%PDF-1.4\nno", "the PDF cannot be opened"),
    (pdf(""), "is a PDF without text, perhaps of scanned pages: ask the user for its text"),
]


@pytest.mark.parametrize(("content", "told"), UNREADABLE)
def test_a_damaged_or_scanned_pdf_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    result = read(tmp_path, content)
    assert result.error is not None
    assert told in result.error
    assert "/workspace/plan.pdf" in result.error


def test_a_long_pdf_says_where_its_text_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The parser keeps at most this many characters too, so the limit of the host alone is lowered.
    monkeypatch.setattr(page_reader, "TEXT_LIMIT", 10)
    assert read(tmp_path, PLAN).data == "Plan\nBuy n\n(The text is cut here, after 10 characters.)\n"
    monkeypatch.setattr(page_reader, "TEXT_LIMIT", len("Plan\nBuy nails\n\nBuild a boat") + 1)
    assert read(tmp_path, PLAN).data == "Plan\nBuy nails\n\nBuild a boat"


def test_without_the_extra_the_model_reads_why_and_the_operator_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, LACKS, None)
    with caplog.at_level(logging.WARNING, "toolwire.tools"):
        result = read(tmp_path, PLAN)
    assert result.error == "/workspace/plan.pdf is a PDF, which cannot be read here: ask the user for its text"
    assert caplog.messages == [
        f"A PDF was not read: reading a PDF needs the package '{LACKS}', which is not here: pip install 'toolwire[web]'"
    ]


def test_where_no_process_can_be_confined_no_pdf_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unconfined() -> None:
        raise SandboxUnavailable("this kernel has no seccomp", report={}, how_to_fix="Use another kernel.")

    monkeypatch.setattr(page_reader, "page_reader", unconfined)
    with caplog.at_level(logging.WARNING, "toolwire.tools"):
        result = read(tmp_path, PLAN)
    assert result.error == "/workspace/plan.pdf is a PDF, which cannot be read here: ask the user for its text"
    assert "this kernel has no seccomp" in caplog.text


def test_a_pdf_is_neither_edited_nor_searched(tmp_path: Path) -> None:
    (tmp_path / "plan.pdf").write_bytes(PLAN)
    edits = [{"oldText": "Plan", "newText": "Plot"}]
    result = called(tmp_path, "edit_file", path="/workspace/plan.pdf", edits=edits)
    assert result.error == "/workspace/plan.pdf is a PDF, which cannot be changed here: read it with read_text_file"
    assert called(tmp_path, "search_files", text="Plan").data == {"entries": [], "next_start": None}
    assert (tmp_path / "plan.pdf").read_bytes() == PLAN
