"""The zygote's memory is in order: a child's objects lie side by side, whatever gaps there were before."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.patience import PATIENCE_S

PAGES = """
import json, sys
from toolwire.sandbox.child import warmup
held = [bytes(size) for size in range(10, 400, 16) for _ in range(2000)]
for place in range(0, len(held), 50):
    held[place] = None

def pages():
    made = [bytes(size) for size in range(10, 400, 16) for _ in range(20)]
    return len({id(one) // 4096 for one in made})

before = pages()
warmup.fill_gaps()
print(json.dumps([before, pages()]))
"""


def test_objects_that_are_made_after_it_lie_on_a_third_fewer_pages() -> None:
    done = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    before, after = json.loads(done.stdout)
    assert after * 3 < before * 2
