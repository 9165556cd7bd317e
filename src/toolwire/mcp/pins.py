"""Pins: which definitions of a server's tools were accepted. One that changes is off until it is accepted."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from toolwire.vocabulary.errors import ConfigurationError, RegistrationError
from toolwire.vocabulary.machine import system

Accept = Literal["first", "none", "all"]
"""Which definitions count without a person: those of a server that is seen for the first time, none, or all."""
Wait = Literal["new", "changed"]
"""Why a tool waits: the server had it not before, or it has another definition."""

ACCEPTS: tuple[Accept, ...] = ("first", "none", "all")
_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_VERSION = 1


def digest_of(tool: Any) -> str:
    """Returns the digest of all that a model or a rule reads of a tool, in hex."""
    value = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    known = {name: value[name] for name in _FIELDS if name in value}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


class McpPins:
    """The accepted definitions and those that wait, by server and tool. Any thread or process may use the file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """`path` is a JSON file, which is made with its folder. None keeps the pins in memory."""
        self.path = None if path is None else Path(path)
        self._kept: dict[str, Any] = {}
        self._lock = threading.Lock()

    def check(self, server: str, digests: Mapping[str, str], accept: Accept) -> dict[str, Wait]:
        """Returns the tools that are off, each with the reason. `digests` are those of all tools of the server.

        Raises:
            ConfigurationError: The file cannot be read or written.
        """
        with self._changing() as servers:
            is_known = server in servers
            entry = servers.setdefault(server, {"accepted": {}, "waiting": {}})
            accepted: dict[str, str] = entry["accepted"]
            if accept == "all" or (accept == "first" and not is_known):
                accepted.update(digests)
            off = _off(accepted, digests)
            entry["waiting"] = {name: digests[name] for name in off}
            return off

    def off(self, server: str, digests: Mapping[str, str]) -> dict[str, Wait]:
        """Returns the tools that are off, as `check` does with "first", and changes nothing.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        entry = self._read().get(server)
        return {} if entry is None else _off(entry["accepted"], digests)

    def accept(self, server: str, tools: Iterable[str] | None = None) -> list[str]:
        """Accepts the definitions that wait: of these tools, or of all. Returns the names of the tools.

        Raises:
            RegistrationError: There are no pins of the server, or a tool does not wait.
            ConfigurationError: The file cannot be read or written.
        """
        with self._changing() as servers:
            if server not in servers:
                known = ", ".join(map(repr, servers)) or "none"
                raise RegistrationError(f"no MCP server {server!r} was seen; there are {known}")
            entry = servers[server]
            waiting: dict[str, str] = entry["waiting"]
            wanted = list(waiting if tools is None else tools)
            for name in wanted:
                if name not in waiting:
                    raise RegistrationError(
                        f"the tool {name!r} of the MCP server {server!r} does not wait; "
                        f"those that wait: {', '.join(map(repr, waiting)) or 'none'}"
                    )
            for name in wanted:
                entry["accepted"][name] = waiting.pop(name)
            return wanted

    def states(self) -> dict[str, dict[str, Literal["accepted", "new", "changed"]]]:
        """Returns the state of each known tool, by server and tool.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        found: dict[str, dict[str, Literal["accepted", "new", "changed"]]] = {}
        for server, entry in self._read().items():
            accepted = entry["accepted"]
            found[server] = dict.fromkeys(accepted, "accepted")
            for name in entry["waiting"]:
                found[server][name] = "changed" if name in accepted else "new"
        return found

    def copy_to(self, path: Path) -> None:
        """Writes the pins into another file.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        self._write(path, self._read())

    @contextmanager
    def _changing(self) -> Generator[dict[str, Any]]:
        """Gives the servers, and keeps their changes. One at a time among threads and processes."""
        with self._lock:
            if self.path is None:
                yield self._kept
                return
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.with_name(f"{self.path.name}.lock").open("w") as lock:
                    system.lock(lock.fileno())
                    servers = self._read()
                    before = json.dumps(servers)
                    yield servers
                    if json.dumps(servers) != before:
                        self._write(self.path, servers)
            except OSError as error:
                raise ConfigurationError(f"pins={str(self.path)!r} cannot be used: {error.strerror}") from error

    def _read(self) -> dict[str, Any]:
        if self.path is None:
            return self._kept
        try:
            kept = json.loads(self.path.read_text("utf-8"))
            if kept["version"] != _VERSION:
                raise ConfigurationError(f"pins={str(self.path)!r}: a newer toolwire wrote it; upgrade toolwire")
            return {name: {part: dict(entry[part]) for part in _PARTS} for name, entry in kept["servers"].items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(f"pins={str(self.path)!r} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"pins={str(self.path)!r} is not a file of pins: mend or delete it") from error

    def _write(self, path: Path, servers: Mapping[str, Any]) -> None:
        number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, "servers": servers}, file, indent=1)
        Path(name).replace(path)


_PARTS = ("accepted", "waiting")


def _off(accepted: Mapping[str, str], digests: Mapping[str, str]) -> dict[str, Wait]:
    return {
        name: "changed" if name in accepted else "new"
        for name, digest in digests.items()
        if accepted.get(name) != digest
    }


def require_accept(accept: Accept) -> Accept:
    """Returns the word unchanged.

    Raises:
        ConfigurationError: It is none of the three.
    """
    if accept not in ACCEPTS:
        raise ConfigurationError(f"accept={accept!r:.80}: write one of {', '.join(map(repr, ACCEPTS))}")
    return accept
