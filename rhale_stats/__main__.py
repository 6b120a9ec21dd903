"""``python -m rhale_stats`` and ``rhale-stats``."""

import sys

# What a shell expects of a program that Ctrl-C ended.
INTERRUPTED = 130


def run() -> int:
    """Run the command line, and end with a line if Ctrl-C comes while it is still loading."""
    try:
        from rhale_stats.cli.main import main
    except KeyboardInterrupt:
        print("rhale-stats: interrupted.", file=sys.stderr)
        return INTERRUPTED
    return main()


if __name__ == "__main__":
    raise SystemExit(run())
