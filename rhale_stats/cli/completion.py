"""The command `completion`: what a shell needs to complete commands, options and choices."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from rhale_stats.cli.interruption import PROGRAM
from rhale_stats.cli.parser import parser

# How a user makes a shell read the text.
HOW = {
    "bash": f'# In ~/.bashrc: eval "$({PROGRAM} completion bash)"',
    "zsh": f'# In ~/.zshrc: eval "$({PROGRAM} completion zsh)"',
    "fish": f"# {PROGRAM} completion fish > ~/.config/fish/completions/{PROGRAM}.fish",
}


class Command(NamedTuple):
    """A command, what it does, and its options; the name is empty before a command."""

    name: str
    what: str
    options: list[argparse.Action]


def completion_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Print the completions of a shell."""
    make = {"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell]
    text = f"{HOW[arguments.shell]}\n{make(list(commands()))}"
    print(text)
    return {"shell": arguments.shell, "text": text}


def commands() -> Iterator[Command]:
    """The commands of the parser, and the options before a command."""
    top = parser()
    yield Command("", "", _options(top))
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, one in action.choices.items():
                yield Command(name, helps[name], _options(one))


def _options(of: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in of._actions if action.option_strings]


def _long(option: argparse.Action) -> str:
    return next(name for name in option.option_strings if name.startswith("--"))


def bash(of: list[Command]) -> str:
    """A function for bash; names of files where nothing else fits."""
    names = [one.name for one in of if one.name]
    choices = {
        _long(option): " ".join(map(str, option.choices))
        for one in of
        for option in one.options
        if option.choices
    }
    lines = [
        f"    {shlex.quote(name)}) words={shlex.quote(text)};;" for name, text in choices.items()
    ]
    own = [
        f"      {shlex.quote(one.name)}) words={shlex.quote(' '.join(map(_long, one.options)))};;"
        for one in of
    ]
    shells = " ".join(HOW)
    return "\n".join(
        [
            "_rhale_stats() {",
            '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
            '  local command="" word words="" position',
            "  for ((position = 1; position < COMP_CWORD; position++)); do",
            '    word="${COMP_WORDS[position]}"',
            f'    case "$word" in {"|".join(names)}) command="$word"; break;; esac',
            "  done",
            '  case "$previous" in',
            *lines,
            f"    completion) words={shlex.quote(shells)};;",
            "  esac",
            '  if [[ "$current" == -* ]]; then',
            '    case "$command" in',
            *own,
            "    esac",
            '  elif [[ -z "$words" && -z "$command" ]]; then',
            f"    words={shlex.quote(' '.join(names))}",
            "  fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            f"complete -o default -F _rhale_stats {PROGRAM}",
        ]
    )


def zsh(of: list[Command]) -> str:
    """That of bash, by the module of zsh for it."""
    return f"autoload -U +X compinit bashcompinit && compinit && bashcompinit\n{bash(of)}"


def fish(of: list[Command]) -> str:
    """A line for every command and option."""
    lines = []
    for one in of:
        when = "__fish_use_subcommand"
        if one.name:
            lines.append(f"complete -c {PROGRAM} -n {when} -f -a {one.name} -d {_words(one.what)}")
            when = f"'__fish_seen_subcommand_from {one.name}'"
        for option in one.options:
            parts = [f"complete -c {PROGRAM} -n {when} -l {_long(option).removeprefix('--')}"]
            if option.choices:
                parts.append(f"-x -a {_words(' '.join(map(str, option.choices)))}")
            elif option.nargs != 0:
                parts.append("-r")
            lines.append(f"{' '.join(parts)} -d {_words(option.help or '')}")
    when = "'__fish_seen_subcommand_from completion'"
    lines.append(f"complete -c {PROGRAM} -n {when} -f -a {_words(' '.join(HOW))}")
    return "\n".join(lines)


def _words(text: str) -> str:
    """A text in quotes, as fish reads them."""
    plain = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"
