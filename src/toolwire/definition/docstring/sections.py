"""The sections of a docstring: where each begins and ends, and the entries in it.

Every line of the text is in exactly one entry or one `Prose`, so a reader that knows no use for a line still has it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

EntryKind = Literal["parameter", "type", "returns", "returns type", "raises", "example", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Lines that belong to no section."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocEntry:
    """One item of a section."""

    kind: EntryKind
    lines: tuple[str, ...]
    """The item as written."""
    names: tuple[str, ...] = ()
    """The described parameters or exceptions. One text may describe several."""
    type: str = ""
    """The type before the text; empty without one."""
    text: str = ""
    """The description, without common indentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with its items, or one field of reST or Epydoc."""

    heading: tuple[str, ...] = ()
    entries: tuple[DocEntry, ...]


def sections_of(text: str) -> Iterator[Prose | Section]:
    """Splits a cleaned docstring into its sections, in order."""
    lines = _with_first_section_indented(text.split("\n"))
    place = 0
    while place < len(lines):
        for read in (_numpy_section, _google_section, _read_field):
            found = read(lines, place)
            if found is not None:
                place, section = found
                yield section
                break
        else:
            yield Prose(lines=(lines[place],))
            place += 1


_WORDS: dict[EntryKind, str] = {
    "parameter": "Args|Arguments|Parameters|Params|Parameter|Attributes|Receives|Keyword Args|Keyword Arguments|"
    "Keyword Parameters|Kwargs|Other Args|Other Arguments|Other Parameters|参数|參數|入参|形参|参数说明",
    "returns": "Returns|Return|Yields|Yield|返回|返回值|返回结果|傳回|回傳|产出|生成",
    "raises": "Raises|Exceptions|Except|异常|抛出|引发|抛出异常|例外|異常",
    "example": "Example|Examples|示例|例子|例|范例|用法示例|使用示例|範例",
}
_HEADINGS: dict[str, EntryKind] = {word.casefold(): kind for kind, words in _WORDS.items() for word in words.split("|")}
_HEADING = re.compile(rf"({'|'.join(sorted(_HEADINGS, key=len, reverse=True))})[ \t]*[:：][ \t]*", re.IGNORECASE)
_TITLE = re.compile(r"(\S.*?)[ \t]*[:：]?[ \t]*")
_UNDERLINE = re.compile(r"(-{3,}|={3,})[ \t]*")


def _with_first_section_indented(lines: list[str]) -> list[str]:
    """Restores the indentation below a heading in the first line: `inspect.cleandoc` removes it."""
    following = next((line for line in lines[1:] if line), "")
    is_lost = _HEADING.fullmatch(lines[0]) and following and not following[0].isspace()
    if not is_lost or _HEADING.fullmatch(following) or _UNDERLINE.fullmatch(following):
        return lines
    return [lines[0], *textwrap.indent("\n".join(lines[1:]), "    ").split("\n")]


def _numpy_section(lines: Sequence[str], start: int) -> tuple[int, Section | Prose] | None:
    if not _is_underlined(lines, start):
        return None
    end = start + 2
    while end < len(lines) and not _is_underlined(lines, end) and not _google_heading(lines, end):
        end += 1
    title = _TITLE.fullmatch(lines[start])
    kind = _HEADINGS.get(title[1].casefold()) if title else None
    heading = tuple(lines[start : start + 2])
    if kind is None:
        return end, Prose(lines=tuple(lines[start:end]))
    body = lines[start + 2 : end]
    if kind == "example":
        return end, Section(heading=heading, entries=(_example(body),))
    if kind == "returns":
        return end, Section(heading=heading, entries=(_numpy_returns(body),))
    items = [_numpy_entry(item, kind) for item in _split_items(body, _NUMPY_ITEM)]
    return end, Section(heading=heading, entries=tuple(items))


def _is_underlined(lines: Sequence[str], place: int) -> bool:
    has_title = place + 1 < len(lines) and bool(lines[place]) and not lines[place][0].isspace()
    return has_title and not _UNDERLINE.fullmatch(lines[place]) and bool(_UNDERLINE.fullmatch(lines[place + 1]))


def _google_heading(lines: Sequence[str], place: int) -> str:
    """Returns the heading of a Google section that begins here; else an empty text."""
    found = _HEADING.fullmatch(lines[place])
    following = next((line for line in lines[place + 1 :] if line), "")
    return found[1].casefold() if found and following[:1].isspace() else ""


def _google_section(lines: Sequence[str], start: int) -> tuple[int, Section] | None:
    title = _google_heading(lines, start)
    if not title:
        return None
    end = start + 1
    while end < len(lines) and (not lines[end] or lines[end][0].isspace()):
        end += 1
    kind, heading, body = _HEADINGS[title], tuple(lines[start : start + 1]), lines[start + 1 : end]
    if kind == "example":
        return end, Section(heading=heading, entries=(_example(body),))
    if kind == "returns":
        return end, Section(heading=heading, entries=(_google_returns(body),))
    pattern = _GOOGLE_ITEM if kind == "parameter" else _GOOGLE_ERROR
    items = [_google_entry(item, kind) for item in _split_items(body, pattern)]
    return end, Section(heading=heading, entries=tuple(items))


_NAME = r"[*`'\"\\]*[^\W\d][\w.]*[*`'\"]*"
_NAMES = rf"{_NAME}(?:[ \t]*[,/，、][ \t]*{_NAME})*"
_BULLET = r"(?:(?:[-*+•]|\d{1,2}[.)])[ \t]+)?"
_SEPARATOR = r"(?:[ \t]*[:：]|[ \t]+(?:-{1,2}|[–—])(?=[ \t]))"
_NESTED = r"[^()（）]*(?:[(（][^()（）]*[)）][^()（）]*)*"
_GOOGLE_ITEM = re.compile(
    rf"{_BULLET}(?P<names>{_NAMES})(?:[ \t]*[(（\[](?P<type>{_NESTED})[)）\]])?[*`]*{_SEPARATOR}(?P<text>.*)"
)
_GOOGLE_ERROR = re.compile(rf"{_BULLET}(?P<names>{_NAMES})(?P<type>)(?:{_SEPARATOR}(?P<text>.*)|[ \t]*)")
_NUMPY_ITEM = re.compile(rf"(?P<names>{_NAMES})[ \t]*(?:[:：](?P<type>.*))?")


@dataclass(frozen=True, slots=True)
class _DocItem:
    """The lines of an item without their common indentation. `head` is None for lines before the first item."""

    head: re.Match[str] | None
    lines: tuple[str, ...]

    @property
    def body(self) -> str:
        """The lines below the first one, without common indentation."""
        return textwrap.dedent("\n".join(self.lines[1:])).strip("\n")


def _split_items(lines: Sequence[str], pattern: re.Pattern[str]) -> list[_DocItem]:
    """Splits the lines of a section at each line of least indentation that the pattern matches.

    Such a line that matches nothing continues the item above it, or is an item without a head after an empty line.
    """
    if not lines:
        return []
    base = textwrap.dedent("\n".join(lines)).split("\n")
    found: list[tuple[re.Match[str] | None, list[str]]] = []
    for line, written in zip(base, lines, strict=True):
        is_flush = bool(line) and not line[0].isspace()
        head = pattern.fullmatch(line) if is_flush else None
        if head is not None or not found or (is_flush and not found[-1][1][-1].strip() and found[-1][0] is not None):
            found.append((head, [written]))
        else:
            found[-1][1].append(written)
    return [_DocItem(head, tuple(item)) for head, item in found if any(line.strip() for line in item)]


def _google_entry(item: _DocItem, kind: EntryKind) -> DocEntry:
    head = item.head
    if head is None:
        return DocEntry(kind="other", lines=item.lines)
    text = "\n".join(part for part in ((head["text"] or "").strip(), item.body) if part)
    written = (head["type"] or "").strip()
    return DocEntry(kind=kind, lines=item.lines, names=_split(head["names"]), type=written, text=text)


def _numpy_entry(item: _DocItem, kind: EntryKind) -> DocEntry:
    head = item.head
    if head is None:
        return DocEntry(kind="other", lines=item.lines)
    written = (head["type"] or "").strip()
    if kind == "raises":
        text = "\n".join(part for part in (written, item.body) if part)
        return DocEntry(kind=kind, lines=item.lines, names=_split(head["names"]), text=text)
    return DocEntry(kind=kind, lines=item.lines, names=_split(head["names"]), type=written, text=item.body)


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip(" \t*`'\"\\") for name in re.split("[,/，、]", names))


def _example(body: Sequence[str]) -> DocEntry:
    return DocEntry(kind="example", lines=tuple(body), text=textwrap.dedent("\n".join(body)).strip("\n"))


_TYPE_THEN_TEXT = re.compile(r"(?P<type>[^:：\s]+|[^:：\n]*\])[ \t]*[:：](?!\S*://)[ \t]*(?P<text>.*)", re.DOTALL)
_TYPE_ALONE = re.compile(r"[\w.*]+(\[.*\])?( *(\||or) *[\w.]+(\[.*\])?)*")
_LATIN_TYPE = re.compile(r"[^\W\d][\w.]*(\[.*\])?", re.ASCII | re.DOTALL)


def _google_returns(body: Sequence[str]) -> DocEntry:
    text = textwrap.dedent("\n".join(body)).strip("\n")
    typed = _TYPE_THEN_TEXT.fullmatch(text)
    # A full-width colon also stands in prose.
    if typed is None or ("：" in text[typed.end("type") : typed.start("text")] and not _LATIN_TYPE.fullmatch(typed[1])):
        return DocEntry(kind="returns", lines=tuple(body), text=text)
    head, _, rest = typed["text"].partition("\n")
    described = "\n".join(part for part in (head, textwrap.dedent(rest).strip("\n")) if part)
    return DocEntry(kind="returns", lines=tuple(body), type=typed["type"], text=described)


def _numpy_returns(body: Sequence[str]) -> DocEntry:
    text = textwrap.dedent("\n".join(body)).strip("\n")
    head, _, rest = text.partition("\n")
    has_one_head = bool(rest) and all(not line or line[0].isspace() for line in rest.split("\n"))
    if has_one_head or (not rest and _TYPE_ALONE.fullmatch(head)):
        name, _, kind = head.rpartition(" : ")
        described = textwrap.dedent(rest).strip("\n")
        return DocEntry(
            kind="returns", lines=tuple(body), type=kind.strip(), text=f"{name}: {described}" if name else described
        )
    return DocEntry(kind="returns", lines=tuple(body), text=text)


_FIELD = re.compile(r"[:@](?P<word>[A-Za-z]+)(?:[ \t]+(?P<subject>[^:\n]*?))?[ \t]*:(?:[ \t](?P<text>.*)|)")
_FIELD_WORDS: dict[EntryKind, str] = {
    "parameter": "param parameter arg argument key keyword kwarg attribute var ivar cvar",
    "type": "type kwtype vartype",
    "returns": "return returns yield yields",
    "returns type": "rtype ytype",
    "raises": "raise raises except exception throws",
}
_FIELDS: dict[str, EntryKind] = {word: kind for kind, words in _FIELD_WORDS.items() for word in words.split()}


def _read_field(lines: Sequence[str], start: int) -> tuple[int, Section] | None:
    """Reads `:param int limit: text` or `@param limit: text`, with its continuation lines.

    A line without indentation continues the text, except after an empty line.
    """
    head = _FIELD.fullmatch(lines[start])
    kind = _FIELDS.get(head["word"].lower()) if head else None
    if head is None or kind is None:
        return None
    end = start + 1
    while end < len(lines) and not _FIELD.fullmatch(lines[end]) and not _google_heading(lines, end):
        if lines[end] and not lines[end][0].isspace() and not lines[end - 1]:
            break
        end += 1
    written = tuple(lines[start:end])
    rest = textwrap.dedent("\n".join(written[1:])).strip("\n")
    text = "\n".join(part for part in ((head["text"] or "").strip(), rest) if part)
    subject = (head["subject"] or "").strip()
    entry = DocEntry(kind="other", lines=written)
    if kind in ("returns", "returns type"):
        entry = DocEntry(kind=kind, lines=written, type=subject, text=text)
    elif subject:
        several = bool(re.fullmatch(_NAMES, subject))
        kind_of, _, name = ("", "", subject) if several or kind == "raises" else subject.rpartition(" ")
        entry = DocEntry(kind=kind, lines=written, names=_split(name), type=kind_of.strip(), text=text)
    return end, Section(entries=(entry,))
