#!/usr/bin/env python3
"""scripts/common.sh gets a build a BLAS that fits, with stand-ins for the tool, Python's venv, Meson and ninja. TAP.

usage: test_fit_blas.py SOURCE_ROOT
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests" / "invariants"))
import tap  # noqa: E402

WARNING = "the BLAS openblas took its kernels for Prescott"
# Stands in for python3 and for the pip and python of a venv. Other calls go to `real`.
PYTHON = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
case $1 in
-m) [ "$VENV_WORKS" = 1 ] || exit 1; mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/pip" ;;
install) [ "$PIP_WORKS" = 1 ] ;;
-c) case $2 in *ensurepip*) ;; *scipy_openblas32*) echo "Name: openblas" ;; *) exec REAL "$@" ;; esac ;;
esac
"""
LOGGING = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def fit(*warnings, venv=1, pip=1):
    """The output, the calls and the files of the script, for a build whose tool gives these
    warnings of its libraries."""
    with tempfile.TemporaryDirectory() as place:
        folder, build = pathlib.Path(place), pathlib.Path(place) / "build"
        info = {"providers": [{"warning": warning} for warning in warnings]}
        write(build / "tools" / "tessera", f"#!/bin/sh\ncat << 'END'\n{json.dumps(info)}\nEND\n")
        write(folder / "bin" / "python3", PYTHON.replace("REAL", sys.executable))
        for name in ("meson", "ninja"):
            write(folder / "bin" / name, LOGGING)
        log = folder / "log"
        log.write_text("")
        done = subprocess.run(["sh", "-euc", f". scripts/common.sh; fit_blas {build} tools/tessera"], cwd=ROOT, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LOG": str(log), "VENV_WORKS": str(venv),
                                   "PIP_WORKS": str(pip)}, timeout=60)
        calls = [line.replace(str(build), "BUILD") for line in log.read_text().splitlines()]
        package = build / "blas" / "scipy-openblas.pc"
        return done, [line for line in calls if not line.startswith(("python3 -c", "sys."))], package.read_text() if package.exists() else None


def different(what, found, wanted):
    return [] if found == wanted else [f"{what}: {found!r} instead of {wanted!r}"]


def check_fits(report):
    done, calls, package = fit(None)
    report.check("a BLAS that fits is left alone", different("calls", calls, []) + different("said", done.stdout, "") +
                 different("status", done.returncode, 0) + different("package", package, None))
    _, calls, _ = fit(None, WARNING)
    report.check("so is one behind that which the user has named", different("calls", calls, []))


def check_does_not_fit(report):
    done, calls, package = fit(WARNING)
    wanted = ["python3 -m venv BUILD/blas", "pip install --quiet scipy-openblas32==", "python -c",
              "meson configure BUILD -Dblas=scipy-openblas -Dpkg_config_path=BUILD/blas", "ninja -C BUILD tools/tessera"]
    wrong = different("calls", len(calls), len(wanted)) + [f"{call} for {want}" for call, want in zip(calls, wanted) if not call.startswith(want)]
    report.check("one that does not is replaced by a newer one, in the build alone, and said", wrong + different("package", package, "Name: openblas\n") +
                 different("status", done.returncode, 0) + different("said", "a BLAS that knows this processor" in done.stdout, True))


def check_offline(report):
    for what, options in {"venv": {"venv": 0}, "pip": {"pip": 0}}.items():
        done, calls, _ = fit(WARNING, **options)
        report.check(f"without {what} the build stays as it is, and that is said", different("status", done.returncode, 0) +
                     different("said", "it cannot be had" in done.stdout, True) +
                     different("configured", [call for call in calls if call.startswith("meson")], []))


def main():
    report = tap.Report()
    check_fits(report)
    check_does_not_fit(report)
    check_offline(report)
    report.finish()


main()
