"""The canaries that the host watches while an attack runs, and their changes."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, cast

from tests.attacks.attack import Sign, Targets
from tests.patience import PATIENCE_S

_PROCESS = Path(__file__).parent / "canary_process.py"
ENVIRONMENT_NAME = "TOOLWIRE_ATTACK_SECRET"


class Canaries:
    """Files, listeners and a process for programs to attack. `seen` returns their changes since the last look."""

    def __init__(self) -> None:
        # Not pytest's folders: those are closed to other users, and it must be the sandbox that keeps programs out.
        self._folder = Path(tempfile.mkdtemp(prefix="toolwire-attacks-"))
        self._folder.chmod(0o777)
        self.file_secret = secrets.token_hex(16)
        self.environment_secret = secrets.token_hex(16)
        self.memory_secret = secrets.token_hex(16)
        self._listeners = _Listeners(self._folder / "listener")
        self._files = _Files(self._folder, self.file_secret)
        self._process = _Process(self.environment_secret, self.memory_secret)
        self.targets = self._targets()

    def seen(self) -> set[Sign]:
        """The changes since the last look, outside of any result. Sets everything up anew."""
        found = self._files.seen() | self._listeners.seen()
        if self._process.is_hit():
            found.add("signal")
            self._process.close()
            self._process = _Process(self.environment_secret, self.memory_secret)
        self.targets = self._targets()
        return found

    def read_from(self, text: str) -> set[Sign]:
        """The secrets that a result or an output contains."""
        signs: dict[Sign, str] = {
            "file secret": self.file_secret,
            "environment secret": self.environment_secret,
            "memory secret": self.memory_secret,
            "got through": self.targets.token[::-1],
        }
        return {sign for sign, secret in signs.items() if secret in text}

    def close(self) -> None:
        """Takes everything away."""
        self._process.close()
        self._listeners.close()
        shutil.rmtree(self._folder)

    def _targets(self) -> Targets:
        return Targets(
            token=secrets.token_hex(12) + "g",
            secret_file=str(self._files.secret),
            new_file=str(self._files.new),
            changed_file=str(self._files.changed),
            tcp_port=self._listeners.tcp_port,
            udp_port=self._listeners.udp_port,
            unix_path=str(self._listeners.path),
            unix_name=self._listeners.name,
            canary=self._process.id,
            canary_address=self._process.address,
        )


class _Files:
    def __init__(self, folder: Path, secret: str) -> None:
        self.secret, self.new, self.changed = folder / "secret", folder / "new", folder / "changed"
        self.secret.write_text(secret)
        self.secret.chmod(0o644)
        self._before = self._set_up()

    def seen(self) -> set[Sign]:
        found: set[Sign] = set()
        if os.path.lexists(self.new):
            found.add("file created")
        if self._state() != self._before:
            found.add("file changed")
        if found:
            if self.new.is_dir() and not self.new.is_symlink():
                self.new.rmdir()
            self.new.unlink(missing_ok=True)
            self._before = self._set_up()
        return found

    def _set_up(self) -> object:
        self.changed.unlink(missing_ok=True)
        self.changed.write_text("as it was")
        self.changed.chmod(0o666)
        return self._state()

    def _state(self) -> object:
        if not self.changed.exists():
            return None
        state = self.changed.stat()
        attributes = os.listxattr(self.changed)
        return self.changed.read_text(), state.st_mode, state.st_uid, state.st_mtime_ns, attributes


class _Listeners:
    """The listener does not accept: connections wait in the backlog until the test looks at them."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, f"toolwire-attacks-{secrets.token_hex(8)}"
        self._tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
        # Fast open: a connection by the first packet, without `connect`.
        self._tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 8)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._unix = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        self._unix[0].bind(str(path))
        path.chmod(0o666)
        self._unix[1].bind(f"\0{self.name}")
        for line in self._unix:
            line.listen(64)
        for line in (self._tcp, self._udp, *self._unix):
            line.setblocking(False)
        self.tcp_port: int = self._tcp.getsockname()[1]
        self.udp_port: int = self._udp.getsockname()[1]

    def seen(self) -> set[Sign]:
        found: set[Sign] = set()
        while select.select([self._tcp, self._udp, *self._unix], [], [], 0)[0]:
            for line in select.select([self._tcp, self._udp, *self._unix], [], [], 0)[0]:
                if line is self._udp:
                    line.recv(4096)
                    found.add("udp")
                else:
                    line.accept()[0].close()
                    found.add("tcp" if line is self._tcp else "unix")
        return found

    def close(self) -> None:
        for line in (self._tcp, self._udp, *self._unix):
            line.close()


class _Process:
    def __init__(self, environment_secret: str, memory_secret: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_PROCESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={ENVIRONMENT_NAME: environment_secret, "CANARY_MEMORY": memory_secret},
            # A signal to the process group of the test run does not reach the canary, nor the reverse.
            process_group=0,
        )
        self.id = self._process.pid
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("IO[bytes]", self._process.stdout)
        self.address = int(self._output.readline())

    def is_hit(self) -> bool:
        """Whether it got a signal, was ended, or does not answer any more."""
        try:
            self._input.write(b"ping\n")
            self._input.flush()
        except BrokenPipeError:
            return True
        if not select.select([self._output], [], [], PATIENCE_S)[0]:
            return True
        return self._output.readline() != b"pong\n"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()
        try:
            self._input.close()
        except BrokenPipeError:
            return
