"""Files of variables, as `envFile` in the entry of a server names them: lines such as `TOKEN=abc`."""

from __future__ import annotations

import io
from pathlib import Path

from toolwire.runtime.extras import packages_of


def read_env_file(path: str) -> dict[str, str]:
    """Returns the variables of a file, as python-dotenv reads them. A variable in a value is not filled in.

    Raises:
        ValueError: The file cannot be read, or a line is not `NAME=value`. The message says what to do.
        ConfigurationError: The extra `toolwire[mcp]` is not installed.
    """
    with packages_of("mcp", "envFile"):
        from dotenv.parser import parse_stream
    try:
        text = Path(path).read_text("utf-8").removeprefix("\ufeff")
    except (OSError, ValueError) as error:
        raise ValueError(f"{path!r} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for line in parse_stream(io.StringIO(text)):
        written = line.original.string
        if line.key is not None and line.value is not None:
            found[line.key] = line.value
        elif line.error or line.key is not None:
            blanks = written[: len(written) - len(written.lstrip())]
            # The line itself may be a secret.
            raise ValueError(
                f"line {line.original.line + blanks.count(chr(10))} of {path!r} is not a variable: write NAME=value"
            )
    return found
