"""Runs a model's program in another process, forked from a warm zygote; the program calls tools over a channel.

Start at `host.py`. `program.py` and `report.py` hold what goes in and what comes out, `channel.py` the frames
between both processes, `live.py` the clocks and counters of one program, `zygote.py` the fork server.
What runs on the other side is in `child/`.
"""
