"""The guest: CPython 3.14 and the child's code, compiled to WebAssembly. The wheel carries it packed; git does not."""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolwire.vocabulary.errors import SandboxUnavailable

FOLDER = Path(__file__).resolve().parent
PACKED, ABOUT = "guest.wasm.xz", "guest.json"
_CHILD = FOLDER.parent / "child"
_OF_PROCESSES = frozenset({"kernel", "fork_server.py", "start.py"})
"""What only a process of Linux needs."""
_BUILD = "Install toolwire from its wheel, or build the guest in a checkout: make wasm"


@dataclass(frozen=True, slots=True)
class Guest:
    """What is known of the guest without unpacking it.

    Attributes:
        digest: SHA-256 of its bytes, in hex digits. It names the guest in records of programs.
        python: The version of its interpreter.
    """

    digest: str
    python: str

    @property
    def replay_engine(self) -> str:
        """The environment that a record belongs to: this guest, on any system and Python."""
        return f"wasm-{self.digest[:16]}"

    def unpack(self) -> bytes:
        """Returns its bytes; takes a second.

        Raises:
            SandboxUnavailable: They are missing or damaged.
        """
        try:
            data = lzma.decompress((FOLDER / PACKED).read_bytes())
        except (OSError, lzma.LZMAError) as error:
            raise _unusable(f"cannot be read: {error}") from None
        if hashlib.sha256(data).hexdigest() != self.digest:
            raise _unusable("is damaged")
        return data


@functools.cache
def guest() -> Guest:
    """Returns the guest that this package carries.

    Raises:
        SandboxUnavailable: There is none, or it was built from other code than this package has.
    """
    try:
        about = json.loads((FOLDER / ABOUT).read_text("utf-8"))
        found, source = Guest(about["digest"], about["python"]), about["source"]
    except (OSError, ValueError, KeyError, TypeError):
        raise _unusable("is missing") from None
    if source != source_digest():
        raise _unusable("was built from other code than this package has")
    return found


def source_digest() -> str:
    """Returns SHA-256 of the code that the guest is built from, in hex digits."""
    digest = hashlib.sha256()
    for file in source_files():
        text = file.read_bytes()
        digest.update(b"%s %d\n%s" % (file.relative_to(_CHILD).as_posix().encode(), len(text), text))
    return digest.hexdigest()


def source_files() -> Iterator[Path]:
    """Yields the files of the child's code that belong to the guest, in a fixed order."""
    for file in sorted(_CHILD.rglob("*.py")):
        if file.relative_to(_CHILD).parts[0] not in _OF_PROCESSES:
            yield file


def _unusable(problem: str) -> SandboxUnavailable:
    return SandboxUnavailable(f"the WebAssembly guest of toolwire {problem}", report={}, how_to_fix=f"{_BUILD}.")
