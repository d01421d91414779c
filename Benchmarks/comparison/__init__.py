"""Compares Headroom with simpler solutions. script/bench starts it.

README.md describes the rows and the form of the result.
"""
