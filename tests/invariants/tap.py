"""Test Anything Protocol, as far as these checks need it: each fact is a case. Contradictions go to
standard error, which `meson test --print-errorlogs` shows."""
import subprocess
import sys


class Report:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def check(self, fact, contradictions):
        """Reports a case, which holds if there are no contradictions."""
        self.count += 1
        contradictions = list(contradictions)
        print(f"{'not ok' if contradictions else 'ok'} {self.count} - {fact}", flush=True)
        if contradictions:
            self.failed = 1
            print(f"{fact}: it does not hold", *contradictions, sep="\n    ", file=sys.stderr)

    def skip(self, fact, reason):
        self.count += 1
        print(f"ok {self.count} - {fact} # SKIP {reason}")

    def finish(self):
        print(f"1..{self.count}")
        sys.exit(self.failed)


def run_cases(*tests):
    """Runs functions, each a case that holds if it raises nothing, and exits."""
    report = Report()
    for test in tests:
        try:
            test()
            contradictions = []
        except Exception as error:  # every kind of failure is told, and the others are still run
            contradictions = [f"{type(error).__name__}: {str(error)[:2000]}"]
        report.check(test.__name__, contradictions)
    report.finish()


def refused(kind, part, call, *arguments):
    """Raises ValueError unless the call fails with that kind of error, whose sentence contains `part`."""
    try:
        call(*arguments)
    except kind as error:
        if part not in str(error):
            raise ValueError(f'"{error}" does not say "{part}"') from error
        return
    raise ValueError(f'no {kind.__name__}: "{part}" was expected')


def run(*command, **options):
    """The command's standard output; raises an error if the command fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout
