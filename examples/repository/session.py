"""A model's turn from Python: the prompt goes to the model, its reply comes back, and is run.

python examples/repository/session.py examples/repository/replies/loop_over_many_calls.toml
"""

import asyncio
import sys
from pathlib import Path

import tools

from toolwire import Session

session = Session([tools.list_files, tools.read_file, tools.search, tools.count_lines], protocol="attp")
print(f"The system prompt for the model has {len(session.instructions):,} characters.")

reply = Path(sys.argv[1]).read_text(encoding="utf-8")  # here a model would be asked
turn = asyncio.run(session.turn(reply))
for problem in turn.reply.problems:
    print("Repaired:" if problem.repaired else "Refused:", problem.message)
print("What the model wanted:", turn.reply.target)
print("What it reads next:", turn.text, sep="\n")
