"""The value of one key in a damaged ATTP document: its end and its text.

The reader first tries TOML's own reading. It looks for others if that fails, or if the following text shows that a
quote inside the value ended it early. It then tries every end that the surrounding structure allows; a program must
compile. The value is accepted if exactly one reading remains, and the reply is refused otherwise.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolwire.protocols.attp.layout import STRUCTURE, AttpLayout, Following, line_end
from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import line_of
from toolwire.protocols.reading.toml import readings, string_end
from toolwire.protocols.reading.whole_program import CompileBudget
from toolwire.vocabulary.calls import Problem

_REPAIR_LIMIT = 16
_END_LIMIT = 8
_CLOSING_LIMIT = 256

# Characters that editors and models write in place of straight quotes.
_SINGLE, _DOUBLE = "‘’‚‛′＇", "“”„‟″＂"
_OPENING = re.compile(
    rf"""[ \t]*+(?P<raw>r?)
    (?P<mark>'''|\"""|[{_SINGLE}]{{3}}|[{_DOUBLE}]{{3}}|`{{3}}[a-z]*+(?=\n)|['{_SINGLE}]|["{_DOUBLE}])""",
    re.VERBOSE,
)
_CLEAN_TAIL = re.compile(r"[ \t]*+(?:#[^\n'\"]*+)?(?:\n|\Z)")
_BARE = re.compile(r"[ \t]*+([^\n]*+)")
_HALF_CLOSED = re.compile(r"^(?:'{1,2}|\"{1,2})[ \t]*+\n?\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value and its end."""

    text: str
    next: int
    """The start of the line after the value."""


@dataclass(slots=True, kw_only=True)
class ValueReader:
    """Reads the values of one reply, counts the cost and notes the repairs."""

    layout: AttpLayout
    problems: list[Problem] = field(default_factory=list[Problem])
    programs: CompileBudget = field(default_factory=CompileBudget)
    repairs_left: int = _REPAIR_LIMIT

    def read(self, key: str, position: int) -> Value:
        """Reads the value after the `=` of a known key.

        Raises:
            Refusal: The value has no end, or more than one possible end.
        """
        opening = _OPENING.match(self.layout.text, position)
        if opening is None:
            return self._bare(key, position)
        return self._exact(key, opening) or self._repair_value(key, opening)

    def _exact(self, key: str, opening: re.Match[str]) -> Value | None:
        """Returns TOML's reading, if the following text agrees with it."""
        text, start = self.layout.text, opening.start("mark")
        end = string_end(text, start) if text[start] in "'\"" and not opening["raw"] else -1
        tail = _CLEAN_TAIL.match(text, end) if end >= 0 else None
        if tail is None:
            return None
        if key == "code":
            self.programs.check(text[start:end])
        try:
            value = tomllib.loads(f"v = {text[start:end]}")["v"]
        except tomllib.TOMLDecodeError:
            return None
        following = self.layout.following(tail.end())
        if following in ("something else", "request") and self._goes_on(opening["mark"], tail.end()):
            return None
        if key == "code" and not self._is_whole(value, opening["mark"], following):
            return None
        return Value(text=value, next=tail.end())

    def _is_whole(self, code: str, mark: str, following: Following) -> bool:
        """True if the program may end here.

        Text after it may be the rest of the program, cut off by a quote inside it. If nothing follows, the reply may
        have been cut: a fence is still open, or the program contains such quotes. In both cases only a program that
        assigns `__result__` counts as complete. The request of another example shows that the program has ended.
        """
        is_doubtful = following in ("end", "request") and (bool(self.layout.fence) or mark in code)
        if following == "something else" or is_doubtful:
            return self.programs.has_result(code)
        return self.programs.compiles(code)

    def _goes_on(self, mark: str, position: int) -> bool:
        """True if the same triple quotes occur again before the next line of structure.

        The string may then continue.
        """
        text = self.layout.text
        again = text.find(mark, position) if len(mark) == 3 else -1
        if again < 0:
            return False
        structure = STRUCTURE.search(text, position)
        return structure is None or again < structure.start()

    def _repair_value(self, key: str, opening: re.Match[str]) -> Value:
        self.repairs_left -= 1
        if self.repairs_left < 0:
            raise self._refusal("The reply is too damaged to be read. Write a shorter one.", opening)
        quotes = _Quotes.of(opening, self.layout.text)
        found: dict[str, Value] = {}
        for end, following in self._ends(quotes):
            raw = self.layout.text[quotes.start : end]
            if key == "code":
                self.programs.check(raw)
            for value in quotes.readings(raw) if key == "code" else (raw,):
                if key != "code" or self._is_whole(value, quotes.mark, self.layout.following(following)):
                    found.setdefault(value, Value(text=value, next=following))
            if found and key != "code":
                break  # this key only explains; the following text decides whether the value really ended here
        if not found:
            return self._read_unclosed(key, opening, quotes)
        if len(found) > 1:
            raise self._refusal(
                f"`{key}` can be read in {len(found)} ways. Write it between ''' and ''', with no ''' inside.", opening
            )
        value = next(iter(found.values()))
        self._note(f"`{key}` was read as it stands between its quotes: {quotes.fault(value.text)}.", opening)
        return value

    def _ends(self, quotes: _Quotes) -> Iterator[tuple[int, int]]:
        """Yields each end where quotes close a line and the document could continue or end, with the line after it."""
        text, ends = self.layout.text, 0
        # A value that contains [tool_call] may extend into a second document.
        closings = quotes.closing.finditer(text, quotes.start, self.layout.next_header(quotes.start))
        for count, found in enumerate(closings):
            end, following = found.end(1) - quotes.length, line_end(text, found.end())
            if count >= _CLOSING_LIMIT or ends >= _END_LIMIT:
                raise Refusal("Quotes close too many lines to tell where a value ends.", place=line_of(text, end))
            if end >= quotes.start and self.layout.following(following) != "something else":
                ends += 1
                yield end, following

    def _read_unclosed(self, key: str, opening: re.Match[str], quotes: _Quotes) -> Value:
        if key == "code" and quotes.length == 3:
            return self._read_unclosed_code(opening, quotes)
        header = self.layout.next_header(quotes.start)
        if key != "thought" or header == len(self.layout.text):
            raise self._refusal(
                f"`{key}` is never closed. Close it on its own line, and if the reply was cut off, make it shorter.",
                opening,
            )
        self._note("`thought` is never closed; it was read up to [tool_call].", opening)
        return Value(text=self.layout.text[quotes.start : header].strip(), next=header)

    def _read_unclosed_code(self, opening: re.Match[str], quotes: _Quotes) -> Value:
        """Reads the program of a reply that only lacks the closing quotes.

        A closing fence after it shows that the model finished the reply. Without a fence, the program itself must show
        it.
        """
        text = self.layout.text
        closings = list(self.layout.closings(quotes.start))
        end = closings[0] if closings else len(text)
        half = None if closings else _HALF_CLOSED.search(text, quotes.start)
        raw = text[quotes.start : half.start() if half else end]
        self.programs.check(raw)
        is_whole = self._is_line_end if closings else self.programs.is_ended
        found = [value for value in quotes.readings(raw) if is_whole(value)]
        if len(closings) > 1 or len(found) != 1 or quotes.closing.search(text, quotes.start, end):
            raise self._refusal(
                "`code` cannot be read to its end. Close it by ''' on a line of its own, write no other ''' in it, and "
                "write nothing after the document. If the reply was cut off, make it shorter.",
                opening,
            )
        self._note("`code` is never closed; it was read up to the end of the reply.", opening)
        return Value(text=found[0], next=end)

    def _is_line_end(self, code: str) -> bool:
        return code.endswith("\n") and not code.endswith("\n\n") and self.programs.compiles(code)

    def _bare(self, key: str, position: int) -> Value:
        """Reads a value without quotes: one word for a status, one line for a key that only explains."""
        text = self.layout.text
        found = _BARE.match(text, position)
        value, following = (found[1].strip(), line_end(text, found.end())) if found else ("", position)
        is_one = value.isalpha() if key == "status" else key != "code" and bool(value)
        if not is_one or self.layout.following(following) == "something else":
            form = "between ''' and '''" if key == "code" else 'between " and "'
            raise Refusal(f"The value of `{key}` has no quotes. Write it {form}.", place=line_of(text, position))
        message = f"`{key}` has no quotes; it was read as it stands."
        self.problems.append(Problem(message=message, repaired=True, place=line_of(text, position)))
        return Value(text=value, next=following)

    def _note(self, message: str, opening: re.Match[str]) -> None:
        place = line_of(self.layout.text, opening.start("mark"))
        self.problems.append(Problem(message=message, repaired=True, place=place))

    def _refusal(self, message: str, opening: re.Match[str]) -> Refusal:
        return Refusal(message, place=line_of(self.layout.text, opening.start("mark")))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quotes:
    """The quotes that opened a value, and those that may close it."""

    mark: str
    start: int
    """The position where the value begins."""
    length: int
    """Number of quotes in the mark, 1 or 3."""
    closing: re.Pattern[str]
    """Matches closing quotes at the end of a line. Group 1 ends with the quotes."""
    has_escapes: bool
    """True if a backslash may begin an escape."""

    @classmethod
    def of(cls, opening: re.Match[str], text: str) -> _Quotes:
        mark, start = opening["mark"], opening.end()
        length = 1 if len(mark) == 1 else 3
        if length == 3 and text.startswith("\n", start):
            start += 1
        return cls(
            mark=mark,
            start=start,
            length=length,
            closing=_closing(mark[0], length),
            has_escapes=(mark[0] == '"' or mark[0] in _DOUBLE) and not opening["raw"],
        )

    def readings(self, raw: str) -> tuple[str, ...]:
        return readings(raw) if self.has_escapes else (raw,)

    def fault(self, value: str) -> str:
        """Explains why TOML could not read the value."""
        if self.mark[0] not in "'\"":
            return "they are not straight quotes"
        if self.mark in value:
            return f"{self.mark} stands inside it"
        if self.has_escapes and "\\" in value:
            return "a backslash in it does not begin an escape"
        return "it holds characters that TOML does not allow"


def _closing(quote: str, length: int) -> re.Pattern[str]:
    family = next(family for family in _FAMILIES if quote in family)
    return _CLOSINGS[family, length]


_FAMILIES = ("'", '"', "`", _SINGLE, _DOUBLE)

# A triple-quoted string may end in two quotes of its own, hence up to five.
_CLOSINGS = {
    (family, length): re.compile(rf"([{family}]{{{length},{most}}})[ \t]*+$", re.MULTILINE)
    for family in _FAMILIES
    for length, most in ((1, 1), (3, 5))
}
