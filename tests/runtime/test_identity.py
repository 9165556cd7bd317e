"""Ids of runs."""

from __future__ import annotations

import re
import sys

from tests.runtime.subprocesses import output_of
from toolwire.runtime.identity import new_id


def test_ids_of_one_process_differ_and_name_their_kind() -> None:
    ids = [new_id("r") for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch("r_[0-9a-f]{14,}", one) for one in ids)


def test_the_millionth_id_takes_no_larger_block_of_memory_than_the_first() -> None:
    first = new_id("r")
    millionth = first[:10] + format(int(first[10:], 16) + 1_000_000, "x")
    sizes = {(sys.getsizeof(one) + 15) // 16 for one in (first, millionth)}
    assert len(sizes) == 1


def test_a_forked_child_makes_ids_of_its_own() -> None:
    script = """
        import os
        from toolwire.runtime.identity import new_id
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, new_id("r").encode())
            os._exit(0)
        os.wait()
        print(os.read(read, 99).decode()[:10] == new_id("r")[:10])
        os.close(read), os.close(write)
    """
    assert output_of(script) == "False\n"
