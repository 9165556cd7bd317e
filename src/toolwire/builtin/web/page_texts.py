"""HTML and PDF as text. The parsers are C code on hostile bytes, so only the confined process calls them."""

from __future__ import annotations

from typing import Any

import html_to_markdown
import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
import trafilatura
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from toolwire.builtin.web.page_reader import TEXT_LIMIT
from toolwire.vocabulary.machine.work_clock import WorkClock

NEVER_SHOWN = (
    "template, script, style, noscript, noembed, noframes, iframe, canvas, audio, video, svg, datalist, "
    "dialog:not([open]), [popover]:not(dialog[open]), [hidden]:not([hidden='until-found' i])"
)
"""Elements whose text no browser shows by itself, as a selector. A script or a style of the page can show some."""
SAMPLE_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n"
    b"4 0 obj<</Length 32>>stream\nBT /F 9 Tf 9 9 Td (Sample) Tj ET\nendstream endobj\n"
    b"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\ntrailer<</Root 1 0 R>>\n"
)
"""A page with one word, for the warm-up."""
SAMPLE_HTML = (
    b"<html><head><title>Sample</title><meta charset='latin-1'></head><body><nav><a href='/a'>menu</a></nav><article>"
    b"<h1>Sample</h1><p>%b <a href='/b'>a link</a></p><table><tr><td>1</td><td>2</td></tr></table><ul><li>one</li></ul>"
    b"</article></body></html>" % (b"A sentence that is long enough to count as text of an article. " * 9)
)
"""A page with the usual parts, for the warm-up: the parsers load tables from files at their first page."""


SAMPLE_LIST = b"<html><body><ul><li><a href='/a'>one</a></li></ul></body></html>"
"""A page without an article, for the warm-up: other parsers are tried on it."""


class UnreadablePage(Exception):
    """The bytes are not the document that they claim to be."""


class _LongSearch(BaseException):
    """The search for an article has used its time. The parsers catch any `Exception`."""


_search: WorkClock | None = None
"""The clock of the search that runs."""


def end_long_search(*_: object) -> None:
    """Ends the search for an article if it has used its time. It is called again and again, by a signal."""
    global _search
    if _search is not None and _search.is_over:
        _search = None
        raise _LongSearch


def text_of(kind: str, body: bytes, url: str, charset: str) -> tuple[str, str]:
    """Returns the title and the text of a page, as Markdown. `kind` is "html" or "pdf".

    Raises:
        UnreadablePage: The parser refuses the bytes.
    """
    return _of_pdf(body) if kind == "pdf" else _of_html(body, url, charset)


def _of_html(body: bytes, url: str, charset: str) -> tuple[str, str]:
    try:
        source = body.decode(charset, errors="replace") if charset else ""
    except (LookupError, ValueError):
        source = ""
    title, page = _visible_part(source or trafilatura.utils.decode_file(body))
    return title, (_article(page, url, len(body)) or _whole(page))[:TEXT_LIMIT]


def _visible_part(source: str) -> tuple[str, str]:
    """Returns the title of a page, and its HTML without comments and without what no browser shows.

    The parsers after it do not keep to the HTML standard, and end a hidden element or a comment elsewhere. So they get
    the tree of a parser that does, written out again, in which no hidden text is left.
    """
    # As a browser with scripts. With events, each `option` of a list would copy the chosen one.
    parser = LexborHTMLParser(source, scripting=True, options=LexborDocumentOptions.WO_EVENTS)
    root, title = parser.root, parser.css_first("title")
    assert root is not None, "every page has an <html>"
    name = "" if title is None else " ".join(title.text().split())
    comments = [node for node in root.traverse(include_text=True) if node.is_comment_node]
    for node in (*parser.css(NEVER_SHOWN), *comments):
        if node.mem_id == root.mem_id:
            return name, ""
        node.decompose(recursive=False)
    return name, root.html or ""


def _article(page: str, url: str, size: int) -> str:
    """Returns the article of a page; empty if it has none, or if the search takes too long."""
    global _search
    _search = WorkClock(size)
    try:
        found = trafilatura.extract(
            page, url=url, output_format="markdown", include_links=True, include_tables=True, include_comments=False
        )
        _search = None
    except _LongSearch:
        return ""
    return found or ""


def _whole(page: str) -> str:
    """Returns all the text of a page, menus included."""
    return (html_to_markdown.convert(page).content or "").strip()


def _of_pdf(body: bytes) -> tuple[str, str]:
    try:
        document: Any = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        raise UnreadablePage(f"the PDF cannot be opened: {error}") from None
    named: str = document.get_metadata_value("Title")
    pages: list[str] = []
    size = 0
    for number in range(len(document)):
        try:
            text: str = document[number].get_textpage().get_text_bounded()
        except pypdfium2.PdfiumError:
            text = f"(page {number + 1} cannot be read)"
        pages.append(text.replace("\r\n", "\n").strip())
        size += len(text)
        if size > TEXT_LIMIT:
            break
    return " ".join(named.split()), "\n\n".join(pages)[:TEXT_LIMIT]
