"""``python -m dpopt``: the command line."""

from dpopt.cli import main

if __name__ == "__main__":
    main()
