"""The content of files: text in UTF-8, an image, or a PDF."""

from __future__ import annotations

import base64
import hashlib

from toolwire.builtin.files.lines import line_count, line_start
from toolwire.builtin.files.paths import FilePath, FileRefused
from toolwire.vocabulary.blocks import ImageBlock
from toolwire.vocabulary.media_bytes import image_type
from toolwire.vocabulary.texts.counting import count_of

READ_LIMIT_BYTES = 1024 * 1024
"""Maximum bytes that one read returns: more does not fit a model's context."""


def is_pdf(content: bytes) -> bool:
    """True for the first bytes of a PDF."""
    return content.startswith(b"%PDF-")


def image_of(content: bytes, media_type: str, path: FilePath) -> ImageBlock:
    """Returns the image as a block.

    Raises:
        FileRefused: It has more than `READ_LIMIT_BYTES`.
    """
    if len(content) > READ_LIMIT_BYTES:
        raise FileRefused(
            f"{path} is an image of {len(content):,} bytes; a read returns at most {READ_LIMIT_BYTES:,}: "
            "ask the user for a smaller one"
        )
    data = base64.b64encode(content).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def text_of(content: bytes, path: FilePath) -> str:
    """Returns the text of a file.

    Raises:
        FileRefused: It is an image, a PDF, or not UTF-8.
    """
    if is_pdf(content):
        raise FileRefused(f"{path} is a PDF, which cannot be changed here: read it with read_text_file")
    if image_type(content) is not None:
        raise FileRefused(f"{path} is an image, and not text: read it alone with read_text_file")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise FileRefused(f"{path} is not text in UTF-8, so it cannot be read or edited here") from None


def lines_of(text: str, start_line: int, read_lines: int | None, path: FilePath) -> str:
    """Returns some lines with their ends.

    Raises:
        FileRefused: The file has no such line, or they have more than `READ_LIMIT_BYTES`.
    """
    if start_line < 1 or (read_lines is not None and read_lines < 1):
        raise FileRefused("start_line and read_lines begin at 1")
    start = line_start(text, start_line)
    if start_line > 1 and start == len(text):
        raise FileRefused(f"start_line={start_line}: {path} has {count_of(line_count(text), 'line')}")
    found = text[start:]
    if read_lines is not None:
        found = found[: line_start(found, read_lines + 1)]
    if len(found) > READ_LIMIT_BYTES or len(found.encode()) > READ_LIMIT_BYTES:
        raise FileRefused(
            f"{path}: these lines are more than {READ_LIMIT_BYTES:,} bytes, the limit of one read. The file has "
            f"{count_of(line_count(text), 'line')}: give start_line and a smaller read_lines"
        )
    return found


def utf8_content(text: str, path: FilePath) -> bytes:
    """Returns the text in UTF-8.

    Raises:
        FileRefused: It has a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise FileRefused(f"{path}: the text has a lone surrogate, which UTF-8 cannot hold: leave it out") from None


def digest_of(content: bytes | None) -> str:
    """Returns the sha256 in hex; empty for a file that does not exist."""
    return "" if content is None else hashlib.sha256(content).hexdigest()
