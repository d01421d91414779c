"""A client of Headroom, which is asked before each message of a chat: may this user send it, and what should we tell them?"""

from .answers import (
    Allowance,
    Allowances,
    Answer,
    BadArgument,
    Blocked,
    Conflict,
    Expired,
    HeadroomError,
    NotFound,
    Repeated,
    Unauthorized,
    Unavailable,
    Unknown,
)
from .client import AsyncHeadroom, Hold
from .threads import Headroom

__all__ = [
    "Allowance", "Allowances", "Answer", "AsyncHeadroom", "BadArgument", "Blocked", "Conflict", "Expired", "Headroom",
    "HeadroomError", "Hold", "NotFound", "Repeated", "Unauthorized", "Unavailable", "Unknown",
]  # fmt: skip
