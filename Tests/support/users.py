"""User ids."""

import random
import uuid


def new_user():
    """A random user id, determined by the seed of the run."""
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


def numbered_user(number, group=0, first=0):
    """A numbered user id. Ids sort by the first part of the UUID (`first`), then by group, then by number."""
    return f"{first:08x}-{group:04x}-4000-8000-{number:012d}"
