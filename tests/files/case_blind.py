"""A disk that finds each name in every case, as those of macOS do."""

from __future__ import annotations

import os
from typing import Any

CALLS = ("open", "stat", "unlink", "mkdir", "rmdir", "rename", "link")
"""The functions of `os` that find a name below a descriptor."""


class CaseBlindOs:
    """The module `os`, with calls that take the name that is there for every case of it."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(first: Any, *others: Any, **keywords: Any) -> Any:
            second = others[:1]
            if name in ("rename", "link"):
                second = (_there(others[0], keywords.get("dst_dir_fd")),)
            below = keywords.get("dir_fd", keywords.get("src_dir_fd"))
            return real(_there(first, below), *second, *others[1:], **keywords)

        return call


def _there(name: Any, below: int | None) -> Any:
    if below is None or not isinstance(name, str) or "/" in name:
        return name
    folder = os.open(".", os.O_RDONLY, dir_fd=below)
    try:
        with os.scandir(folder) as entries:
            return next((each.name for each in entries if each.name.casefold() == name.casefold()), name)
    finally:
        os.close(folder)
