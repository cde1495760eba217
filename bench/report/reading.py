"""Reads files of scripts/bench-peers, with all checks that the rest of the report relies on."""
import json
import math


class Unreadable(Exception):
    """The file is not what scripts/bench-peers writes."""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_positive(value):
    return is_number(value) and value > 0


def is_count(value):
    return is_number(value) and isinstance(value, int) and value >= 1


def is_text(value):
    return isinstance(value, str)


def is_rounds(value):
    return isinstance(value, list) and all(map(is_positive, value))


def is_spread(value):
    return isinstance(value, dict) and is_positive(value.get("median")) and is_rounds(value.get("rounds", []))


def is_share(value):
    return value is None or (is_number(value) and value >= 0)


def is_rates(value):
    return isinstance(value, list) and all(map(is_share, value))


def is_versions(value):
    return isinstance(value, dict) and all(version is None or is_text(version) for version in value.values())


def is_texts(value):
    return value is None or (isinstance(value, list) and all(map(is_text, value)))


#: The check of each field, in any line, and the words for it in errors.
TEXT, COUNT, SPREAD = (is_text, "text"), (is_count, "a whole number from 1"), (is_spread, "positive numbers with a median")
SHARE, RATES = (is_share, "null or a number from 0"), (is_rates, "a list of numbers from 0")
FIELDS = {
    **dict.fromkeys(("kind", "implementation", "way", "from", "to", "pass", "began", "ended", "refused", "op", "sizes", "program", "skew"),
                    TEXT),
    **dict.fromkeys(("ranks", "bytes", "payload_bytes", "tokens", "hidden", "intermediate", "heads", "kv_heads", "rows", "columns", "ids"), COUNT),
    **dict.fromkeys(("rounds", "samples", "asked"), COUNT),
    **dict.fromkeys(("seconds", "gemm_seconds", "of_peak", "of_copy"), SPREAD),
    **dict.fromkeys(("others", "wrong", "peak_bandwidth", "limit_bandwidth"), SHARE),
    **dict.fromkeys(("peak_rounds", "limit_rounds"), RATES),
    "threads_per_core": (lambda value: value is None or is_count(value), "null or a whole number from 1"),
    "versions": (is_versions, "an object of names and versions"), "caches": (is_texts, "null or a list of texts"),
}
#: The fields that a line must have: always, by its kind, and by its kind if it has a figure.
ALWAYS = ("kind", "implementation", "way", "ranks")
CASES = {"move": ("from", "to", "bytes"), "linear": ("tokens", "hidden", "intermediate"), "decode": ("kv_heads",), "ops": ("op", "sizes"),
         "program": ("program", "tokens", "hidden", "heads", "kv_heads", "intermediate"),
         "rows": ("op", "rows", "columns", "ids", "skew")}
FIGURES = {"move": ("payload_bytes",), "linear": ("pass", "gemm_seconds"), "decode": (), "ops": ("pass",), "program": (), "rows": ()}
MEASURED = ("seconds", "rounds", "samples")


def wrong_field(line, wanted):
    """What is wrong with the fields of a line, in words; None if nothing is."""
    for field in wanted:
        if field not in line:
            return f'it has no "{field}"'
    for field, (holds, called) in FIELDS.items():
        if field in line and not holds(line[field]):
            return f'its "{field}" is {json.dumps(line[field])[:60]}, not {called}'
    return None


def wrong_figure(line):
    kind = line.get("kind")
    if kind not in CASES:
        return f'its "kind" is {json.dumps(kind)[:60]}, not one of {", ".join(CASES)}'
    measured = "refused" not in line
    return wrong_field(line, (*ALWAYS, *CASES[kind], *((*FIGURES[kind], *MEASURED) if measured else ())))


def parsed(path, number, text, last):
    try:
        return json.loads(text)
    except ValueError as error:
        cut = last and number > 1 and not text.endswith("\n")
        raise Unreadable(f"{path}, line {number}: it was cut off: leave it out, or measure again" if cut
                         else f"{path}, line {number}: it is not JSON, so scripts/bench-peers did not write it") from error


def read(path):
    """The lines of a file: the machine, then figures and refusals. Raises Unreadable."""
    try:
        with open(path, encoding="utf-8") as text:
            texts = [(number, line) for number, line in enumerate(text, 1) if line.strip()]
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Unreadable(f"{path}: it is not text, so scripts/bench-peers did not write it") from error
    lines = [(number, parsed(path, number, line, (number, line) == texts[-1])) for number, line in texts]
    if not lines or not isinstance(lines[0][1], dict) or lines[0][1].get("kind") != "machine":
        raise Unreadable(f'{path}: its first line is not {{"kind": "machine", ..}}, so scripts/bench-peers did not write it')
    for number, line in lines:
        wrong = ("it is not an object" if not isinstance(line, dict)
                 else wrong_field(line, ()) if line is lines[0][1] else wrong_figure(line))
        if wrong:
            raise Unreadable(f"{path}, line {number}: {wrong}")
    return [line for _, line in lines]
