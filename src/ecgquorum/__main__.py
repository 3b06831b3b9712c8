"""`python -m ecgquorum`: the command line."""

from ecgquorum.cli import main

if __name__ == "__main__":
    main()
