"""`python -m ecgquorum.cli`."""

from ecgquorum.cli import main

main()
