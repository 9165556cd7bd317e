"""The features of clients that a server behind a gateway may use: sampling and roots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

SAMPLE, ROOTS = "sampling:create", "roots:list"
"""The requests of a server to the client that called it. The call of a request has the server's name and `/` before."""

Feature = Literal["sampling", "roots"]
"""What a server may want of a client."""

FEATURES: Mapping[Feature, str] = {"sampling": SAMPLE, "roots": ROOTS}
"""The request by which a server wants a feature."""
