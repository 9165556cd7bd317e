"""Makes untrusted text safe to read: invisible and misleading characters are escaped."""

from __future__ import annotations

import re
import unicodedata

from toolwire.vocabulary.texts.normal_forms import normalize_text

_BLANK = frozenset(
    {
        "\u034f",  # combining grapheme joiner
        "\u115f",  # Hangul fillers: letters without a glyph
        "\u1160",
        "\u17b4",  # Khmer vowels without a glyph
        "\u17b5",
        "\u2800",  # Braille without dots
        "\u3164",
        "\uffa0",
        "\U0001d159",  # a null note head
    }
)
"""Characters without a glyph whose category is letter, mark or symbol."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_MARKS_LIMIT = 2
"""Maximum marks on one letter; Vietnamese needs two. More marks would cover the line above."""

_WORD = re.compile(r"\w+")
_LATIN_LOOKALIKES = frozenset("АВЕЅІЈКМНОРСТУХаеорсухѕіјһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧονιυρακՕՏսոօցһ")
"""Cyrillic, Greek and Armenian letters that look like Latin ones."""

_LOOKALIKES_MIN = 3
"""Minimum letters of a word that consists of look-alikes and may be taken for a Latin word."""


def visible_text(text: str, *, ascii_only: bool = False) -> str:
    """Returns the text for a terminal: nothing in it controls the terminal, hides, or overwrites the line.

    Line ends, tabs and backslashes stay. Every other character that `visible` escapes is escaped on its own, so that
    the text can be cut anywhere.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(visible(line, ascii_only=ascii_only, keep="\t\\") for line in lines)


def visible(text: str, *, ascii_only: bool = False, keep: str = "") -> str:
    """Returns the text on one line, with each character recognisable.

    It escapes as Python does: controls, line ends, bidirectional and zero-width characters, tags, spaces other than the
    ordinary one, lone surrogates, unassigned characters, more than two marks on a letter, and the backslash. Characters
    in `keep` stay.
    """
    if text.isascii() and text.isprintable() and ("\\" in keep or "\\" not in text):
        return text
    shown: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category[0] == "M" else 0
        plain = marks <= _MARKS_LIMIT and not _is_hidden(character, category) and not (marks and not shown)
        if ascii_only and character > "~":
            plain = False
        shown.append(character if (plain and character != "\\") or character in keep else _escape_of(character))
    return "".join(shown)


def looks_like_another(text: str) -> bool:
    """True if a person may take the text for another one.

    That is the case with right-to-left letters, which swap places with their neighbours, and with words of several
    alphabets. It is also the case with letters that look like Latin ones, and with special forms of plain characters.
    """
    if text.isascii():
        return False
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text):
        return True
    if normalize_text("NFC", text) != text or any(map(_is_a_form, text)):
        return True
    return any(_is_mixed(word) for word in _WORD.findall(text))


def _is_a_form(character: str) -> bool:
    """True for a letter or digit of ASCII in another form: full width, mathematical, circled."""
    if character.isascii():
        return False
    simple = unicodedata.normalize("NFKC", character)
    return simple != character and simple.isascii() and simple.isalnum()


def _is_hidden(character: str, category: str) -> bool:
    if character == " ":
        return False
    if category in _HIDDEN_CATEGORIES or character in _BLANK:
        return True
    code = ord(character)
    # Variation selectors, including Mongolian ones. They choose the glyph of another character, or carry invisible
    # data.
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F


def _escape_of(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_mixed(word: str) -> bool:
    if word.isascii():
        return False
    letters = [character for character in word if character.isalpha()]
    if all(letter.isascii() or letter in _LATIN_LOOKALIKES for letter in letters):
        looks = [letter for letter in letters if letter in _LATIN_LOOKALIKES]
        # A short word of look-alikes alone is genuine: Russian has many.
        return bool(looks) and (len(looks) < len(letters) or len(looks) >= _LOOKALIKES_MIN)
    alphabets = {_alphabet(letter) for letter in letters}
    return len(alphabets & _ALPHABETS) > 1


_ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "GEORGIAN", "LISU"})
"""Alphabets whose letters are confused with each other. Japanese and Chinese words mix scripts legitimately."""


def _alphabet(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
