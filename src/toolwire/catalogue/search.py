"""Finding tools by what they do: BM25 over names, descriptions and parameters, with words of the same sense.

Our own, not bm25s or rank-bm25: both need numpy, and neither weighs fields or follows a catalogue that changes.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolwire.catalogue.entry import Entry
from toolwire.catalogue.senses import Sense, senses
from toolwire.catalogue.terms import terms
from toolwire.definition.tool import Tool

WEIGHTS = (6.0, 2.0, 0.15, 0.3)
"""What a word counts in the name (with title and tags), in the first sentence, in the rest of the description, and in
the parameters."""
EVENNESS = 0.75
"""How much less a word counts in a text longer than others of its kind: 0 not at all, 1 in proportion. BM25's b."""
SATURATION = 2.0
"""How soon a word that stands there again counts for nothing more. BM25's k1."""

PARAMETER_DEPTH = 2
"""Levels of parameters that are searched: fields further down say little of what a tool does."""

_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？；]|\n")

_Key = tuple[str, Tool, object]
"""Name, tool and the tool's revision: the index of an entry holds while all three are the same objects."""


class ToolSearch:
    """Searches what `entries()` gives at that moment. Any thread may search.

    The index is made when first searched, and again when a tool has come, gone or changed; tools that are as they
    were are not read again.
    """

    def __init__(self, entries: Callable[[], Iterable[Entry]]) -> None:
        self._entries = entries
        self._lock = threading.Lock()
        self._index = _Index((), ())

    def find(self, query: str, limit: int) -> list[Entry]:
        """At most `limit` entries, best first; none when nothing that the query says is said of any.

        One whose name is the query is the best.
        """
        entries = tuple(self._entries())
        places = self._current(entries).ranked(query)
        named = [place for place, entry in enumerate(entries) if entry.name == query.strip()]
        return [entries[place] for place in dict.fromkeys([*named, *places])][:limit]

    def _current(self, entries: Sequence[Entry]) -> _Index:
        keys = tuple((entry.name, entry.tool, entry.tool.revision) for entry in entries)
        if not self._index.is_of(keys):
            with self._lock:
                if not self._index.is_of(keys):
                    self._index = _Index(keys, self._documents(keys))
        # Another thread may search other entries meanwhile: an index answers for its own keys alone.
        index = self._index
        return index if index.is_of(keys) else _Index(keys, self._documents(keys))

    def _documents(self, keys: Sequence[_Key]) -> tuple[_Document, ...]:
        index = self._index
        known = {_identity(key): document for key, document in zip(index.keys, index.documents, strict=True)}
        return tuple(known.get(_identity(key)) or _document(key[0], key[1]) for key in keys)


@dataclass(frozen=True, slots=True)
class _Document:
    """What is said of one tool."""

    counts: tuple[Counter[str], ...]
    """How often each term stands in each field."""
    lengths: tuple[int, ...]
    """Terms in each field."""


class _Index:
    """All that can be found of some tools."""

    def __init__(self, keys: Sequence[_Key], documents: Sequence[_Document]) -> None:
        # The keys are kept whole, so that the identities of their objects stay theirs.
        self.keys = keys
        self.documents = documents
        self._identities = [_identity(key) for key in keys]
        self._postings = _postings(documents)

    def is_of(self, keys: Sequence[_Key]) -> bool:
        """Whether it was made of exactly these."""
        return self._identities == [_identity(key) for key in keys]

    def ranked(self, query: str) -> list[int]:
        """The places of the tools that say anything of the query, best first; of equals the earlier one."""
        scores: dict[int, float] = {}
        for sense in senses(query):
            for place, score in self._scores(sense).items():
                scores[place] = scores.get(place, 0.0) + score
        return sorted(scores, key=lambda place: (-scores[place], place))

    def _scores(self, sense: Sense) -> dict[int, float]:
        """What each tool says of one sense: its best term for it, times how rare that is."""
        best: dict[int, float] = {}
        for term, weight in sense.items():
            for place, share in self._postings.get(term, ()):
                best[place] = max(best.get(place, 0.0), weight * share)
        own = len(self._postings.get(next(iter(sense)), ()))
        # A rare word asks for more than a common one, but less so when common words say the same.
        rarity = (self._rarity(own or len(best)) + self._rarity(len(best))) / 2
        return {place: score * rarity for place, score in best.items()}

    def _rarity(self, tools: int) -> float:
        return math.log(1 + (len(self.keys) - tools + 0.5) / (tools + 0.5))


def _identity(key: _Key) -> tuple[str, int, int]:
    return key[0], id(key[1]), id(key[2])


def _document(name: str, tool: Tool) -> _Document:
    summary, detail = _parted(tool.description.strip())
    parameters = " ".join(_parameter_texts(tool.input_schema, PARAMETER_DEPTH))
    texts = (" ".join([name, tool.title or "", *sorted(tool.tags)]), summary, detail, parameters)
    counts = tuple(Counter(terms(text)) for text in texts)
    return _Document(counts, tuple(count.total() for count in counts))


def _parted(description: str) -> tuple[str, str]:
    """The first sentence, and the rest."""
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
    """Where each term stands, and from 0 to 1 how much it says there: weighted field by field, then saturated."""
    means = [sum(lengths) / len(lengths) for lengths in zip(*(document.lengths for document in documents), strict=True)]
    found: dict[str, list[tuple[int, float]]] = {}
    for place, document in enumerate(documents):
        amounts: dict[str, float] = {}
        for counts, length, mean, weight in zip(document.counts, document.lengths, means, WEIGHTS, strict=True):
            factor = weight / (1 - EVENNESS + EVENNESS * length / mean) if length else 0.0
            for term, count in counts.items():
                amounts[term] = amounts.get(term, 0.0) + count * factor
        for term, amount in amounts.items():
            found.setdefault(term, []).append((place, amount / (SATURATION + amount)))
    return found
