"""What a page may cost: a hostile one ends in time, and its text is read if that can be."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, until
from tests.web.test_page_reader import hostile_reader
from toolwire.builtin.web import page_reader as module
from toolwire.builtin.web.page_reader import PAGES_LIMIT, TEXT_LIMIT, PageReader
from toolwire.builtin.web.refusals import FetchFailed, PageLimit
from toolwire.vocabulary.machine.work_clock import CALL_DEADLINE

SIZE = 1_000_000
WORDS = "Some honest words of a sentence that goes on for a while, as people write it. "


def page_of(unit: str, start: str = "", end: str = "", size: int = SIZE) -> bytes:
    return f"<html><body>{start}{unit * (size // max(len(unit), 1))}{end}</body></html>".encode()


LINKS = page_of("<a href='/a'>w</a> ", "<article>", "</article>")
ATTRIBUTES = page_of("", f"<p {' '.join(f'a{number}=1' for number in range(SIZE // 9))}>x</p>")


@pytest.fixture(scope="module")
def reader() -> Iterator[PageReader]:
    made = PageReader()
    made.read("html", b"<p>x", url="", charset="")
    yield made
    made.close()


def spent_s(reader: PageReader) -> float:
    """Returns the processor seconds of the children that parsed pages."""
    fields = Path(f"/proc/{reader.process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.threat(49)
def test_a_megabyte_of_hostile_markup_costs_at_most_a_second(reader: PageReader) -> None:
    def cost_s() -> float:
        before = spent_s(reader)
        # A busy machine needs more than the second, and the page is then refused.
        with contextlib.suppress(PageLimit):
            assert reader.read("html", LINKS, url="https://example.org/", charset="").text
        return spent_s(reader) - before

    assert any(cost_s() < 1.1 for _ in range(3))


@pytest.mark.threat(49)
def test_markup_that_no_clock_interrupts_is_ended_by_the_kernel(reader: PageReader) -> None:
    before = spent_s(reader)
    with pytest.raises(PageLimit) as failed:
        reader.read("html", ATTRIBUTES, url="https://example.org/", charset="")
    assert str(failed.value) == (
        "the page takes too long to read: its markup is too complex. Ask for a simpler or shorter page"
    )
    # One second by the ticks of the kernel, which may miss some on a busy machine.
    assert spent_s(reader) - before < 3


LONG = page_of("<i>x</i>", f"<article><p>{WORDS}</p>", "</article>", size=50_000)


def test_a_search_for_an_article_that_takes_too_long_leaves_the_whole_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def text(work_s: float) -> str:
        setting = f"from toolwire.vocabulary.machine import work_clock; work_clock.WORK_S = {work_s}"
        start = "from toolwire.builtin.web.page_process import main; main()"
        monkeypatch.setattr(module, "_MAIN", f"import sys; sys.path[:] = sys.argv[1:]; {setting}; {start}")
        reader = PageReader()
        try:
            return reader.read("html", LONG, url="", charset="").text
        finally:
            reader.close()

    limited, unlimited = text(0.05), text(10)
    # The two parsers write elements beside one another differently.
    assert ("*x*\n\n*x*" in limited, "*x*\n\n*x*" in unlimited) == (False, True)
    assert WORDS.strip() in limited
    assert WORDS.strip() in unlimited


@pytest.mark.threat(49)
def test_a_page_ends_at_the_deadline_of_its_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader = hostile_reader(monkeypatch, tmp_path, "time.sleep(600)")
    assert reader.read("html", b"honest", url="", charset="").text == "honest"
    monkeypatch.setattr(module, "PAGE_TIMEOUT_S", 2.0)

    def seconds() -> float:
        began = time.monotonic()
        with pytest.raises(FetchFailed) as failed:
            reader.read("html", b"attack", url="", charset="")
        assert isinstance(failed.value, PageLimit) == (CALL_DEADLINE.get() is not None)
        return time.monotonic() - began

    deadline = CALL_DEADLINE.set(time.monotonic() + 0.2)
    try:
        limited_s = seconds()
    finally:
        CALL_DEADLINE.reset(deadline)
    assert reader.read("html", b"honest", url="", charset="").text == "honest"
    # The control: without a deadline the same page goes on.
    assert limited_s < 2.0 <= seconds()
    reader.close()


def test_a_page_waits_for_another_until_the_deadline_of_its_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = hostile_reader(monkeypatch, tmp_path, "time.sleep(600)")
    assert reader.read("html", b"honest", url="", charset="").text == "honest"

    def hang() -> None:
        with pytest.raises(FetchFailed):
            reader.read("html", b"attack", url="", charset="")

    thread = threading.Thread(target=hang)
    thread.start()
    until(reader._lock.locked)
    for _ in range(PAGES_LIMIT - 2):
        assert reader._places.acquire(blocking=False)
    deadline = CALL_DEADLINE.set(time.monotonic() + 0.1)
    try:
        with pytest.raises(FetchFailed, match="other pages are still being read") as failed:
            reader.read("html", b"honest", url="", charset="")
    finally:
        CALL_DEADLINE.reset(deadline)
    assert failed.value.may_repeat
    # The last place is free again. Without one a page does not wait.
    assert reader._places.acquire(blocking=False)
    with pytest.raises(FetchFailed, match="other pages are still being read"):
        reader.read("html", b"honest", url="", charset="")
    process_id = reader.process_id
    assert process_id is not None
    os.killpg(process_id, 9)
    thread.join(PATIENCE_S)
    reader.close()


def pdf_of(pages: int, content: bytes, *, padding: int = 0) -> bytes:
    """Returns a PDF whose pages share one content, which is packed."""
    packed = zlib.compress(content)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%b]/Count %d>>" % (b"3 0 R " * pages, pages),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 599 999]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(packed), packed),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"".join(b"%d 0 obj%bendobj\n" % numbered for numbered in enumerate(objects, 1))
    return b"%%PDF-1.4\n%%%b\n%btrailer<</Root 1 0 R>>\n" % (b" " * padding, body)


DRAWING = b"1.5 2.5 m 3.5 4.5 l S " * 4_000 + b"BT /F 9 Tf 9 9 Td (Word) Tj ET"
TEXT = b"BT /F 9 Tf 9 990 Td 9 TL %b ET" % (b"(%b) Tj T* " % WORDS.encode() * 60)


@pytest.mark.threat(49)
def test_a_pdf_costs_a_second_for_each_begun_megabyte(reader: PageReader) -> None:
    before = spent_s(reader)
    with pytest.raises(PageLimit, match="takes too long to read"):
        reader.read("pdf", pdf_of(1_000, DRAWING), url="", charset="")
    assert spent_s(reader) - before < 3
    # The control: the same pages have the time of a longer PDF.
    longer = reader.read("pdf", pdf_of(1_000, DRAWING, padding=9_000_000), url="", charset="")
    assert longer.text.count("Word") == 1_000


def test_a_short_pdf_with_a_long_text_is_read(reader: PageReader) -> None:
    # The longest text that can be read takes twice as long, 0.6 seconds: too near to the limit for a busy machine.
    page = reader.read("pdf", pdf_of(112, TEXT), url="", charset="")
    assert page.is_whole
    assert len(page.text) > TEXT_LIMIT / 2
