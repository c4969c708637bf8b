"""``tftracer completion bash|zsh|fish``: a script that completes commands, options and files in that shell."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from tftracer.cli import COMMANDS
from tftracer.subcommand_parser import Parser

SUMMARY = "completes commands and options in bash, zsh or fish"

BASH = """\
_tftracer() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} options=
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    [ "$COMP_CWORD" = 1 ] && options="{names} $options"
    COMPREPLY=($(compgen -W "$options" -- "$word"))
}}
complete -o default -F _tftracer tftracer
"""
ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n" + BASH
FISH = """\
complete -c tftracer -n __fish_use_subcommand -a "{names}"
{options}
"""


def parser() -> Parser:
    syntax = Parser(
        "tftracer completion",
        'Prints a script for your shell. bash: eval "$(tftracer completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; '
        "fish: tftracer completion fish > ~/.config/fish/completions/tftracer.fish.",
    )
    syntax.add_argument("shell", choices=["bash", "zsh", "fish"])
    return syntax


def main(arguments: Sequence[str], say: Callable[[str], None]) -> int:
    shell = parser().parse_args(arguments).shell
    options = {name: importlib.import_module(f"tftracer.commands.{name}").parser().options for name in COMMANDS}
    names = " ".join(options)
    if shell == "fish":
        lines = [
            f"complete -c tftracer -n '__fish_seen_subcommand_from {name}' -l {option[2:]}"
            for name, known in options.items()
            for option in known
        ]
        say(FISH.format(names=names, options="\n".join(lines)))
    else:
        cases = "\n".join(f'    {name}) options="{" ".join(known)}" ;;' for name, known in options.items())
        say((BASH if shell == "bash" else ZSH).format(names=names, cases=cases))
    return 0
