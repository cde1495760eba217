"""Test Anything Protocol, the part that the checks here need: a case a fact. What contradicts one goes to standard error, which
`meson test --print-errorlogs` shows."""
import subprocess
import sys


class Report:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def check(self, fact, contradictions):
        """One case: it holds where nothing contradicts it."""
        self.count += 1
        contradictions = list(contradictions)
        print(f"{'not ok' if contradictions else 'ok'} {self.count} - {fact}")
        if contradictions:
            self.failed = 1
            print(f"{fact}: it does not hold", *contradictions, sep="\n    ", file=sys.stderr)

    def skip(self, fact, reason):
        self.count += 1
        print(f"ok {self.count} - {fact} # SKIP {reason}")

    def finish(self):
        print(f"1..{self.count}")
        sys.exit(self.failed)


def run(*command, **options):
    """The command's standard output; a failing command is an error."""
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout
