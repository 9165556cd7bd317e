"""Code of toolwire that asks which system this is gets another answer."""

from __future__ import annotations

import pytest

from toolwire.vocabulary.machine import system


def pretend_system(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers with a name of `sys.platform`. The names of the standard library stay those of Linux."""
    monkeypatch.setattr(system, "PLATFORM", name)
    monkeypatch.setattr(system, "IS_LINUX", name == "linux")
