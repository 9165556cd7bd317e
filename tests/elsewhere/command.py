"""The command line on another system: `python -m tests.elsewhere.command SYSTEM FOLDER ARGUMENT...`."""

from __future__ import annotations

import select
import signal
import socket
import sys
import time
from pathlib import Path

from tests.elsewhere.pretended import pretend

if __name__ == "__main__":
    assert all((select, signal, socket, time))
    pretend(sys.argv[1], Path(sys.argv[2]))  # pyright: ignore[reportArgumentType]
    del sys.argv[1:3]
    from toolwire.__main__ import main

    main()
