"""Marks tests that `script/test` leaves out and `script/test --long` runs."""

import os

IS_LONG = bool(os.environ.get("HEADROOM_TEST_LONG"))
"""Whether this is a long run; `script/test --long` sets the variable."""


def nightly(instead):
    """Marks a class or a test that takes long for what it says about the service. `instead` says what every run checks of its
    subject."""

    def mark(marked):
        marked.nightly_instead = instead
        return marked

    return mark
