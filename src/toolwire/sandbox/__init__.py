"""Runs a model's program in another process, forked from a warm zygote; the program calls tools over a channel.

Start at `host.py`. `program.py` holds the sandbox's input, `report.py` its output. `channel.py` holds the frames
between both processes, `live.py` the clocks and counters of one program, `zygote.py` the fork server. The code that
runs in the other process is in `child/`.
"""
