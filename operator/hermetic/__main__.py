"""`python -m hermetic` is the command line."""

from hermetic.cli import main

if __name__ == "__main__":
    main()
