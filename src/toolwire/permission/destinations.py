"""Decides from the text of a path or a URL where it leads."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import urlsplit

from toolwire.vocabulary.texts.normal_forms import normalize_text

_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\\]+", re.ASCII)


def under(path: str, folder: str) -> bool | None:
    """True if the path is the folder or lies below it, compared by whole parts; None if the text does not tell.

    The text does not tell if it contains `..` (a link may come in between), `~`, a backslash or an escape. It also does
    not tell if only one of the two is relative, or if both differ only in spelling. Links are not followed.
    """
    if not _is_plain(path) or path.startswith("/") != folder.startswith("/"):
        return None
    parts, wanted = _parts(path), _parts(folder)
    if parts[: len(wanted)] == wanted:
        return True
    return None if _fold_parts(parts)[: len(wanted)] == _fold_parts(wanted) else False


def usable_path(folder: object) -> str:
    """Returns the problem with a rule's folder; empty if it is valid."""
    if not isinstance(folder, str) or not folder:
        return "write a folder, as '/srv/data'"
    return "" if _is_plain(folder) else "write a folder without '..', '~', backslashes and escapes"


def _is_plain(path: str) -> bool:
    if not path or path.startswith("~") or "\\" in path or "%" in path or not path.isprintable() or "://" in path:
        return False
    return ".." not in path.split("/")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _fold_parts(parts: Sequence[str]) -> list[str]:
    return [fold(part).strip() for part in parts]


def host_in(url: str, hosts: Sequence[str]) -> bool | None:
    """True if the URL's host is in the list, or is a subdomain of a `*.` entry; None if the text does not tell.

    The text does not tell if programs read the URL in different ways. Such a URL has a user name or password, a
    backslash, white space, non-ASCII letters (write `xn--`), or an address that is not four numbers.
    """
    host = _host(url)
    if host is None:
        return None
    wanted = [each.lower().rstrip(".") for each in hosts]
    return host in wanted or any(host.endswith(each[1:]) for each in wanted if each.startswith("*."))


def usable_host(host: str) -> str:
    """Returns the problem with a rule's host; empty if it is valid."""
    name = host.lower().removeprefix("*.").rstrip(".")
    is_address = name.startswith("[") and name.endswith("]")
    if is_address or _HOST.fullmatch(name):
        return ""
    return f"{host!r} is not a host: write a name as 'example.com', '*.example.com' for those below, no scheme or port"


def _host(url: str) -> str | None:
    if not _URL.fullmatch(url) or not url.isascii() or not url.isprintable():
        return None
    try:
        split = urlsplit(url)
        host, _ = split.hostname, split.port
        if not host or "@" in split.netloc or "%" in split.netloc:
            return None
        if "[" in split.netloc:
            return f"[{ipaddress.IPv6Address(host).compressed}]"
    except ValueError:
        return None
    host = host.removesuffix(".")
    return host if _HOST.fullmatch(host) and not _is_odd_address(host) else None


def _is_odd_address(host: str) -> bool:
    """True for an address in an unusual form: `127.1`, `0x7f000001`, `0177.0.0.1`."""
    last = host.rpartition(".")[2]
    if not last.isdigit() and not re.fullmatch(r"0x[0-9a-f]*", last):
        return False
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return True
    return False


_INVISIBLE = frozenset({"Cf", "Cn", "Co", "Cs"})
_SELECTORS = frozenset(chr(code) for code in (0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10)))


def fold(text: str) -> str:
    """Removes case, width and invisible characters. A run of spaces and control characters becomes one space.

    Letters that only look alike, such as a Latin and a Cyrillic `a`, stay different: every tool treats them as
    different.
    """
    if not text.isascii():
        visible = (
            letter
            for letter in normalize_text("NFKC", text)
            if letter not in _SELECTORS and unicodedata.category(letter) not in _INVISIBLE
        )
        text = normalize_text("NFKC", "".join(visible).casefold())
    spaced = "".join(letter if letter.isprintable() and not letter.isspace() else " " for letter in text.lower())
    while "  " in spaced:
        spaced = spaced.replace("  ", " ")
    return spaced
