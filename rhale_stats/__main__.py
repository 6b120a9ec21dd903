"""``python -m rhale_stats``."""

from rhale_stats.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
