"""A server that answers with the request, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.openapi.echo import Echo
from tests.openapi.servers import serving


@pytest.fixture(scope="module")
def echo() -> Iterator[tuple[Echo, str]]:
    """The app and its URL."""
    app = Echo()
    with serving(app) as url:
        yield app, url
