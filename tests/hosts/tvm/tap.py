"""Runs functions as the cases of a test, in TAP."""


def run(*tests):
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}")
        except Exception as error:  # noqa: BLE001: every kind of failure is told, and the others are still run
            failed += 1
            print(f"# {type(error).__name__}: {error}\nnot ok {number} - {test.__name__}")
    return 1 if failed else 0


def refused(kind, part, call, *arguments):
    """The call fails with that kind of error, whose sentence contains `part`."""
    try:
        call(*arguments)
    except kind as error:
        if part not in str(error):
            raise ValueError(f'"{error}" does not say "{part}"') from error
        return
    raise ValueError(f'no {kind.__name__}: "{part}" was expected')
