"""Secrets are redacted from texts that are written for reading, and the rest is unchanged."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import toolwire.journal.log.chain
from tests.journal.log.secrets import FORMS
from tests.journal.world import done, request, run_start, start, step
from tests.processor import LINEAR, growth
from toolwire import ToolRegistry
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.log.redaction import REDACTED, redact
from toolwire.journal.store import Store
from toolwire.permission.approval import Decision
from toolwire.vocabulary.results import ToolResult


@pytest.mark.threat(61)
@pytest.mark.parametrize("place", range(len(FORMS)))
def test_every_known_form_is_taken_out(place: int) -> None:
    value, secret = FORMS[place]
    assert len(FORMS) >= 40
    assert secret in repr(value)
    assert secret not in repr(redact(value))
    if isinstance(value, str):
        assert secret not in repr(redact({"text": f"before {value} after"}))
    assert redact(redact(value)) == redact(value)


@pytest.mark.parametrize(
    "value",
    [
        {"max_tokens": 100, "completion_tokens": 7, "token_count": 3},
        {"text": "The secret of a good soup is time. Keep a token of it."},
        {"url": "https://example.org/a?page=2#top", "code": "x = 1", "key": "id"},
        {"path": "/tmp/secrets.txt", "rows": [[1, 2], ["a", "b"]], "none": None, "yes": True},
        {"password": None, "has_token": False},
        "sk-learn and risk-free, a basic idea, the bearer of news",
        "2024-05-01T12:00:00+00:00",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ],
    ids=range(8),
)
def test_a_text_that_is_not_a_secret_stays(value: Any) -> None:
    assert redact(value) == value


def test_text_around_a_secret_stays() -> None:
    assert redact("GET https://me:hunter2@example.org/a?token=abc1&page=2") == (
        f"GET https://{REDACTED}@example.org/a?token={REDACTED}&page=2"
    )


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "password",
        "password=",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJ",
        "a://",
        "Bearer ",
        "sk-",
        "'token' : ",
        "=-",
    ],
)
def test_long_texts_take_linear_time(unit: str) -> None:
    text = (unit * 65_536)[:65_536]
    assert growth(redact, text[:16_384], text) <= LINEAR


def as_text(value: Any) -> str:
    """The value as part of a message: secrets inside texts are recognised by their look."""
    return value if isinstance(value, str) else f"a value like {sorted(value)}"


def pay(amount: int, options: Any) -> Any:
    """Pays."""
    if amount < 0:
        raise ValueError(f"cannot: {as_text(options)}")
    return {"back": options}


def everything_that_is_written(store: Store) -> None:
    """Every form goes in as argument, result and error of logged calls, and through a run's ledger."""
    registry = ToolRegistry()
    registry.register(pay)
    registry.enable_logging(store=store)
    for number, (value, _) in enumerate(FORMS):
        assert registry.invoke("pay", {"amount": 1, "options": value}).data == {"back": value}
        assert not registry.invoke("pay", {"amount": -1, "options": value}).success
        reply = {"calls": [{"arguments": {"options": value}}], "text": as_text(value)}
        ledger = done(store.start(run_start(f"r_secret_{number}", reply=reply)))
        asked = request(ledger, arguments={"options": value}, reasons=(as_text(value),))
        done(ledger.ask(asked))
        store.decide(asked.id, Decision(verdict="deny", reason=as_text(value)))
        of = step(options=value)
        done(ledger.begin(dataclasses.replace(start(of), arguments={"options": value})))
        ledger.note("1", {"note": value})
        done(ledger.settle(of, ToolResult.failed("tool_error", as_text(value), data={"more": value})))
        done(ledger.finish([ToolResult(True, value)]))
    assert registry.get_execution_log() is not None


def raw(folder: Path) -> bytes:
    """Every byte of the database and its side files."""
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.name.startswith("runs.db"))


def found_in(data: bytes) -> int:
    escaped = [secret.replace("\\", "\\\\") for _, secret in FORMS]
    return sum(1 for secret in escaped if secret.encode() in data)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TOOLWIRE_KEY", raising=False)
    return tmp_path


@pytest.mark.threat(61)
def test_no_secret_stands_in_the_database(folder: Path) -> None:
    with Store.open(f"sqlite:///{folder}/runs.db") as store:
        everything_that_is_written(store)
        entries = repr(store.log())
        assert [secret for _, secret in FORMS if secret in entries] == []
        assert store.verify().is_whole
        assert found_in(raw(folder)) == 0
    assert found_in(raw(folder)) == 0
    # The log says what happened all the same.
    with closing(sqlite3.connect(folder / "runs.db")) as connection:
        assert connection.execute("SELECT count(*) FROM log WHERE tool = 'pay' AND kind = 'call'").fetchone() == (
            2 * len(FORMS),
        )


@pytest.mark.threat(61)
def test_without_redaction_and_sealing_every_secret_stands_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolwire.journal.log.chain, "redact", lambda value: value)
    monkeypatch.setattr(Sealer, "_encrypt", lambda self, nonce, data, place: data)
    monkeypatch.setattr(Sealer, "open", lambda self, sealed, *place: sealed)
    with Store.open(f"sqlite:///{folder}/runs.db") as store:
        everything_that_is_written(store)
        store.log()
        assert found_in(raw(folder)) == len(FORMS)
