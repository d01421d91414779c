"""Loads a file of integrations/ where the program that it belongs to is not installed."""

import importlib.util
import sys
import types
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]


def module(name, **names):
    made = types.ModuleType(name)
    vars(made).update(names)
    return made


def load(path, *substitutes):
    """`substitutes` are modules in place of those that the file imports."""
    client = str(ROOT / "clients" / "python")
    if client not in sys.path:
        sys.path.insert(0, client)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {each.__name__: each for each in substitutes}):
        spec.loader.exec_module(loaded)
    return loaded
