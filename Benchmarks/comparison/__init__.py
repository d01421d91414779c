"""Measures Headroom beside what one would write instead. script/bench starts it.

README.md describes the rows and the form of the result.
"""
