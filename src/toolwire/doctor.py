"""Reports which layers hold a program on this machine, as `toolwire doctor` does."""

from toolwire.sandbox.isolation import Diagnosis, diagnose

__all__ = [
    "Diagnosis",
    "diagnose",
]
