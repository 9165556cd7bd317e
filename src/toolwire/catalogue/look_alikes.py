"""Names that a reader takes for each other: other alphabets, case, and marks between words."""

from __future__ import annotations

import unicodedata

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
"""Letters of Cyrillic, Greek and phonetic alphabets that look like Latin ones, and what names differ in unseen."""


def skeleton(name: str) -> str:
    """The same text for names that look alike."""
    if name.isascii():
        return name.lower().translate(_LETTERS)
    plain = unicodedata.normalize("NFKD", name).lower()
    # Translated twice: a Cyrillic letter may become one that is itself replaced.
    bare = "".join(character for character in plain if not unicodedata.combining(character))
    return bare.translate(_LETTERS).translate(_LETTERS)
