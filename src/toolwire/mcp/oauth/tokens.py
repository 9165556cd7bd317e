"""The logins of MCP servers: one file of the user, readable by no other user, keyed by the server's URL."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import anyio

from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.machine import system

LOCK_POLL_S = 0.02
"""Seconds between two looks at the lock of a renewal that another process makes."""

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLogin:
    """All that is kept of the login at one server. The tables are those of the OAuth specifications.

    Attributes:
        tokens: The token response: access token, refresh token, scope.
        expires_at: Seconds since the epoch at which the access token ends; None if the server did not say.
        client: The registration of this client.
        authorization_server: The metadata of the authorization server.
        resource: The metadata of the protected resource; None if the server has none.
        challenge: `WWW-Authenticate` of an answer that only a person's login can satisfy, after its status.
    """

    tokens: Mapping[str, Any] | None = None
    expires_at: float | None = None
    client: Mapping[str, Any] | None = None
    authorization_server: Mapping[str, Any] | None = None
    resource: Mapping[str, Any] | None = None
    challenge: tuple[int, str] | None = None

    @property
    def access_token(self) -> str | None:
        """The access token, which may have expired."""
        return None if self.tokens is None else self.tokens["access_token"]

    @property
    def fresh_token(self) -> str | None:
        """The access token if it has not expired."""
        return None if self.expires_at is not None and time.time() >= self.expires_at else self.access_token

    @property
    def has_refresh_token(self) -> bool:
        """True if a new access token can be asked for without a person."""
        return bool(self.tokens and self.tokens.get("refresh_token") and self.client)


def token_path() -> Path:
    """Returns the path of the file: `toolwire/mcp-tokens.json` in `$XDG_STATE_HOME` or `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "toolwire" / "mcp-tokens.json"


class TokenFile:
    """The file of tokens. Any thread or process may use it."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` is the file, which is made with its folder; None is that of `token_path`."""
        self.path = path or token_path()
        self._seen: tuple[int, ...] | None = None
        self._logins: Mapping[str, StoredLogin] = {}

    def read(self, key: str) -> StoredLogin:
        """Returns the login under a key. Reads the file only if it has changed.

        Raises:
            ConfigurationError: The file cannot be read, or another user can read it.
        """
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return StoredLogin()
        except OSError as error:
            raise ConfigurationError(f"{str(self.path)!r} cannot be read: {error.strerror}") from error
        # Each change is a new file.
        seen = (state.st_ino, state.st_mtime_ns, state.st_size, state.st_mode, state.st_uid)
        if seen != self._seen:
            if not system.is_private(state):
                raise ConfigurationError(
                    f"{str(self.path)!r} holds tokens, and another user may read it: chmod 600 {self.path}"
                )
            self._logins, self._seen = self._read(), seen
        return self._logins.get(key, StoredLogin())

    def save(self, key: str, login: StoredLogin) -> None:
        """Keeps a login under a key, in place of the one before.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        try:
            with self._open_lock(f"{self.path.name}.lock") as lock:
                system.lock(lock.fileno())
                self._write({**self._read(), key: login})
        except OSError as error:
            raise ConfigurationError(f"{str(self.path)!r} cannot be written: {error.strerror}") from error

    @asynccontextmanager
    async def renewing(self, key: str) -> AsyncGenerator[None]:
        """Waits until no other thread or process renews the login under this key.

        Raises:
            ConfigurationError: The folder cannot be written.
        """
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        try:
            lock = self._open_lock(f"{self.path.stem}.{digest}.lock")
        except OSError as error:
            raise ConfigurationError(f"{str(self.path.parent)!r} cannot be written: {error.strerror}") from error
        with lock:
            # A thread that waits for the lock could not be cancelled, and would take it in the end.
            while not system.try_lock(lock.fileno()):  # noqa: ASYNC110 - nothing tells of a file's lock
                await anyio.sleep(LOCK_POLL_S)
            yield

    def _open_lock(self, name: str) -> Any:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.fdopen(os.open(self.path.with_name(name), os.O_RDWR | os.O_CREAT, 0o600), "w")

    def _read(self) -> Mapping[str, StoredLogin]:
        try:
            kept = json.loads(self.path.read_text("utf-8"))
            if kept["version"] != _VERSION:
                raise ConfigurationError(f"{str(self.path)!r}: a newer toolwire wrote it; upgrade toolwire")
            return {key: _read_login(table) for key, table in kept["servers"].items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(f"{str(self.path)!r} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"{str(self.path)!r} is not a file of tokens: mend or delete it") from error

    def _write(self, logins: Mapping[str, StoredLogin]) -> None:
        # The file that mkstemp makes can be read by its owner alone.
        number, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}-")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, "servers": {key: asdict(login) for key, login in logins.items()}}, file)
            file.flush()
            # A refresh token counts once: the old one no longer works after a loss of power.
            os.fsync(number)
        Path(name).replace(self.path)


def _read_login(table: Mapping[str, Any]) -> StoredLogin:
    known = {field.name: table.get(field.name) for field in fields(StoredLogin)}
    challenge = known.pop("challenge")
    login = StoredLogin(**known, challenge=None if challenge is None else (int(challenge[0]), str(challenge[1])))
    if login.tokens is not None and not isinstance(login.access_token, str):
        raise TypeError("access_token")
    return login
