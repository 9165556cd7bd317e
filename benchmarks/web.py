"""The cost of reading a page in the confined process, against trafilatura alone in this one. Run: make bench-web."""

from __future__ import annotations

import random
import sys

import trafilatura

from benchmarks.timing import Figure, medians, show
from toolwire.builtin.web.page_reader import PageReader

PAGE_BYTES = 1_000_000
ROUNDS = 7
URL = "https://example.org/page"


def page(size: int = PAGE_BYTES) -> bytes:
    """Returns a page with menus, headings, links, tables and an article, of about so many bytes."""
    chance = random.Random(7)
    words = ["tide", "harbour", "north", "water", "reading", "measure", "between", "of", "the", "and", "a", "to"]
    menu = (
        "<nav><ul>" + "".join(f"<li><a href='/{number}'>item {number}</a></li>" for number in range(50)) + "</ul></nav>"
    )
    parts = [f"<html><head><title>Tides</title></head><body>{menu}<article><h1>Tides</h1>"]
    length = len(parts[0])
    while length < size:
        text = " ".join(chance.choices(words, k=chance.randrange(20, 80)))
        part = f"<p>{text} <a href='/{length}'>{chance.choice(words)}</a>.</p>"
        if chance.random() < 0.1:
            part = f"<h2>{text[:30]}</h2>{part}<table><tr><td>{length}</td><td>{text[:9]}</td></tr></table>"
        parts.append(part)
        length += len(part)
    return "".join([*parts, "</article><footer>imprint</footer></body></html>"]).encode()


def figures() -> list[Figure]:
    """The ratio for a page of 1 MB. Both sides read the same bytes with the same options."""
    body, reader = page(), PageReader()

    def confined() -> tuple[str, str]:
        return reader.read("html", body, url=URL, charset="utf-8")

    def bare() -> str | None:
        return trafilatura.extract(
            body, url=URL, output_format="markdown", include_links=True, include_tables=True, include_comments=False
        )

    title, text = confined()
    # The same work was done, up to the limit of a page's text.
    assert (title, text[:10_000]) == ("Tides", (bare() or "")[:10_000])
    try:
        times = medians({"floor": bare, "confined": confined}, number=1, rounds=ROUNDS)
    finally:
        reader.close()
    return [
        Figure(name="a page of 1 MB, read in the confined process", ratio=times["confined"] / times["floor"], limit=2),
        Figure(name="trafilatura alone", ratio=times["floor"], limit=None, unit="s"),
    ]


def main() -> int:
    """Prints the figures; 1 if the limit is not met."""
    found = figures()
    show("Reading a page, against trafilatura alone", found)
    return 0 if all(figure.is_met for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
