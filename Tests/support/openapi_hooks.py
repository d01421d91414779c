"""Hooks of Schemathesis: leaves out what a schema cannot tell from valid values."""

import datetime
import re
import zoneinfo

import schemathesis


def is_in_calendar(period):
    """False for the thirtieth of February, and for week 53 of a year that has 52."""
    try:
        if week := re.fullmatch(r"(\d{4})-W(\d\d)(?:\.\d+)?", str(period)):
            datetime.date.fromisocalendar(int(week[1]), int(week[2]), 1)
        elif re.fullmatch(r"\d{4}-\d\d-\d\d", str(period)):
            datetime.date.fromisoformat(period)
    except ValueError:
        return False
    return True


def is_time_zone(name):
    """False for a text that has the form of a time zone's name and is none. Other values test the schema."""
    return not isinstance(name, str) or name in zoneinfo.available_timezones()


@schemathesis.hook
def filter_path_parameters(_context, path_parameters):
    return is_in_calendar((path_parameters or {}).get("period"))


@schemathesis.hook
def filter_query(_context, query):
    return is_in_calendar((query or {}).get("period"))


@schemathesis.hook
def filter_case(_context, case):
    """Cases of the phase "coverage" pass no other hook."""
    return all(is_time_zone(given.get("tz", "UTC")) for given in (case.query, case.body) if isinstance(given, dict))
