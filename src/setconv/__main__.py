"""``python -m setconv`` is ``setconv``."""

from setconv.cli import main

if __name__ == "__main__":
    main()
