"""The URLs that stand whole in a result. They tell a link that was found from one that a model made up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain_value

URL_LIMIT = 2_048
"""Maximum characters of one URL; browsers and servers agree up to here. A longer one is not kept."""

SEEN_URLS_LIMIT = 131_072
"""Maximum characters of all URLs that a conversation keeps: about 1,300 links. The oldest are dropped first.

They are a part of the conversation's row in the store, which each turn reads.
"""

SCAN_LIMIT = 131_072
"""Maximum characters of one result that are searched for URLs: 2 ms for a page, at most 0.2 s for a hostile one."""

COMPARED_LIMIT = 100_000_000
"""Maximum of a result's URLs times the characters of its call's arguments: 0.1 s. Above it no URL counts as found."""

VALUES_LIMIT = 100_000
"""Maximum values inside of one result that are looked at."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{0,30}\Z")
_REST = re.compile(r"://[^\s<>\"`\\\x00-\x1f\x7f，。、；：！？（）【】《》「」『』]+")
_BRACKET = re.compile(r"[()\[\]{}]")
_TRAILING = ".,;:!?'*"
"""Characters that belong to the sentence or the emphasis around a URL if they stand at its end."""
_CLOSING = {")": "(", "]": "[", "}": "{"}
_ESCAPES = frozenset("\"'nrt")
"""Characters after a backslash that end a text. Any other may stand for a part of the URL."""


def with_urls(kept: Iterable[str], more: Iterable[str]) -> dict[str, None]:
    """Returns the URLs of both in the order of their last reading, without the oldest beyond `SEEN_URLS_LIMIT`."""
    found = dict.fromkeys(kept)
    for url in more:
        found.pop(url, None)
        found[url] = None
    size = sum(map(len, found))
    while size > SEEN_URLS_LIMIT:
        oldest = next(iter(found))
        size -= len(oldest)
        del found[oldest]
    return found


def urls_in(result: ToolResult, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the URLs that stand whole in a result, exactly as written.

    Those that stand in the arguments `given` are left out: the model wrote them, and the tool may only repeat them.
    """
    found: dict[str, None] = {}
    left = SCAN_LIMIT
    for text in _texts_within([result.data, *result.blocks]):
        if "://" in text:
            found.update(dict.fromkeys(_urls(text, left)))
        left -= len(text)
        if left <= 0:
            break
    return _not_in(given, found) if found else ()


def _not_in(given: Mapping[str, Any], found: Iterable[str]) -> tuple[str, ...]:
    urls = tuple(found)
    try:
        # JSON escapes no character that a URL can have, so a URL of the arguments stands in it as it is.
        text = json.dumps(plain_value(given), ensure_ascii=False)
    except Unrepresentable:
        return ()
    if "://" not in text:
        return urls
    return () if len(urls) * len(text) > COMPARED_LIMIT else tuple(url for url in urls if url not in text)


def _urls(text: str, limit: int) -> Iterator[str]:
    at, end = text.find("://"), 0
    while 0 <= at < limit:
        if at >= end:
            # A run without spaces may hold several URLs, and is measured once, so that the time stays linear.
            run = _REST.match(text, at, limit)
            end = at + 3 if run is None else run.end()
        scheme, stop = _SCHEME.search(text, max(0, at - 31), at), at + 3
        if scheme is not None:
            stop = max(stop, _end_of(text, scheme.start(), end))
            is_cut = stop == end and _is_cut(text, end, limit)
            url = "" if is_cut or stop - at > URL_LIMIT else text[scheme.start() : stop].rstrip(_TRAILING)
            if 0 < len(url) <= URL_LIMIT and not url.endswith("://"):
                yield url
        at = text.find("://", stop)


def _is_cut(text: str, end: int, limit: int) -> bool:
    """True if the text that is searched may end inside of the URL, or an escape may stand for a part of it."""
    if end == limit < len(text):
        return True
    return text[end : end + 1] == "\\" and text[end + 1 : end + 2] not in _ESCAPES


def _end_of(text: str, start: int, end: int) -> int:
    """Returns the end of the URL at `start`: before a closing bracket or quote that belongs to the text around it."""
    before = text[start - 1 : start]
    if before and before in "'|*":
        quoted = text.find(before, start, end)
        end = end if quoted < 0 else quoted
    opened: list[str] = []
    for bracket in _BRACKET.finditer(text, start, end):
        sign = bracket.group()
        if sign not in _CLOSING:
            opened.append(sign)
        elif not opened or opened.pop() != _CLOSING[sign]:
            return bracket.start()
    return end


def _texts_within(value: object) -> Iterator[str]:
    """Yields the texts among the first `VALUES_LIMIT` values inside of a value."""
    waiting: list[object] = [value]
    for _ in range(VALUES_LIMIT):
        if not waiting:
            return
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting.extend(reversed([*cast("Mapping[Any, Any]", one).keys(), *cast("Mapping[Any, Any]", one).values()]))
        elif isinstance(one, list | tuple | set | frozenset):
            waiting.extend(reversed(list(cast("Iterable[object]", one))))
        elif one is not None and not isinstance(one, bool | int | float | bytes):
            try:
                waiting.append(plain_value(one))
            except Unrepresentable:
                continue
