"""The calls of a disk on Linux, and those of other POSIX systems, which Linux has too."""

from __future__ import annotations

import pytest

from toolwire.builtin.files.disk_calls import LINUX, POSIX, DiskCalls


@pytest.fixture(params=[LINUX, POSIX], ids=["linux", "posix"])
def calls(request: pytest.FixtureRequest) -> DiskCalls:
    return request.param
