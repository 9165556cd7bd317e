"""Similar names: the registered name that an unknown one means, and names that readers confuse."""

from __future__ import annotations

import unicodedata

from toolwire.sandbox.child.failures.nearest_name import nearest_name as nearest
from toolwire.vocabulary.texts.normal_forms import normalize_text

__all__ = ["nearest", "skeleton", "suggestion"]


def suggestion(name: str | None) -> str:
    """Returns `; did you mean 'search'?`, or an empty text."""
    return f"; did you mean {name!r}?" if name else ""


_LETTERS = str.maketrans(
    {
        **dict(zip("аеорсухіјѕһԁԛԝѵкмтвнгп", "aeopcyxijshdqwvkmtbhrn", strict=True)),
        **dict(zip("αβγεηικνορτυχω", "abyenikvoptuxw", strict=True)),
        **dict(zip("ıɑɡɩʋƅһ", "iagivbh", strict=True)),
        "0": "o",
        "1": "l",
        "i": "l",
        "|": "l",
        "-": None,
        "_": None,
        ".": None,
        "/": None,
        ":": None,
        " ": None,
    }
)
"""Maps letters and digits to the Latin letters they look like, and removes separators."""


def skeleton(name: str) -> str:
    """Returns a text that is equal for names that look alike."""
    if name.isascii():
        return name.lower().translate(_LETTERS)
    plain = normalize_text("NFKD", name).lower()
    # Translated twice: the Latin letter for a Cyrillic one may itself have a replacement.
    bare = "".join(character for character in plain if not unicodedata.combining(character))
    return bare.translate(_LETTERS).translate(_LETTERS)
