"""Recovery of an ATTP reply that is not one valid TOML document, without guessing the content of a program.

A repair is made only if one reading remains, and each is reported. A quoted document is not a request. A fenced
document counts only if nothing else in the reply could be meant. The first of two documents counts only if the reply
begins with it. Those behind it run too if they are whole programs and nothing but blank lines is between them.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

from toolwire.protocols.attp.document import Source, reply_of
from toolwire.protocols.attp.layout import HEADER, STRUCTURE, AttpLayout, find_layout, is_fence, is_request, line_end
from toolwire.protocols.attp.more_documents import code_of, is_program, read_more_documents
from toolwire.protocols.attp.value_reader import ValueReader
from toolwire.protocols.base import CALL_LIMIT, Refusal, too_many_calls
from toolwire.protocols.reading.incoming import line_of
from toolwire.protocols.reading.toml import load_toml
from toolwire.protocols.reading.whole_program import CompileBudget
from toolwire.vocabulary.calls import Problem, Reply

_TRIPLE = re.compile(r"'''|\"\"\"")
_TWO_DOCUMENTS = (
    "Two documents stand in the reply, and it is not clear which is meant. Write one, without a code fence."
)


def recover(text: str, *, raw: str, problems: tuple[Problem, ...], error: tomllib.TOMLDecodeError) -> Reply:
    """Returns the reply of a text that is not valid TOML.

    Raises:
        Refusal: The text has no reading, or more than one.
    """
    document = _json(text)
    if document is not None:
        problem = Problem(
            message="The reply is JSON; it was read with the keys of ATTP.", repaired=True, place="line 1"
        )
        return reply_of(document, Source(raw=raw, text=text, problems=(*problems, problem)))
    layout = find_layout(text)
    found = _strict(layout) or _Documents(layout=layout, reader=ValueReader(layout=layout)).first()
    problems = (*problems, *layout.problems, *found.problems)
    if not problems:
        problems = (Problem(message=f"The reply is not valid TOML: {error}.", repaired=True),)
    prose = "\n".join(part for part in (layout.prose_before, found.prose_after) if part)
    reply = reply_of(found.document, Source(raw=raw, text=layout.text, problems=problems, prose=prose))
    more = [reply_of(document, Source(raw=raw, text=layout.text)) for document in found.more]
    calls = (*reply.calls, *(call for one in more for call in one.calls))
    if len(calls) > CALL_LIMIT:
        raise too_many_calls()
    return replace(reply, calls=calls, is_sequence=found.is_sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recovered:
    document: Mapping[str, Any]
    problems: tuple[Problem, ...] = ()
    prose_after: str = ""
    more: tuple[Mapping[str, Any], ...] = ()
    """The documents of further programs. Small models write a [tool_call] for each, below one thought."""
    is_sequence: bool = False
    """True if these have thoughts of their own, so that each program may rely on the one before it."""


def _strict(layout: AttpLayout) -> _Recovered | None:
    """Returns the document if it is valid TOML without the text around it."""
    text = layout.text
    if not layout.problems:
        return None  # no text around the document
    closings = list(layout.closings(layout.start))
    # A line of the program may look like the closing fence. The fence is the last such line with only prose after it.
    for end in dict.fromkeys([closings[-1], closings[0]] if closings else [len(text)]):
        rest = text[line_end(text, end) :]
        if STRUCTURE.search(rest) or _TRIPLE.search(rest):
            continue
        try:
            document = load_toml(text[layout.start : end])
        except tomllib.TOMLDecodeError:
            continue
        if layout.closes(end) or _is_whole(document, layout):
            return _Recovered(document=document, problems=_problems_after(layout, end, rest), prose_after=rest.strip())
    return None


def _is_whole(document: Mapping[str, Any], layout: AttpLayout) -> bool:
    """True if the document that ends the reply is complete. A quote in its program may have cut it short."""
    table = document.get("tool_call")
    code = cast("dict[str, Any]", table).get("code") if isinstance(table, dict) else None
    programs = CompileBudget()
    return not isinstance(code, str) or (programs.has_result(code) if layout.fence else programs.compiles(code))


def _problems_after(layout: AttpLayout, end: int, rest: str) -> tuple[Problem, ...]:
    """Returns the problems of the text after a document that ends here."""
    place = line_of(layout.text, end)
    if rest.strip():
        return (Problem(message="The text after the document was left out.", repaired=True, place=place),)
    if layout.fence and not layout.closes(end):
        return (Problem(message="The code fence around the reply is not closed.", repaired=True, place=place),)
    return ()


@dataclass(slots=True, kw_only=True)
class _Documents:
    """Reads the lines of a reply one by one until its first document is complete."""

    layout: AttpLayout
    reader: ValueReader
    top: dict[str, Any] = field(default_factory=dict[str, Any])
    table: dict[str, Any] | None = None
    prose: list[str] = field(default_factory=list[str])
    has_fence_after: bool = False

    def first(self) -> _Recovered:
        """Returns the first document.

        Raises:
            Refusal: Other text begins before the document is complete, or another part of the reply could be meant.
        """
        text, end = self.layout.text, self.layout.start
        while (position := self.layout.next_line(end)) < len(text) and not self.layout.closes(position):
            found = STRUCTURE.match(text, position)
            if found is None:
                end = self._take_prose(position)
            elif self._is_repeated(found):
                return self._with_second(found, is_next=not text[end:position].strip())
            else:
                end = self._take(found)
        rest = text[line_end(text, position) :]
        if STRUCTURE.search(rest) or _TRIPLE.search(rest):
            if not is_request(rest.lstrip()) or self.layout.prose_before or self.prose:
                raise Refusal(_TWO_DOCUMENTS, place=line_of(text, position))
            self._note_rest(1, position)
            return self._make_recovered("")
        self.reader.problems.extend(_problems_after(self.layout, position, "\n".join([*self.prose, rest])))
        return self._make_recovered("\n".join([*self.prose, rest]).strip())

    def _with_second(self, second: re.Match[str], *, is_next: bool) -> _Recovered:
        """Returns the first document, and those behind it that run too.

        `is_next` is True if nothing but blank lines is between the last value and the second document.

        Raises:
            Refusal: It is not clear which document is meant.
        """
        position = second.start()
        found = None
        if not (self.prose or self.layout.prose_before or self.layout.fence):
            if second["header"]:
                found = self._programs(position)
            elif is_next and second["key"].lower() == "thought":
                found = self._sequence(position)
        if found is not None:
            return found
        self._check_first_is_meant(second)
        self._note_rest(1, position)
        return self._make_recovered("")

    def _sequence(self, start: int) -> _Recovered | None:
        """Returns the first document with the programs behind it. None if it, or the text from `start`, is no such."""
        first = self._first_document()
        found = None if code_of(first) is None else read_more_documents(self.layout.text, start, self.reader.programs)
        if found is None:
            return None
        programs = _distinct([first, *found.documents])
        written = len(found.documents) + 1
        if len(programs) > 1:
            message = f"{len(programs)} documents have programs: each runs once the one before it has finished."
            self._note(message, start)
        self._note_doubles(written - len(programs), start)
        if found.rest is not None:
            self._note_rest(written, found.rest)
        return replace(self._make_recovered(""), more=programs[1:], is_sequence=len(programs) > 1)

    def _programs(self, start: int) -> _Recovered | None:
        """Returns the first document with the programs from `start` to the end, which have no thoughts of their own.

        None if one of them is not a whole program. The first must be one too: none of them waits for another.
        """
        text = self.layout.text
        starts = [found.start() for found in HEADER.finditer(text, start)]
        tables: list[Mapping[str, Any]] = [self._first_document()]
        for begin, end in pairwise([*starts, len(text)]):
            try:
                tables.append(load_toml(text[begin:end]))
            except (tomllib.TOMLDecodeError, Refusal):
                return None
        if not all(is_program(document, self.reader.programs) for document in tables):
            return None
        programs = _distinct(tables)
        if len(programs) > 1:
            self._note(f"[tool_call] stands {len(tables)} times: each program was run on its own.", start)
        self._note_doubles(len(tables) - len(programs), start)
        return replace(self._make_recovered(""), more=programs[1:])

    def _first_document(self) -> Mapping[str, Any]:
        return {**self.top, "tool_call": self.table or {}}

    def _note_doubles(self, count: int, position: int) -> None:
        if count:
            self._note("The same program stands in several documents; it runs once.", position)

    def _make_recovered(self, prose_after: str) -> _Recovered:
        document = self.top if self.table is None else {**self.top, "tool_call": self.table}
        return _Recovered(document=document, problems=tuple(self.reader.problems), prose_after=prose_after)

    def _take(self, found: re.Match[str]) -> int:
        if self.prose:
            raise Refusal(
                "Text stands in the middle of the document. Write nothing but TOML.",
                place=line_of(self.layout.text, found.start()),
            )
        if found["header"]:
            if self.table is not None:
                self._note("[tool_call] stands twice; its keys were read as one table.", found.start())
            elif found["header"] != "[tool_call]":
                self._note(f"{found['header']} was read as [tool_call].", found.start())
            self.table = self.table or {}
            return line_end(self.layout.text, found.end())
        value = self.reader.read(found["key"].lower(), found.end())
        place = (
            self.top
            if found["key"].lower() == "thought" or not (found["dotted"] or self.table is not None)
            else self._table()
        )
        place[found["key"]] = value.text
        return value.next

    def _table(self) -> dict[str, Any]:
        self.table = {} if self.table is None else self.table
        return self.table

    def _take_prose(self, position: int) -> int:
        text = self.layout.text
        end = line_end(text, position)
        if self.layout.fence or _TRIPLE.search(text, position, end):
            raise Refusal(
                "This line is not TOML, and it may belong to the value above it. Inside the code write triple quotes "
                "as \"\"\", close it by ''' on a line of its own, and write nothing after it.",
                place=line_of(text, position),
            )
        self.has_fence_after = self.has_fence_after or is_fence(text, position)
        self.prose.append(text[position:end].rstrip("\n"))
        return end

    def _is_repeated(self, found: re.Match[str]) -> bool:
        keys = {key.lower() for key in (*self.top, *(self.table or {}))}
        return bool(keys - {"thought"}) and self.table is not None if found["header"] else found["key"].lower() in keys

    def _check_first_is_meant(self, second: re.Match[str]) -> None:
        """Refuses two documents unless the first one is certainly the answer.

        A model that continues after its answer writes another one, so the first is the answer. This requires that the
        reply begins with the first document, that it is complete, and that the second begins like a document. Between
        them only the request of an example may stand. Otherwise either may be a quotation, or the second may be part of
        the first one's program, or rely on a result that the model made up.
        """
        values = {key.lower(): value for key, value in {**self.top, **(self.table or {})}.items()}
        is_whole = values.get("status") == "fail" and "message" in values
        if values.get("status") == "success" and "code" in values:
            is_whole = bool(self.prose) or self.reader.programs.has_result(values["code"])
        begins_as_one_does = second["header"] or second["key"].lower() == "thought"
        is_first = not (self.layout.prose_before or self.layout.fence or self.has_fence_after)
        is_apart = not self.prose or is_request(self.prose[0])
        if not (is_whole and is_first and is_apart and begins_as_one_does):
            raise Refusal(_TWO_DOCUMENTS, place=line_of(self.layout.text, second.start()))

    def _note_rest(self, count: int, position: int) -> None:
        """Reports that only the first `count` documents count, and not those from `position` on."""
        found = max(len(HEADER.findall(self.layout.text, self.layout.start)), count + 1)
        which = "the first" if count == 1 else f"the first {count}"
        verb = "was" if count == 1 else "were"
        self._note(f"Only {which} of {found} documents {verb} run.", position, is_loss=True)

    def _note(self, message: str, position: int, *, is_loss: bool = False) -> None:
        place = line_of(self.layout.text, position)
        self.reader.problems.append(Problem(message=message, repaired=True, place=place, is_loss=is_loss))


def _distinct(documents: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Returns the documents without those whose program stands in an earlier one."""
    programs = dict[str, Mapping[str, Any]]()
    for document in documents:
        programs.setdefault((code_of(document) or "").strip(), document)
    return tuple(programs.values())


def _json(text: str) -> dict[str, Any] | None:
    """Returns the reply if it is one JSON object, and None otherwise."""
    text = text.strip()
    if text.startswith("```") and text.endswith("\n```"):
        text = text[text.find("\n") : -3].strip()
    if not text.startswith("{"):
        return None
    try:
        document = json.loads(text, object_pairs_hook=_unique)
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", document)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found
