"""Runs a model's program in another process, forked from a warm zygote; the program calls tools over a channel.

Start at `host.py`. `program.py` holds the sandbox's input, `report.py` its output, `zygote.py` starts the fork server.
`drive/` runs one program in a thread of its own. `channel/` reads and writes the frames between both
processes. The code that runs in the other process is in `child/`.
"""
