"""Code of the other process: the zygote, and the program in a process forked from it.

It imports only the standard library and this folder: `start.py` loads it without the package around it. Tables that
both sides need have a second copy here, and a test compares the copies.

`fork_server.py` forks; `kernel/lockdown.py` is the child's set-up in its order; `stage.py` runs one program. The Python
that it sees is in `world/`, the account of its failures in `failures/`.
"""
