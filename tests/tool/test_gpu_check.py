#!/usr/bin/env python3
"""scripts/gpu-check without a GPU: it says why it cannot run, or runs the whole flow over the emulated machine. usage: test_gpu_check.py
SCRIPT BUILD_DIRECTORY"""
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import harness  # noqa: E402
import tap  # noqa: E402

script, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
report = tap.Report()
place = tempfile.TemporaryDirectory()
folder = pathlib.Path(place.name)
output = folder / "report.json"
SECTIONS = ("tests", "sanitizer", "figures")


def run(*arguments):
    return subprocess.run([sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True, timeout=240, cwd=folder)


def dry(*arguments, where=build):
    return run("--dry-run", "--no-build", "--build", where, "--output", output, *arguments)


def refusal(fact, done, status, *words):
    """One line of error, and nothing is written."""
    wrong = harness.different("exit status", done.returncode, status) + harness.different("files", list(folder.iterdir()), [])
    wrong += harness.different("one line", (done.stderr.count("\n"), done.stdout), (1, "")) if status == 3 else []
    report.check(fact, wrong + [f"{word!r} is not in: {done.stderr}" for word in words if word not in done.stderr])


def whole_flow():
    done = dry()
    found = json.loads(output.read_text())
    wrong = harness.different("exit status", (done.returncode, done.stderr), (0, ""))
    wrong += harness.different("ok", (found["ok"], found["dry_run"], found["report"]), (True, True, "gpu-check"))
    wrong += harness.different("GPUs", [gpu["name"] for gpu in found["machine"]["gpus"]], ["emulated 0", "emulated 1"])
    for section in (found["tests"], found["sanitizer"]["memcheck"], found["sanitizer"]["racecheck"]):
        wrong += harness.different("cases", (section["failed"], section["passed"] > 0, section["ok"]), (0, True, True))
        wrong += harness.different("sums", section["passed"], sum(row["passed"] for row in section["programs"]))
    moved = [row["name"] for row in found["sanitizer"]["memcheck"]["programs"] if "->" in row["name"]]
    wrong += harness.different("moves under the sanitizer", len(moved), 3)
    rows = found["figures"]["rows"]
    wrong += [f"not measured: {row['name']}: {row.get('reason')}" for row in rows if not row["measured"] > 0]
    wrong += harness.different("goals", [row["goal"] for row in rows], [0.9] * 3 + [0.85] * 3 + [0.6, 0.98, None, 10, None] + [0.98] * 6)
    wrong += harness.different("nothing is said of goals", {row["met"] for row in rows}, {None})
    moves = [row["lines"][0] for row in rows if row["command"].startswith("tessera bench redistribute")]
    wrong += harness.different("moves are right", [(line["wrong"], line["device"]) for line in moves], [(0, "cuda")] * 7)
    lines = [row["lines"][0] for row in rows if row["command"].startswith("gemm-peer")]
    return wrong + harness.different("both products agree", [line["same_bits"] for line in lines], [True] * 6)


def lost_sanitizer():
    """Runs of a sanitizer that could not follow a launch, alone or beside an error of the program."""
    sys.path.insert(0, str(script.parent.parent / "bench" / "gpu"))
    import gpu_programs
    lost = ("========= COMPUTE-SANITIZER\n[ RUN      ] one\n========= Internal Sanitizer Error: Detected a failure to track a kernel launch. "
            "Future records might be incomplete\n========= \n[       OK ] one\n[  PASSED  ] 1 test(s).\n"
            "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n")
    race = lost + "========= Error: Race reported between Write access at kernel+0x10 and Read access at kernel+0x20\n"
    place = gpu_programs.Place(script.parent.parent, build, True)
    wrong = []
    for out, status, wanted in ((lost, 99, (1, 0, 1)), (race, 99, (1, 1, 0)), (lost, 1, (1, 1, 0)), (lost.replace("Internal", "Other"), 99, (1, 1, 0))):
        place.run = lambda *_, out=out, status=status: (status, out, "")
        with contextlib.redirect_stdout(io.StringIO()):
            row = gpu_programs.run_program(place, "a program", [], 1, {})
        wrong += harness.different("cases", (row["passed"], row["failed"], row["skipped"], "said" in row), (*wanted, True))
    return wrong


def broken_build():
    """Some folder like the build, whose peer program fails."""
    copy = folder / "build"
    for path in ("tools", "tests/tool", "meson-info"):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(build / path, copy / path) if path != "tests/tool" else (copy / path).mkdir()
    shutil.copytree(build / "tests" / "tool" / "emulated", copy / "tests" / "tool" / "emulated", symlinks=True, ignore=shutil.ignore_patterns("*.p"))
    peer = copy / "tests" / "tool" / "emulated" / "gemm-peer"
    peer.unlink()
    peer.write_text("#!/bin/sh\necho the peer has failed >&2\nexit 1\n")
    peer.chmod(0o755)
    return copy


def carried_build():
    """One whose records name folders of another machine."""
    copy, elsewhere = folder / "carried", pathlib.Path("/elsewhere")
    information = copy / "meson-info"
    information.mkdir(parents=True)
    for path in ("tools", "tests"):
        os.symlink(build / path, copy / path)
    recorded = json.loads((build / "meson-info" / "meson-info.json").read_text())["directories"]
    (information / "meson-info.json").write_text(json.dumps({"directories": {"source": str(elsewhere / "tree"), "build": str(elsewhere / "build")}}))
    tests = (build / "meson-info" / "intro-tests.json").read_text().replace(recorded["build"], str(elsewhere / "build"))
    (information / "intro-tests.json").write_text(tests)
    done = dry("--only", "tests", where=copy)
    shutil.rmtree(copy)
    return harness.different("exit status", (done.returncode, done.stderr), (0, "")) + harness.different("ok", json.loads(output.read_text())["tests"]["ok"], True)


def failing_figure():
    """A report is put together: the figures fail now, the tests are those of before."""
    before = json.loads(output.read_text())
    done = dry("--only", "figures", where=broken_build())
    found = json.loads(output.read_text())
    wrong = harness.different("exit status", done.returncode, 1) + harness.different("ok", (found["ok"], found["figures"]["ok"]), (False, False))
    wrong += harness.different("the rest stays", [found[name] for name in SECTIONS[:2]], [before[name] for name in SECTIONS[:2]])
    reasons = [row["reason"] for row in found["figures"]["rows"] if row["measured"] is None]
    return wrong + harness.different("reasons", reasons, ["the peer has failed"] * 6)


def another_machine():
    """Sections of two machines are not combined."""
    other = json.loads(output.read_text())
    other["machine"]["processor"] = "another"
    output.write_text(json.dumps(other))
    done = dry("--only", "figures")
    wrong = harness.different("exit status", done.returncode, 3) + harness.different("the report stays", json.loads(output.read_text()), other)
    return wrong + harness.different("sentence", ("machine" in done.stderr, done.stderr.count("\n")), (True, 1))


def no_report():
    """A file in the output's place that is not a report is kept."""
    wrong = []
    for text, word in (("", "cannot be read"), ("[1]", "not a report"), ('{"report": "gpu-check"}', "not a report")):
        output.write_text(text)
        done = dry("--only", "figures")
        wrong += harness.different("exit status", done.returncode, 3) + harness.different("the file stays", output.read_text(), text)
        wrong += harness.different("sentence", (word in done.stderr, done.stderr.count("\n")), (True, 1))
    return wrong


if os.path.exists("/dev/nvidiactl"):
    report.skip("without a GPU it says so", "there is a GPU")
else:
    refusal("without a GPU it says so, and writes nothing", run("--build", folder / "new", "--output", output), 3, "there is no GPU", "libcuda")
refusal("an option that is not known is refused", run("--dry", "--fast"), 2, "--fast")
refusal("a section that is not known is refused", dry("--only", "tests,speed"), 2, "speed", "figures")
refusal("a folder that is no build is refused", dry(where=folder / "none"), 3, "none")
for fact, check in (("the whole flow runs over the emulated machine", whole_flow), ("tests of a build that was carried here run", carried_build),
                    ("a figure that cannot be had is a failure with its reason", failing_figure),
                    ("a sanitizer that could not follow a launch tells nothing", lost_sanitizer),
                    ("sections of two machines are not put together", another_machine),
                    ("sections are put into reports alone", no_report)):
    try:
        report.check(fact, check())
    except Exception as error:
        report.check(fact, [f"{type(error).__name__}: {error}"])
report.finish()
