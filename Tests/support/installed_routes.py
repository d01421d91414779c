"""The routes of an installed program that uses FastAPI, read from its source, so that nothing has to be imported or started."""

import ast
import re
from dataclasses import dataclass

METHODS = {"get", "head", "post", "put", "patch", "delete", "api_route", "websocket"}


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    """With an x in place of each parameter."""
    calls: frozenset
    """The names that its function uses, and those that other functions of the same file use for it."""


def names(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def routes(file, prefix="", is_wanted=lambda path: True):
    """Of one file, those whose path is wanted."""
    source = file.read_text()
    tree = ast.parse(source if "@" in source else "")
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    by_name = {each.name: each for each in functions}

    def reached(name):
        found, left = set(), {name}
        while left:
            found |= left
            left = set().union(*(names(by_name[each]) for each in left if each in by_name)) - found
        return frozenset(found)

    for function in functions:
        for decorator in function.decorator_list:
            if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.func.attr in METHODS):
                continue
            given = [*decorator.args[:1], *(each.value for each in decorator.keywords if each.arg == "path")]
            if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
                path = re.sub(r"\{[^}]*\}", "x", prefix + given[0].value)
                if is_wanted(path):
                    yield Route(decorator.func.attr, path, reached(function.name))
