"""What the command line said."""

binary = ""
seed = 0
