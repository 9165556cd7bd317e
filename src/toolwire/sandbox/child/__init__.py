"""Code of the other process: the zygote, and the program in a process forked from it.

It imports only the standard library and this folder: `start.py` loads it without the package around it. Tables that
both sides need have a second copy here, and a test compares the copies.

`zygote.py` forks; `lockdown.py` is the child's set-up in its order; `program.py` runs one program.
"""
