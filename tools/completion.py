#!/usr/bin/env python3
"""Writes the completion of bash for the tool, from what its --help says of each command: completion.py TESSERA OUTPUT"""
import re
import subprocess
import sys

# What stands after an option, by the word that --help has for its value. Other values are numbers and shapes, which nobody can guess.
FILES = {"FILE", "X.npy", "T.npy"}
FOLDERS = {"DIR", "PATH"}
WORDS = {
    "MODE": "direct message",
    "ENGINE": "threads mpi nccl",
    "DEVICE": "host cuda",
    "KERNEL": "copy reduce reduce-to-all",
    "WHAT": "bytes time",
    "DTYPE": "f32 f16 bf16",
    "POLICY": "forbid partials warn allow",
    "OP": "assign add mean max",
    "SKEW": "uniform zipf",
    "PLACEMENTS": r"R P S\(0\) S\(1\)",
}

SCRIPT = r"""# bash completion for tessera, made from its --help

_tessera_commands() {{
    case "$1" in
    '') echo {commands} help --help --version ;;
    help) echo {commands} ;;
{families}    esac
}}

_tessera_options() {{
    case "$1" in
{options}    esac
}}

# What the last option of a command wants: f a file, d a folder, w and words, n something else; nothing where it is no option with a value.
_tessera_wants() {{
    case "$1" in
{wants}    esac
}}

_tessera() {{
    local current=$2 previous=$3 command=${{COMP_WORDS[1]}} wants
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_tessera_commands '')" -- "$current")
        return
    fi
    if [[ -n $(_tessera_commands "$command") ]]; then
        if [[ $COMP_CWORD -eq 2 ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_tessera_commands "$command")" -- "$current")
            return
        fi
        command="$command ${{COMP_WORDS[2]}}"
    fi
    wants=$(_tessera_wants "$command $previous")
    case "$wants" in
    f) mapfile -t COMPREPLY < <(compgen -f -- "$current") && return ;;
    d) mapfile -t COMPREPLY < <(compgen -d -- "$current") && return ;;
    w*) mapfile -t COMPREPLY < <(compgen -W "${{wants#w }}" -- "$current") && return ;;
    n) return ;;
    esac
    if [[ $current != -* && -n $(_tessera_wants "$command") ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -W "$(_tessera_options "$command")" -- "$current")
    fi
}}

complete -o filenames -F _tessera tessera
"""


def ask(tool, *words):
    return subprocess.run([tool, *words, "--help"], capture_output=True, text=True, check=True).stdout


def names_in(text):
    return re.findall(r"^  tessera ((?:[a-z]+ )?[a-z]+)  ", text, re.M)


def options_of(text):
    """(letter or "", option, its value's word or "", its help) of a command."""
    body = text.split("\nExamples:\n")[0]
    found = re.findall(r"^ {2,6}(?:-(\w), )?(--[a-z-]+)(?:=(\S+))?((?:.*\n(?! {2,6}-))*.*)", body, re.M)
    return [(letter, name, value, re.sub(r" \(default: .*\)$", "", " ".join(rest.split()))) for letter, name, value, rest in found]


def wanted(name, value, text):
    if name == "--dtype":
        return "w " + text
    if value in FILES or (name == "--output" and "file" in text):
        return "f"
    if value in FOLDERS:
        return "d"
    return "w " + WORDS[value] if value in WORDS else "n"


def main(tool, output):
    names = names_in(ask(tool))
    families = sorted({name.split()[0] for name in names if " " in name})
    commands = [name for name in names if " " not in name] + families
    options, wants = [], []
    for name in names:
        text = ask(tool, *name.split())
        taken = options_of(text)
        options.append(f'    "{name}") echo {" ".join(option for _, option, _, _ in taken)} ;;\n')
        if re.search(r"^Usage: .*\bFILE|^Usage: .*\.json", text, re.M):
            wants.append(f'    "{name}") echo f ;;\n')
        for letter, option, value, said in taken:
            if value:
                words = f'"{name} {option}"' + (f' | "{name} -{letter}"' if letter else "")
                wants.append(f"    {words}) echo '{wanted(option, value, said)}' ;;\n")
    listed = "".join(f"    {family}) echo {' '.join(n.split()[1] for n in names if n.startswith(family + ' '))} --help ;;\n" for family in families)
    with open(output, "w") as script:
        script.write(SCRIPT.format(commands=" ".join(commands), families=listed, options="".join(options), wants="".join(wants)))


main(*sys.argv[1:])
