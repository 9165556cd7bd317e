"""Tool search: BM25 over names, descriptions and parameters, with synonyms.

It does not use bm25s or rank-bm25: both need numpy, and neither weighs fields or follows a changing catalogue.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.catalogue.terms import Sense, senses, terms
from toolwire.definition.derived import input_schema_of
from toolwire.definition.tool import Tool
from toolwire.vocabulary.machine.work_clock import WorkClock, WorkLimit

WEIGHTS = (6.0, 2.0, 0.15, 0.3)
"""Weights of a word by field: name (with title and tags), first sentence, rest of the description, parameters."""
EVENNESS = 0.75
"""How strongly a long text lowers the weight of its words: 0 ignores length, 1 is proportional. It is b of BM25."""
SATURATION = 2.0
"""How fast repetitions of a word stop adding weight. It is k1 of BM25."""

_TOOL_SIZE = 20_000
"""What reading a tool may cost, in characters of text: ten milliseconds, ten times what most take."""

PARAMETER_DEPTH = 2
"""Levels of parameters that are searched. Deeper fields say little about the purpose of a tool."""

_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？；]|\n")

_Key = tuple[str, Tool, object]
"""Name, tool and the tool's revision. The index of an entry is valid while all three are the same objects."""


_Document = tuple[Counter[str], ...]
"""The searchable terms of one tool: the number of times that each occurs, per field."""


class ToolSearch:
    """Searches the current entries of `entries()`. Thread-safe.

    The first search builds the index. A later search rebuilds it if a tool was added, removed or changed; unchanged
    tools are not analysed again.
    """

    def __init__(self, entries: Callable[[], Iterable[Entry]]) -> None:
        self._entries = entries
        self._lock = threading.Lock()
        self._index = _Index((), ())
        self._read: dict[tuple[str, int, int], tuple[_Key, _Document]] = {}
        """The tools that a search has read which then ran out of time. The next search goes on with them."""

    def find(self, query: str, limit: int, among: Iterable[Entry] | None = None) -> list[Entry]:
        """Returns at most `limit` entries, best first. The list is empty if no tool matches a word of the query.

        A tool whose name equals the query comes first. `among` are the entries to search; None: those of `entries()`.

        Raises:
            WorkLimit: The deadline of the call is over, or the search takes too long.
        """
        entries = tuple(self._entries() if among is None else among)
        places = self._current(entries).rank_positions(query, WorkClock(len(query)))
        named = [place for place, entry in enumerate(entries) if entry.name == query.strip()]
        return [entries[place] for place in dict.fromkeys([*named, *places])][:limit]

    def _current(self, entries: Sequence[Entry]) -> _Index:
        clock = WorkClock(len(entries) * _TOOL_SIZE)
        keys = tuple((entry.name, entry.tool, entry.tool.revision) for entry in entries)
        # No class of a key defines equality, so this compares identities, and it is quick.
        if self._index.keys != keys:
            with self._lock:
                if self._index.keys != keys:
                    self._index, self._read = _Index(keys, self._documents(keys, clock)), {}
        # Another thread may search other entries at the same time, so the index must match these keys.
        index = self._index
        return index if index.keys == keys else _Index(keys, self._documents(keys, clock))

    def _documents(self, keys: Sequence[_Key], clock: WorkClock) -> tuple[_Document, ...]:
        index = self._index
        known = {_identity(key): (key, document) for key, document in zip(index.keys, index.documents, strict=True)}
        known.update(self._read)
        for key in keys:
            if (identity := _identity(key)) not in known:
                if clock.is_over:
                    self._read = known
                    raise WorkLimit("not all tools could be read in time: the next search goes on with the rest")
                known[identity] = key, _document(key[0], key[1])
        return tuple(known[_identity(key)][1] for key in keys)


class _Index:
    """The search index of some tools."""

    def __init__(self, keys: tuple[_Key, ...], documents: Sequence[_Document]) -> None:
        # Keeps the keys alive, so that no other object gets the same id.
        self.keys = keys
        self.documents = documents
        self._postings = _postings(documents)

    def rank_positions(self, query: str, clock: WorkClock) -> list[int]:
        """Returns the positions of the matching tools, best first; ties keep their order."""
        scores: dict[int, float] = {}
        for sense in senses(query):
            clock.add(len(self.keys))
            if clock.is_over:
                raise WorkLimit("the search takes too long: search with fewer words")
            for place, score in self._scores(sense).items():
                scores[place] = scores.get(place, 0.0) + score
        return sorted(scores, key=lambda place: (-scores[place], place))

    def _scores(self, sense: Sense) -> dict[int, float]:
        """Returns each tool's score for one sense: its best term for the sense, times the rarity of the sense."""
        best: dict[int, float] = {}
        for term, weight in sense.items():
            for place, share in self._postings.get(term, ()):
                best[place] = max(best.get(place, 0.0), weight * share)
        own = len(self._postings.get(next(iter(sense)), ()))
        # A rare word should weigh more than a common one, but less so if common words mean the same.
        rarity = (self._rarity(own or len(best)) + self._rarity(len(best))) / 2
        return {place: score * rarity for place, score in best.items()}

    def _rarity(self, tools: int) -> float:
        return math.log(1 + (len(self.keys) - tools + 0.5) / (tools + 0.5))


def _identity(key: _Key) -> tuple[str, int, int]:
    return key[0], id(key[1]), id(key[2])


def _document(name: str, tool: Tool) -> _Document:
    summary, detail = _split_summary(tool.description.strip())
    parameters = " ".join(_parameter_texts(input_schema_of(tool), PARAMETER_DEPTH))
    texts = (" ".join([name, tool.title or "", *sorted(tool.tags)]), summary, detail, parameters)
    return tuple(Counter(terms(text)) for text in texts)


def _split_summary(description: str) -> tuple[str, str]:
    """Returns the first sentence and the rest."""
    end = _SENTENCE_END.search(description)
    return (description, "") if end is None else (description[: end.start()], description[end.end() :])


def _parameter_texts(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    properties = schema.get("properties")
    if not depth or not isinstance(properties, dict):
        return
    for name, node in cast("dict[str, Any]", properties).items():
        yield name
        if isinstance(node, dict):
            inner = cast("dict[str, Any]", node)
            yield str(inner.get("description", ""))
            yield from _parameter_texts(inner, depth - 1)


def _postings(documents: Sequence[_Document]) -> dict[str, list[tuple[int, float]]]:
    """Returns the tools of each term, with its weight from 0 to 1: weighted by field, then saturated."""
    lengths = [[counts.total() for counts in document] for document in documents]
    means = [sum(of_field) / len(of_field) for of_field in zip(*lengths, strict=True)]
    found: dict[str, list[tuple[int, float]]] = {}
    for place, document in enumerate(documents):
        amounts: dict[str, float] = {}
        for counts, length, mean, weight in zip(document, lengths[place], means, WEIGHTS, strict=True):
            factor = weight / (1 - EVENNESS + EVENNESS * length / mean) if length else 0.0
            for term, count in counts.items():
                amounts[term] = amounts.get(term, 0.0) + count * factor
        for term, amount in amounts.items():
            found.setdefault(term, []).append((place, amount / (SATURATION + amount)))
    return found
