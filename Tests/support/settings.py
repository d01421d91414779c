"""Settings from the command line."""

binary = ""
seed = 0
