"""What runs on the other side: the zygote, and the program in a process forked from it.

The standard library only, and nothing of ours from outside this folder: `start.py` loads it without the package
around it. Tables that both sides need stand here a second time, and a test compares them.

`zygote.py` forks; `lockdown.py` is the child's set-up in its order; `program.py` runs one program.
"""
