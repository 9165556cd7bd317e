"""Celery with a real Redis drives runs as docs/fleet.md shows, and the sweep finds all when Redis loses its jobs."""

from __future__ import annotations

import shutil

import pytest

REDIS = shutil.which("redis-server")
pytestmark = pytest.mark.skipif(REDIS is None, reason="redis-server is missing: apt-get install redis-server")
RUNS = 12
"""More than the worker has places, so that jobs are in Redis when it is lost."""
APP = '''
import os, time
from pathlib import Path
from toolwire import Session, tool

@tool(idempotent="natural")
def note(name: str) -> str:
    """Notes a name, once it is open."""
    while not Path(os.environ["GATE"]).exists():
        time.sleep(0.02)
    with open(os.environ["DONE_FILE"], "a") as file:
        file.write(name + "\\n")
    return name

def session_for(run, store):
    return Session([note], protocol=run.protocol, store=store, caller=run.caller, conversation=run.conversation)
'''
