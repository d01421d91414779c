"""Ids of users."""

import random
import uuid


def new_user():
    """Somebody whom nobody knows yet. The seed of the run decides who it is."""
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


def numbered_user(number, group=0, first=0):
    """One of many who are told apart by their number; those of one group, and those of one first part, sort together."""
    return f"{first:08x}-{group:04x}-4000-8000-{number:012d}"
