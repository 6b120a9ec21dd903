"""``rhale-stats``, and ``python -m rhale_stats``, which runs the demonstration."""

import sys

# What a shell expects of a program that Ctrl-C ended.
INTERRUPTED = 130


def run(*, demo: bool = False) -> int:
    """Run the command line, and end with a line if Ctrl-C comes while it is still loading."""
    try:
        from rhale_stats.cli.main import main
    except KeyboardInterrupt:
        print("rhale-stats: interrupted.", file=sys.stderr)
        return INTERRUPTED
    return main(demo=demo)


if __name__ == "__main__":
    raise SystemExit(run(demo=True))
