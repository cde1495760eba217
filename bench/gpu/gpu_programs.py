"""Runs the built programs: the tests that use a GPU, and these under compute-sanitizer."""
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time

# Failed calls are not reported: some tests make them on purpose.
SANITIZERS = {"memcheck": ["--report-api-errors", "no"], "racecheck": []}
# The exit status of a sanitizer that found an error.
FOUND = 99
TEST_SECONDS, SANITIZER_SECONDS = 600, 900
# Moves to run under the sanitizers: they use every way in which kernels read peers.
MOVES = (("S(0)", "S(1)", "bf16"), ("P", "S(0)", "f32"), ("P", "R", "i32"))


class Place:
    """A build, on this machine's GPUs or, in a dry run, on emulated ones."""

    def __init__(self, root, build, dry_run):
        self.root, self.build, self.dry_run = root, build, dry_run
        self.emulated = build / "tests" / "tool" / "emulated"
        self.tool = build / "tools" / "tessera"
        self.gemm_peer = self.emulated / "gemm-peer" if dry_run else build / "bench" / "gpu" / "gemm-peer"
        self.environment = dict(os.environ)
        if dry_run:
            self.environment["LD_LIBRARY_PATH"] = str(self.emulated)
        counting = importlib.machinery.SourceFileLoader("count_cases", str(root / "scripts" / "count-cases"))
        self.counting = importlib.util.module_from_spec(importlib.util.spec_from_loader("count_cases", counting))
        counting.exec_module(self.counting)

    def run(self, command, seconds, **environment):
        """(exit status, standard output, standard error) of a program; after `seconds` it is ended,
        with status None."""
        command = [str(word) for word in command]
        # A test's own libraries come before those that the machine's environment names.
        libraries = [environment.get("LD_LIBRARY_PATH"), self.environment.get("LD_LIBRARY_PATH")]
        if all(libraries):
            environment["LD_LIBRARY_PATH"] = ":".join(libraries)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=self.build, env={**self.environment, **environment})
            return done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            return None, (late.stdout or b"").decode(errors="replace"), f"ended after {seconds} s"
        except OSError as error:
            return None, "", f"{command[0]}: {error.strerror}"

    def tool_json(self, *arguments):
        status, out, error = self.run([self.tool, *arguments, "--json"], TEST_SECONDS)
        if status != 0:
            raise SystemExit(f"scripts/gpu-check: tessera {' '.join(arguments)}: {error.strip() or status}")
        return json.loads(out)

    def said_last(self, *command):
        out = self.run(command, 60)[1].split("\n")
        return next((line.strip() for line in reversed(out) if line.strip()), None)

    def tests(self):
        """Meson's tests that use a GPU or, in a dry run, tests on the emulated machine."""
        wanted = "gpu-dry-run" if self.dry_run else "gpu"
        information = self.build / "meson-info"
        recorded = json.loads((information / "meson-info.json").read_text())["directories"]
        rows = json.loads((information / "intro-tests.json").read_text())
        return [self.settled(row, recorded) for row in rows if wanted in (suite.split(":")[-1] for suite in row["suite"])]

    def settled(self, row, recorded):
        """A test with its paths adjusted: build and sources may have been moved here from other
        folders or another machine."""
        moved = ((recorded["build"], str(self.build)), (recorded["source"], str(self.root)))

        def here(path):
            path = os.path.normpath(path) if path.startswith("/") else path
            return next((to + path[len(was):] for was, to in moved if path == was or path.startswith(was + "/")), path)

        command = [here(word) for word in row["cmd"]]
        if "python" in os.path.basename(command[0]):
            command[0] = sys.executable
        environment = {name: ":".join(map(here, value.split(":"))) for name, value in row["env"].items()}
        return {"name": row["name"], "command": command, "environment": environment}


def count(place, name, status, out, error):
    """(passed, failed, skipped) cases of a program, as scripts/count-cases counts them."""
    result = "OK" if status == 0 else "SKIP" if status == 77 else "FAIL"
    return place.counting.count({"name": name, "result": result, "stdout": out, "stderr": error})


def lost_track(out):
    """Whether a sanitizer gave up following launches, which it says in an error of its own, and found no other: then its run tells nothing."""
    said = [line.removeprefix("=========").strip() for line in out.split("\n") if line.startswith("=========")]
    found = [line for line in said
             if line not in ("", "COMPUTE-SANITIZER") and " SUMMARY: " not in line and not line.startswith("Target application returned")]
    return bool(found) and all(line.startswith("Internal Sanitizer Error: Detected a failure to track a kernel launch") for line in found)


def last_words(out, error):
    return [line for line in (out + "\n" + error).split("\n") if line.strip()][-15:]


def run_program(place, name, command, seconds, environment):
    began = time.monotonic()
    status, out, error = place.run(command, seconds, **environment)
    passed, failed, skipped = count(place, name, status, out, error)
    lost = status == FOUND and lost_track(out + "\n" + error)
    if lost:
        status, failed, skipped = 77, failed - 1, skipped + 1
    row = {"name": name, "exit": status, "passed": passed, "failed": failed, "skipped": skipped, "seconds": round(time.monotonic() - began, 1)}
    if status not in (0, 77) or failed or lost:
        row["said"] = last_words(out, error)
    print("\n    ".join([f"  {name}: {passed} passed, {failed} failed, {skipped} skipped", *row.get("said", [])]), flush=True)
    return row


def sum_up(rows):
    totals = {key: sum(row[key] for row in rows) for key in ("passed", "failed", "skipped")}
    ok = totals["failed"] == 0 and totals["passed"] > 0 and all(row["exit"] in (0, 77) for row in rows)
    return {"ok": ok, **totals, "programs": rows}


def run_tests(place):
    print("tests", flush=True)
    rows = []
    for test in place.tests():
        rows.append(run_program(place, test["name"], test["command"], TEST_SECONDS, test["environment"]))
    return sum_up(rows)


def find_sanitizer():
    for path in (shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"):
        if path and os.access(path, os.X_OK):
            return path
    return None


def subjects(place):
    """(name, command, environment) of the programs to sanitize: the tests that are compiled
    programs, with sweeps thinned, and moves."""
    for test in place.tests():
        if test["command"][0] != sys.executable:
            yield test["name"], test["command"], {**test["environment"], "TSR_TEST_THIN": "1"}
    for source, target, dtype in MOVES:
        move = ["bench", "redistribute", "--mesh", "2", "--shape", "257x130", "--dtype", dtype, "--from", source, "--to", target, "--iterations", "2",
                "--device", "cuda"]
        yield f"tessera {source} -> {target} {dtype}", [place.tool, *move], {}


def run_sanitizers(place):
    """Runs each program under each sanitizer, several at once; in a dry run without them."""
    path, found = find_sanitizer(), {}
    if path is None and not place.dry_run:
        return {"ok": False, "reason": "there is no compute-sanitizer, which comes with the CUDA toolkit"}
    print("sanitizers", flush=True)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)) // 2 or 1) as pool:
        runs = {sanitizer: [] for sanitizer in SANITIZERS}
        for name, command, environment in subjects(place):
            for sanitizer, options in SANITIZERS.items():
                before = [] if place.dry_run else [path, "--tool", sanitizer, *options, "--error-exitcode", str(FOUND)]
                runs[sanitizer].append(pool.submit(run_program, place, f"{sanitizer} {name}", [*before, *command], SANITIZER_SECONDS, environment))
        for sanitizer, submitted in runs.items():
            found[sanitizer] = sum_up([run.result() for run in submitted])
    return {"ok": all(section["ok"] for section in found.values()), **found}
