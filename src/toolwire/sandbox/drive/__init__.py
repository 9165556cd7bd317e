"""Runs one program from its start to its end. There is one way, for plain and for async tools.

`program_run.py` takes it from its place to its result in one thread; `looping.py` waits for that on an event loop.
`drive.py` reads its frames and makes its calls, `outbox.py` writes to it, and `waker.py` wakes the drive's thread.
`conversation.py` decides on the effect of each frame and answer. `live_program.py` holds the state: clocks and calls.
`replaying.py` compares a resumable program with its record.
"""
