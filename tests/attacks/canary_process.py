"""A process of the host's, there to be attacked: says which signals it gets, and keeps a secret in its memory.

A script for `python -I`. Its environment holds the secret `CANARY_MEMORY`; it writes the secret's address, then
`signal N` for each signal, and `pong` for each line that it reads: every signal sent before has been told by then.
"""

import ctypes
import os
import signal
import sys
from types import FrameType

_PR_SET_PTRACER = 0x59616D61


def main() -> None:
    """Until standard input ends."""
    secret = ctypes.create_string_buffer(os.environ["CANARY_MEMORY"].encode())
    # An ordinary user may be traced by its own processes only if it allows them to: it is here to be attacked.
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, _tell)
    print(ctypes.addressof(secret), flush=True)
    while sys.stdin.readline():
        print("pong", flush=True)


def _tell(number: int, _: FrameType | None) -> None:
    os.write(1, f"signal {number}\n".encode())


if __name__ == "__main__":
    main()
