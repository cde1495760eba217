#!/usr/bin/env python3
"""scripts/simulation-report: the page that it makes of lines of `bench simulate --validate`. usage: test_simulation_report.py SCRIPT"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import tap  # noqa: E402

script = sys.argv[1]
report = tap.Report()
place = tempfile.TemporaryDirectory()
folder = pathlib.Path(place.name)


def line(target, size, model, measured, ranks=2):
    return json.dumps({"bench": "simulate", "ranks": ranks, "shape": [size, size], "dtype": "f32", "from": "S(0)", "to": target, "mode": "direct",
                       "links": f"inside=1e-6,{ranks}e9 between=1e-6,1e10", "seconds": model, "engine": "threads",
                       "links_error": {"inside": {"median": 0.125, "max": 0.5}, "between": None},
                       "measured_seconds": {"median": measured, "min": measured / 2, "max": measured * 2}, "error": abs(model - measured) / measured})


def run(name, text):
    (folder / "lines.json").write_text(text)
    return subprocess.run([script, "--lines", folder / "lines.json", "--output", folder / name], capture_output=True, text=True, timeout=60, check=False)


def check_page():
    text = "\n".join([line("S(1)", 64, 1e-5, 2e-5), line("S(1)", 128, 3e-5, 2e-5), line("R", 64, 2e-3, 1e-3), line("R", 64, 1.0, 4.0, ranks=4)]) + "\n"
    done = run("page", text)
    wrong = [] if (done.returncode, done.stderr) == (0, "") else [f"exit status {done.returncode}: {done.stderr}"]
    page = (folder / "page" / "simulation.md").read_text().splitlines()
    for wanted in ("Error of all 4 moves: 0.00 in the median, 0.50 at worst; of the medians alone,", "whatever the times spread over, 0.62 and 1.00.",
                   "| S(0) to S(1) | direct | 2 | 0.00 | 0.00 | 0.50 to 1.50 |", "| S(0) to R | direct | 2 | 0.00 | 0.00 | 2.00 to 2.00 |",
                   "| threads | direct | 2 | `inside=1e-6,2e9 between=1e-6,1e10` | 0.12 | 0.50 |",
                   "| threads | direct | 4 | `inside=1e-6,4e9 between=1e-6,1e10` | 0.12 | 0.50 |",
                   "| S(0) to S(1) | direct | 2 | 128x128 f32 | 30 us | 20 us (10 us to 40 us) | 0.00 |",
                   "| S(0) to R | direct | 4 | 64x64 f32 | 1 s | 4 s (2 s to 8 s) | 0.50 |"):
        wrong += [] if page.count(wanted) == 1 else [f"{page.count(wanted)} times: {wanted}"]
    return wrong + ([] if (folder / "page" / "simulation.json").read_text() == text else ["the lines are others"])


def check_rounds():
    """Models and medians by their median, the interval from the least to the most; the error to the nearest end of it."""
    rounds = [("R", 64, 7.0, 4.0), ("R", 64, 9.0, 1.0), ("R", 64, 30.0, 2.0)]
    done = run("rounds", "".join(line(*one) + "\n" for one in rounds) + line("S(1)", 64, 0.25, 1.0) + "\n")
    page = (folder / "rounds" / "simulation.md").read_text()
    wrong = [] if done.returncode == 0 else [done.stderr]
    for wanted in ("| S(0) to R | direct | 2 | 64x64 f32 | 9 s | 2 s (500 ms to 8 s) | 0.12 |", "| S(0) to S(1) | direct | 2 | 64x64 f32 | 250 ms | 1 s (500 ms to 2 s) | 0.50 |",
                   "Error of all 2 moves: 0.31 in the median, 0.50 at worst; of"):
        wrong += [] if page.count(wanted) == 1 else [f"{page.count(wanted)} times: {wanted}"]
    return wrong


def check_run():
    """A tool that prints one line, while somebody else is busy; and the same page of what was written."""
    tool = folder / "build" / "tools" / "tessera"
    tool.parent.mkdir(parents=True)
    tool.write_text(f"#!/bin/sh\n[ \"$1 $2\" = 'bench simulate' ] || exit 0\nsleep 0.3\ncat <<'END'\n{line('R', 64, 1.0, 4.0)}\nEND\n")
    tool.chmod(0o755)
    # What was measured on another processor stays, and on this one gives way.
    (folder / "run").mkdir()
    other_lines = [json.dumps({"bench": "simulate", "kind": "machine", "processor": "another", "commit": None, "began": "2026-01-01T00:00:00",
                               "ended": "2026-01-01T00:01:00", "others": 0, "cores": 3, "kernels": None, "compiler": None, "buildtype": None}),
                   line("S(1)", 64, 2.0, 4.0)]
    (folder / "run" / "simulation.json").write_text("\n".join(other_lines) + "\n")
    # Not a child of the script, which would be its own.
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        done = subprocess.run([script, tool, "--rounds", "2", "--output", folder / "run"], capture_output=True, text=True, timeout=60, check=False)
        other.kill()
    if done.returncode or done.stderr:
        return [f"exit status {done.returncode}: {done.stderr}"]
    text, page = ((folder / "run" / name).read_text() for name in ("simulation.json", "simulation.md"))
    first, *rest = map(json.loads, text.splitlines())
    # Two rounds of two modes on two numbers of ranks.
    wrong = [] if (first["bench"], first["kind"], len(rest)) == ("simulate", "machine", 8 + 2) else [f"the lines are {text}"]
    wrong += [] if text.splitlines()[-2:] == other_lines and page.count("## another") == 1 and page.count("### All moves") == 2 else ["the other machine's lines are gone"]
    wrong += [] if 0 < first["others"] <= 1 else [f"others used {first['others']}"]
    wrong += [] if first["began"] < first["ended"] and first["cores"] > 0 and "commit" in first and "date" in first else [f"{first}"]
    told = re.search(r"Measured from (\S+ \S+) to (\S+ \S+), commit (.+?): .*? other processes used meanwhile: (\d+) %", " ".join(page.split()))
    wanted = (first["began"].replace("T", " "), first["ended"].replace("T", " "), first["commit"] or "not known", f"{100 * first['others']:.0f}")
    wrong += [] if told and told.groups() == wanted else [f"{told and told.groups()} instead of {wanted}"]
    run("again", text)
    return wrong + ([] if (folder / "again" / "simulation.md").read_text() == page else ["another page of the same lines"])


def check_refusal(text):
    done = run("refused", text)
    wrong = [] if done.returncode == 1 and done.stderr.count("\n") == 1 and "lines.json" in done.stderr else [f"exit status {done.returncode}: {done.stderr}"]
    return wrong + (["something was written"] if (folder / "refused").exists() else [])


report.check("the page has a row for every group, links and move", check_page())
report.check("rounds are pooled", check_rounds())
report.check("what the machine is, when it was and what others used is kept and told", check_run())
for words, text in {"no lines": "", "text": "nonsense\n", "lines without an error": json.dumps({"bench": "simulate"}) + "\n",
                    "lines of another benchmark": json.dumps({"bench": "plan", "error": 1}) + "\n", "a number": "1\n",
                    "a machine alone": json.dumps({"bench": "simulate", "kind": "machine", "others": 0}) + "\n",
                    "half a machine": json.dumps({"bench": "simulate", "kind": "machine", "others": 0}) + "\n" + line("R", 64, 1.0, 4.0) + "\n"}.items():
    report.check(f"{words}: refused in one line, and nothing is written", check_refusal(text))
done = subprocess.run([script, folder / "nobody"], capture_output=True, text=True, timeout=60, check=False)
report.check("a tool that is not there is named in one line", [] if (done.returncode, done.stderr.count("\n")) == (1, 1) and "nobody" in done.stderr
             else [f"exit status {done.returncode}: {done.stderr}"])
report.finish()
