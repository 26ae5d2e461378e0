"""``python -m polyfid.cli``."""

from polyfid.cli import main

if __name__ == "__main__":
    main()
