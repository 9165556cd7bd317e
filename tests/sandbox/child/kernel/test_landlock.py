"""Landlock: all that a version has is taken away, and the kernel holds to it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from tests.patience import PATIENCE_S
from toolwire.sandbox.child.kernel import landlock
from toolwire.sandbox.child.kernel.landlock import Rights

FILES = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF, 6: 0xFFFF, 7: 0xFFFF, 8: 0xFFFF}


@pytest.mark.parametrize("version", FILES)
def test_every_right_of_a_version_is_taken_away(version: int) -> None:
    assert landlock.rights(version) == Rights(
        files=FILES[version],
        network=3 if version >= 4 else 0,
        scopes=3 if version >= 6 else 0,
        size=24 if version >= 6 else 16 if version >= 4 else 8,
    )


def test_a_kernel_without_it_gets_no_ruleset() -> None:
    assert landlock.make_ruleset(0, 5) is False


IN_THE_KERNEL = """
import errno, json, os, signal, socket
from toolwire.sandbox.child.kernel import landlock
from toolwire.sandbox.child.kernel import syscalls

kept = os.open("/etc/hostname", os.O_RDONLY)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind("")
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
parent = os.getpid()
reader, writer = os.pipe()

def tried(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

ATTEMPTS = {
    "read a file": lambda: os.open("/etc/hostname", os.O_RDONLY),
    "list a folder": lambda: os.listdir("/etc"),
    "make a file": lambda: os.open("/tmp/toolwire-landlock", os.O_CREAT | os.O_WRONLY),
    "make a folder": lambda: os.mkdir("/tmp/toolwire-landlock"),
    "execute": lambda: os.execv("/bin/sh", ["sh", "-c", "exit 9"]),
    "connect by TCP": lambda: socket.socket().connect(("127.0.0.1", 9)),
    "listen by TCP": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "reach an abstract socket": lambda: sender.connect(listener.getsockname()),
    "signal its parent": lambda: os.kill(parent, 0),
    "read what was open": lambda: os.read(kept, 1),
}
version = landlock.abi()
assert landlock.make_ruleset(version, 60)
if os.fork() == 0:
    syscalls.make_call("prctl", 38, 1)
    landlock.restricter(60)()
    os.write(writer, json.dumps({name: tried(attempt) for name, attempt in ATTEMPTS.items()}).encode())
    os._exit(0)
os.wait()
print(json.dumps([version, json.loads(os.read(reader, 65536))]))
"""


@pytest.mark.threat(48)
def test_the_kernel_refuses_what_was_taken_away() -> None:
    version = landlock.abi()
    if not version:
        # Nothing to hold to: the self-test's report says that this kernel has none.
        return
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(IN_THE_KERNEL)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stderr == ""
    network = "EACCES" if version >= 4 else None
    scope = "EPERM" if version >= 6 else None
    expected = {
        "read a file": "EACCES",
        "list a folder": "EACCES",
        "make a file": "EACCES",
        "make a folder": "EACCES",
        "execute": "EACCES",
        "connect by TCP": network,
        "listen by TCP": network,
        "reach an abstract socket": scope,
        "signal its parent": scope,
        "read what was open": "done",
    }
    found_version, found = json.loads(done.stdout)
    assert found_version == version
    assert {name: found[name] for name, outcome in expected.items() if outcome} == {
        name: outcome for name, outcome in expected.items() if outcome
    }
