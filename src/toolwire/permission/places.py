"""Where a path or a URL leads, as far as its text alone can tell."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from toolwire.permission.spelling import fold

_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\\]+", re.ASCII)


def under(path: str, folder: str) -> bool | None:
    """Whether the path is the folder or below it, by whole parts; None when the text does not say.

    It does not say with `..` (a link may stand in between), `~`, a backslash or an escape; nor when one of both is
    relative and the other is not; nor where both are the same but for spelling. Links are not followed.
    """
    if not _is_plain(path) or path.startswith("/") != folder.startswith("/"):
        return None
    parts, wanted = _parts(path), _parts(folder)
    if parts[: len(wanted)] == wanted:
        return True
    return None if _folded(parts)[: len(wanted)] == _folded(wanted) else False


def usable_path(folder: object) -> str:
    """What is wrong with a rule's folder; empty when nothing is."""
    if not isinstance(folder, str) or not folder:
        return "write a folder, as '/srv/data'"
    return "" if _is_plain(folder) else "write a folder without '..', '~', backslashes and escapes"


def _is_plain(path: str) -> bool:
    if not path or path.startswith("~") or "\\" in path or "%" in path or not path.isprintable() or "://" in path:
        return False
    return ".." not in path.split("/")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _folded(parts: Sequence[str]) -> list[str]:
    return [fold(part).strip() for part in parts]


def host_in(url: str, hosts: Sequence[str]) -> bool | None:
    """Whether the URL's host is one of these, or below one that begins with `*.`; None when the text does not say.

    It does not say where programs read a URL in different ways: a name or password in it, a backslash, white space,
    letters outside of ASCII (write `xn--`), an address in another form than four numbers.
    """
    host = _host(url)
    if host is None:
        return None
    wanted = [each.lower().rstrip(".") for each in hosts]
    return host in wanted or any(host.endswith(each[1:]) for each in wanted if each.startswith("*."))


def usable_host(host: str) -> str:
    """What is wrong with a rule's host; empty when nothing is."""
    name = host.lower().removeprefix("*.").rstrip(".")
    is_address = name.startswith("[") and name.endswith("]")
    if is_address or _HOST.fullmatch(name):
        return ""
    return f"{host!r} is no host: write a name as 'example.com', '*.example.com' for those below, no scheme or port"


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
    """Whether it is a number in disguise: `127.1`, `0x7f000001`, `0177.0.0.1`."""
    last = host.rpartition(".")[2]
    if not last.isdigit() and not re.fullmatch(r"0x[0-9a-f]*", last):
        return False
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return True
    return False
