"""Runs tests, and tells of them as TAP."""


def run(tests):
    """The program's exit status: 1 if a test raised."""
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001: every kind of failure is told, and the others are still run
            failed += 1
            print(f"# {type(error).__name__}: {str(error)[:2000]}\nnot ok {number} - {test.__name__}", flush=True)
    return 1 if failed else 0
