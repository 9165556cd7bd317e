"""`python -m tests.fleet.quick worker ...`: the command `toolwire`, with other constants of the fleet for tests.

The variable `FLEET_CONSTANTS` has them as JSON, such as `{"LEASE_S": 5}`. Each module that has the name gets the value.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence

import toolwire.fleet
from toolwire.__main__ import main

VARIABLE = "FLEET_CONSTANTS"
Constants = Mapping[str, float | Sequence[float]]
SHORT: Constants = {"LEASE_S": 5.0, "BEAT_S": 1.0, "DEAD_AFTER_S": 3.0, "SWEEP_S": (0.5, 1.5)}
"""Short times, so that tests of dead workers take seconds. A store takes no shorter lease."""


def set_constants(values: Constants) -> None:
    """Sets constants in the modules that import them."""
    modules = [module for name, module in sys.modules.items() if name.startswith(toolwire.fleet.__name__)]
    for name, value in values.items():
        known = [module for module in modules if hasattr(module, name)]
        assert known, f"the fleet has no constant {name}"
        for module in known:
            setattr(module, name, value)


if __name__ == "__main__":
    set_constants(json.loads(os.environ[VARIABLE]))
    main()
