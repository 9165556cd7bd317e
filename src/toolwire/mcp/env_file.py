"""Files of variables, as `envFile` in the entry of a server names them: lines such as `TOKEN=abc`."""

from __future__ import annotations

import re
from pathlib import Path

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", re.ASCII)
_QUOTED = re.compile(r"""(?P<mark>["'])(?P<text>.*)(?P=mark)\s*(#.*)?""")
_ESCAPE = re.compile(r"\\([nrt\"\\$])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(path: str) -> dict[str, str]:
    """Returns the variables of a file. A value may be in quotes, and a comment begins with `#`.

    Raises:
        ValueError: The file cannot be read, or a line is not `NAME=value`. The message says what to do.
    """
    try:
        text = Path(path).read_text("utf-8").removeprefix("\ufeff")
    except (OSError, ValueError) as error:
        raise ValueError(f"{path!r} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        # The line itself may be a secret.
        if (parts := _LINE.fullmatch(written)) is None:
            raise ValueError(f"line {number} of {path!r} is not a variable: write NAME=value")
        found[parts[1]] = _value_of(parts[2])
    return found


def _value_of(written: str) -> str:
    quoted = _QUOTED.fullmatch(written)
    if quoted is None:
        return re.split(r"(?:^|\s)#", written, maxsplit=1)[0].strip()
    if quoted["mark"] == "'":
        return quoted["text"]
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), quoted["text"])
