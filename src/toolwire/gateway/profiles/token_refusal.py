"""The refusal of a token, which says why."""

from __future__ import annotations

from starlette.authentication import AuthenticationError

UNAVAILABLE = 503
"""The status of a token that cannot be checked now."""

RETRY_AFTER_S = 5.0
"""Seconds after which such a request may be sent again: the pause between two attempts to reach the issuer."""


class TokenRefused(AuthenticationError):
    """The token of a request gives nothing.

    Attributes:
        status: 401, 403 or 503.
        error: The code of RFC 6750.
    """

    def __init__(self, status: int, error: str, said: str) -> None:
        super().__init__(said)
        self.status, self.error = status, error
