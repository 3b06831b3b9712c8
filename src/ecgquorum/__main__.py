"""`python -m ecgquorum`: the command line."""

from ecgquorum.cli import main

main()
