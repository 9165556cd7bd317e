"""`toolwire runner` in a process of its own, and the certificates of an authority made for the test."""

from __future__ import annotations

import datetime
import ipaddress
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[2]
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates for 127.0.0.1."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        self.ca = folder / f"{name}-ca.pem"
        self.ca.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def identity(self, name: str) -> Identity:
        """A new certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        cert = self._builder(subject, key).add_extension(names, False).sign(self._key, hashes.SHA256())
        made = Identity(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        made.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
        made.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return made

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )


class RunnerProcess:
    """A runner that runs until it is told to end. What it says goes to a file."""

    def __init__(self, said: Path, *arguments: str) -> None:
        self._said = said
        with said.open("w") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "toolwire", "runner", *arguments],
                cwd=ROOT,
                env={name: value for name, value in os.environ.items() if name != "TOOLWIRE_KEY"},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        until(lambda: "programs run at" in self.said() or self._process.poll() is not None)

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.said().partition("programs run at ")[2].partition(",")[0]

    def said(self) -> str:
        """What it said so far."""
        return self._said.read_text()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def wait(self) -> int:
        """Its exit code."""
        return self._process.wait(PATIENCE_S)
