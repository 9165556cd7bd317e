"""How long to steep which tea."""

from teatime.steep import Steeping, steep
from teatime.timer import Timer

__all__ = ["Steeping", "Timer", "steep"]
