"""Removes secrets from the readable log, by their names and by their patterns.

It cannot know every secret: a secret without a telling name or a known pattern stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

REDACTED = "<redacted>"

_NAMES = (
    "password|passwd|passphrase|passcode|pwd|secret|token|api[_-]?key|apikey|authorization|auth[_-]?header|cookie|"
    "private[_-]?key|access[_-]?key|account[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?|session[_-]?id|"
    "sessid|bearer|otp|mfa[_-]?code|webhook[_-]?url|connection[_-]?string|dsn"
)
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
_COUNT_NAME = re.compile(r"tokens$|token[_-]?(count|limit|budget|usage|type)s?$|_tokens_", re.IGNORECASE)
"""Names that count a model's tokens."""
_HEADER_NAMES = frozenset({"name", "key", "header"})

_LOOKS = (
    # Private keys in PEM, with or without the end line.
    (re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,.-]*"), REDACTED),
    # user:password@ in a URL or connection string.
    (re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s/@\"'<>]{1,512}@"), rf"\1{REDACTED}@"),
    (
        re.compile(r"(?i)\b(bearer|basic|digest|negotiate)(\s+)(?=[^\s]*[0-9=._~+/-])[A-Za-z0-9._~+/=-]{6,}"),
        rf"\1\2{REDACTED}",
    ),
    (
        re.compile(r"(?i)\b((?:set-)?cookie|(?:proxy-)?authorization|x-api-key)(\s*:\s*)[^\r\n]{1,8192}"),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"), REDACTED),
    (
        re.compile(
            r"\b(?:sk|rk|pk)[-_](?:live|test|ant|proj|or|svcacct|admin)?[-_]?[A-Za-z0-9_-]{16,}"
            r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bgl(?:pat|dt|rt|soat)-[A-Za-z0-9_-]{16,}"
            r"|\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{16,}"
            r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}|\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{30,}"
            r"|\bpypi-[A-Za-z0-9_-]{30,}|\bdop_v1_[a-f0-9]{32,}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
            r"|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{24,}|\bwhsec_[A-Za-z0-9+/=]{16,}|\bSK[a-f0-9]{32}\b"
            r"|\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\bATATT[A-Za-z0-9_=-]{20,}"
            r"|\bAGE-SECRET-KEY-1[A-Z0-9]{40,}|\btvly-[A-Za-z0-9-]{16,}|\bkey-[a-f0-9]{32}\b"
        ),
        REDACTED,
    ),
    (re.compile(r"(https://hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]+"), rf"\1{REDACTED}"),
    (re.compile(r"(https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/)[A-Za-z0-9/_-]+"), rf"\1{REDACTED}"),
    # name=value and name: value in queries, forms, connection strings, command lines, and JSON in text.
    (
        re.compile(
            rf"(?i)((?=[?&;abcdeopmsptw])(?:{_NAMES}|[?&;](?:key|sig|signature|code|auth|jwt))[A-Za-z0-9_-]{{0,32}}[\"']?"
            r"(?:\s{0,4}[=:]\s{0,4}|\s{1,4}(?=[\"'A-Za-z0-9+/_-]*[0-9+/=_!@#$%^&*-]))[\"']?)"
            r"(?!<redacted>)(?:(?<=\")[^\"\r\n]{1,4096}|(?<=')[^'\r\n]{1,4096}|[^\s\"',;&<>]{1,4096})"
        ),
        rf"\1{REDACTED}",
    ),
)

_GAP = re.compile(r"[\s=:]")
_WORD_LOOKS = tuple(look for look in _LOOKS if look[0].pattern.startswith((r"\beyJ", r"\b(?:sk")))
"""The secrets without a white space, `=` or `:` in them. Most texts of the log are single words."""
_WORD_MIN = 14
"""Characters of the shortest of them: `eyJ`, six, a dot, four."""


def redact(value: Any) -> Any:
    """Returns a copy of a JSON value with `<redacted>` in place of every secret that can be recognised."""
    if isinstance(value, str):
        return redact_text(value)
    # Of the rest most are numbers. To ask whether one is a mapping takes longer than all else here.
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return _redact_mapping(cast("Mapping[Any, Any]", value))
    if isinstance(value, list | tuple):
        return _redact_items(list(cast("list[Any]", value)))
    return value


def redact_text(text: str) -> str:
    """Returns the text with every recognised secret replaced."""
    looks = _LOOKS if _GAP.search(text) else _WORD_LOOKS if len(text) >= _WORD_MIN else ()
    for pattern, instead in looks:
        text = pattern.sub(instead, text)
    return text


def is_secret_name(name: object) -> bool:
    """True if a value under this name is likely to be a secret."""
    return isinstance(name, str) and _is_secret(str.__str__(name))


@lru_cache(1_000)
def _is_secret(name: str) -> bool:
    """Says the same of a text. The same few names come again and again."""
    return bool(_SECRET_NAME.search(name)) and not _COUNT_NAME.search(name)


def _redact_mapping(value: Mapping[Any, Any]) -> dict[Any, Any]:
    # A header in the form {"name": "Authorization", "value": ...}.
    names_value = "value" in value and any(is_secret_name(value.get(name)) for name in _HEADER_NAMES)
    return {
        redact(name): _hide_secret(item) if is_secret_name(name) or (names_value and name == "value") else redact(item)
        for name, item in value.items()
    }


def _redact_items(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for place, item in enumerate(items):
        before = items[place - 1] if place else None
        # A pair, or a command-line option and its value.
        follows_name = is_secret_name(before) and (len(items) == 2 or str(before).startswith("-"))
        found.append(_hide_secret(item) if follows_name and len(str(before)) <= _NAME_LIMIT else redact(item))
    return found


def _hide_secret(value: Any) -> Any:
    """Hides a secret but shows whether one was set."""
    return value if value is None or isinstance(value, bool) else REDACTED


_NAME_LIMIT = 64
"""Maximum characters of a name. A longer text that contains such a word is a sentence."""
