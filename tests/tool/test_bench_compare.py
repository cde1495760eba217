#!/usr/bin/env python3
"""`tessera bench compare` on constructed files: the matching of lines, ratios, noise and exit
statuses."""
import json
import sys

import harness

tool = harness.Tool(sys.argv[1])
MOVE = {"bench": "redistribute", "engine": "threads", "device": "host", "mode": "direct", "ranks": 2, "mesh": "2", "shape": [64, 64],
        "dtype": "f32", "from": "S(0)", "to": "S(1)", "payload_bytes": 16384, "iterations": 11}
MEASURED = {"bandwidth": 1e9, "peak_bandwidth": 2e9, "of_peak": 0.5, "peak_copy": "memcpy", "wrong": 0}


def line(median=1.0, least=None, most=None, **fields):
    seconds = {"median": median, "min": median if least is None else least, "max": median if most is None else most}
    return {**MOVE, **MEASURED, "seconds": seconds, **fields}


def written(name, lines):
    path = tool.folder / name
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    return path


def compare(old, new, *options, json_too=True):
    done = tool.run("bench", "compare", written("old.json", old), written("new.json", new), *options, *(["--json"] if json_too else []))
    return done, json.loads(done.stdout) if json_too and done.stdout else None


def outcome(before, after, status, *options, **wanted):
    """What contradicts that exit status and those fields of the answer, or of its only row."""
    done, found = compare(before, after, *options)
    wrong = harness.different("exit status", done.returncode, status) + harness.different("complains", bool(done.stderr), status != 0)
    if found is None:
        return wrong + ["no answer"]
    for name, value in wanted.items():
        wrong += harness.different(name, found[name] if name in found else found["rows"][0][name], value)
    return wrong


def figures_are_medians_and_spreads():
    done, found = compare([line(2.0, 1.5, 3.0)], [line(3.0, 2.7, 3.3)], "--loss", "0.5")
    wrong = harness.different("exit status", (done.returncode, done.stderr), (0, ""))
    wrong += harness.different("fields", sorted(found), ["compared", "loss", "only_new", "only_old", "rows", "slower", "untimed", "wrong"])
    row = found["rows"][0]
    wrong += harness.different("old, new, ratio", (row["old"], row["new"], row["ratio"]), (2.0, 3.0, 1.5))
    # Half of 1.5 is 0.75 of 2, half of 0.6 a tenth of 3.
    return wrong + harness.different("noise", round(row["noise"], 12), 0.475)


def the_key_holds_what_was_asked_and_nothing_that_was_measured():
    _, found = compare([line()], [line()])
    words = found["rows"][0]["key"].split()
    asked = ["bench=redistribute"] + [f"{k}={v if isinstance(v, str) else json.dumps(v, separators=(',', ':'))}" for k, v in MOVE.items()
                                      if k != "bench"]
    return harness.different("key", words, asked)


def every_field_that_is_asked_for_parts_lines():
    wrong = []
    for name in MOVE:
        other = {name: [1] if name == "shape" else 99 if isinstance(MOVE[name], int) else "another"}
        done, _ = compare([line()], [line(**other)])
        wrong += harness.different(f"another {name}, exit status", done.returncode, 1)
        wrong += harness.different(f"another {name}, sentence", "nothing to compare" in done.stderr, True)
    return wrong


def no_field_that_is_measured_parts_lines():
    others = {"bandwidth": 3, "peak_bandwidth": 0, "of_peak": 1, "peak_copy": "non-temporal 32", "of_gemm": 0.7, "calls": 17,
              "gemm_seconds": {"median": 1, "min": 1, "max": 1}, "bytes_allocated": 3, "messages": 7, "messages_received": 3,
              "messages_sent": 4, "anything": 0.25, "read_seconds": None, "read_bandwidth": None, "of_read": 0.9,
              "read_calls": 3, "weight_bandwidth": 2, "points": [{"bytes": 64}], "inside": {"latency": 1e-6}}
    return sum((outcome([line()], [line(**{name: value})], 0, compared=1, slower=0) for name, value in others.items()), [])


def links_part_lines_unless_they_were_measured():
    given = {"bench": "simulate", "ranks": 2, "links": "inside=1e-6,1e9", "seconds": 1e-6}
    validated, again = {**given, "measured_seconds": {"median": 1e-6, "min": 1e-6, "max": 1e-6}}, "inside=1.1e-6,1.2e9"
    wrong = outcome([validated], [{**validated, "links": again}], 0, compared=1, slower=0)
    done, _ = compare([given], [{**given, "links": again}])
    return wrong + harness.different("given links, exit status", done.returncode, 1)


def a_field_of_one_version_alone_parts_nothing():
    """Where no line of the kind has it in the other file; it does part lines of a kind that has it there."""
    plan = {"bench": "plan", "ranks": 4, "warm_ups": 2}
    old = [line(1.0), line(2.0, dtype="f64"), {**plan, "seconds": 1}]
    new = [line(1.0, warm_ups=2, redop="none"), line(2.0, dtype="f64", warm_ups=2), {**plan, "warm_ups": 3, "seconds": 1}]
    plans = [f"bench=plan ranks=4 warm_ups={n}" for n in (2, 3)]
    wrong = outcome(old, new, 0, compared=2, only_old=plans[:1], only_new=plans[1:])
    return wrong + outcome(new, old, 0, compared=2, only_old=plans[1:], only_new=plans[:1])


def a_field_of_a_later_line_parts_lines():
    plan = {"bench": "plan", "ranks": 4}
    return outcome([{**plan, "warm_ups": 2, "seconds": 1}], [{**plan, "seconds": 2}, {**plan, "warm_ups": 2, "seconds": 3}], 1, compared=1, new=3.0)


def lines_of_one_kind_may_repeat_and_stand_in_any_order():
    old = [line(1.0), line(5.0, dtype="f64"), line(2.0), line(7.0, mesh="3")]
    new = [line(7.0, mesh="4"), line(5.0, dtype="f64"), line(1.0), line(2.0), line(9.0)]
    done, found = compare(old, new)
    wrong = harness.different("exit status", done.returncode, 0)
    wrong += harness.different("pairs", [(r["old"], r["new"]) for r in found["rows"]], [(1.0, 1.0), (5.0, 5.0), (2.0, 2.0)])
    alone = [[next(word for word in key.split() if word.startswith("mesh=")) for key in found[name]] for name in ("only_old", "only_new")]
    return wrong + harness.different("only in one", alone, [["mesh=3"], ["mesh=4", "mesh=2"]])


def the_table_names_what_one_file_has_alone():
    done, _ = compare([line(), line(mesh="3")], [line(), line(mesh="4"), '{"bench": "calibrate"}'], json_too=False)
    said = done.stdout.splitlines()[1:4]
    wrong = harness.different("untimed", said[0], "# 1 line has no seconds, and is left out")
    wrong += harness.different("old", (said[1].startswith("# only in the old file: bench=redistribute "), " mesh=3 " in said[1]), (True, True))
    return wrong + harness.different("new", (said[2].startswith("# only in the new file: bench=redistribute "), " mesh=4 " in said[2]), (True, True))


def wrong_results_are_refused_wherever_they_stand():
    sentence = "tessera: 1 of 2 new lines has wrong results\n"
    found = []
    for new in ([line(wrong=3), line(mesh="4")], [line(), line(mesh="4", wrong=1)]):
        done, answer = compare([line()], new)
        found += harness.different("exit status", (done.returncode, done.stderr), (1, sentence)) + harness.different("named", len(answer["wrong"]), 1)
    return found + outcome([line(wrong=3)], [line()], 0, compared=1, slower=0, wrong=[])


def the_table_says_slower_worse_and_better():
    old = [line(1.0, 0.99, 1.01, mesh=str(n)) for n in (2, 3, 4, 5)]
    new = [line(t, t - 0.01, t + 0.01, mesh=str(n)) for t, n in ((1.5, 2), (1.05, 3), (0.5, 4), (1.0, 5))]
    done, _ = compare(old, new, json_too=False)
    rows = [row.split()[4:] for row in done.stdout.splitlines()[3:]]
    words = [row[0] if not row[0].startswith("bench=") else "" for row in rows]
    wrong = harness.different("words", words, ["slower", "worse", "better", ""]) + harness.different("exit status", done.returncode, 1)
    return wrong + harness.different("sentence", done.stderr, "tessera: 1 of 4 lines is slower by more than 0.1, 1 of them beyond its noise\n")


def what_has_no_seconds_is_left_out():
    return outcome(['{"bench": "calibrate"}', "", line(), "  \t"], [line(), '{"bench": "calibrate"}'], 0, compared=1, only_old=[], only_new=[], untimed=2)


def figures_of_the_code_part_no_simulations():
    """How many ranks stand for all is chosen by the code."""
    given = {"bench": "simulate", "ranks": 65536, "links": "inside=1e-6,1e9", "seconds": 1e-6}
    return outcome([{**given, "planned": 256, "estimated": True}], [{**given, "planned": 65536, "estimated": False}], 0, compared=1, slower=0)


def files_may_be_long():
    """More lines than a table would be read of, and more bytes than a profile has: each finds its own among equals in the order of old."""
    count = 5000
    old = [line(n + 1.0, mesh=str(n % 1000 + 2)) for n in range(count)]
    new = [line(n + 1.0, mesh=str(n % 1000 + 2)) for n in sorted(range(count), key=lambda n: (n % 1000, n))]
    done, found = compare(old, new)
    wrong = harness.different("size", written("size.json", old).stat().st_size > 1 << 20, True)
    wrong += harness.different("exit status", (done.returncode, done.stderr), (0, ""))
    return wrong or harness.different("rows that differ", sum(row["ratio"] != 1 for row in found["rows"]) + abs(len(found["rows"]) - count), 0)


def text_beyond_the_limit(name):
    """Nothing of it is on the disk."""
    path = tool.folder / name
    with open(path, "wb") as file:
        file.truncate(1 << 26)
    return path


def nothing_but_lines_without_seconds_is_named():
    done, _ = compare(['{"bench": "calibrate"}'], ['{"bench": "calibrate"}'])
    return harness.different("it is said", (done.returncode, "; lines without seconds, as calibrate's, are left out\n" in done.stderr), (1, True))


def what_is_slower_within_its_noise_is_told_apart():
    old = [line(1.0, 0.9, 1.1, mesh="2"), line(1.0, 0.2, 1.8, mesh="3")]
    done, _ = compare(old, [line(1.5, 1.4, 1.6, mesh="2"), line(1.5, 1.4, 1.6, mesh="3")], json_too=False)
    wrong = harness.different("two", done.stderr, "tessera: 2 of 2 lines are slower by more than 0.1, 1 of them beyond their noise\n")
    return wrong + harness.different("one line", compare([line()], [line()], json_too=False)[0].stdout.split(", ")[0], "# 1 line compared")


def seconds_may_be_one_number():
    return outcome([{"bench": "simulate", "seconds": 2}], [{"bench": "simulate", "seconds": 3.0}], 1, old=2.0, new=3.0, ratio=1.5, noise=0.0)


def real_output_compares_with_itself():
    """Two runs of every kind: what differs between them is measured."""
    move = ["--mesh", "2", "--shape", "8x8", "--from", "S(0)", "--to", "R"]
    words = [["plan", *move, "--iterations", 3], ["linear", "--mesh", "2", "--tokens", 4, "--hidden", 4, "--intermediate", 4, "-n", 2],
             ["redistribute", *move, "-n", 2], ["dispatch", *move, "-n", 2], ["simulate", *move]]
    runs = [[line for kind in words for line in tool.run("bench", *kind, "--json").stdout.splitlines()] for _ in range(2)]
    return outcome(*runs, 0, "--loss", "1e9", compared=len(words) + 1, slower=0, only_old=[], only_new=[], untimed=0)


tool.case("ratios are of medians, noise is of both spreads", figures_are_medians_and_spreads)
tool.case("files of lines without seconds alone are told why", nothing_but_lines_without_seconds_is_named)
tool.case("what is slower within its noise is told apart", what_is_slower_within_its_noise_is_told_apart)
tool.case("a loss is refused beyond a tenth", outcome, [line(10.0)], [line(11.5)], 1, compared=1, slower=1, loss=0.1)
tool.case("a loss up to a tenth is not", outcome, [line(10.0)], [line(10.9)], 0, compared=1, slower=0)
tool.case("--loss says how much", outcome, [line(10.0)], [line(11.5)], 0, "--loss", "0.2", slower=0, loss=0.2)
tool.case("--loss 0 refuses anything", outcome, [line(10.0)], [line(10.001)], 1, "--loss", "0", slower=1)
tool.case("what is quicker is no loss", outcome, [line(10.0)], [line(1.0)], 0, "--loss", "0", slower=0, ratio=0.1)
tool.case("nothing is as quick as no time", outcome, [line(0.0)], [line(1.0)], 1, slower=1, ratio=None)
tool.case("no time is as quick as no time", outcome, [line(0.0)], [line(0.0)], 0, slower=0, ratio=1.0)
tool.case("a spread beyond all numbers is told as none", outcome, [line(1e-300, 0, 1e308)], [line(1e-300, 0, 1e308)], 0, compared=1, noise=None, ratio=1.0)
tool.case("the table names what one file has alone", the_table_names_what_one_file_has_alone)
tool.case("wrong results are refused wherever they stand", wrong_results_are_refused_wherever_they_stand)
tool.case("the key holds what was asked for", the_key_holds_what_was_asked_and_nothing_that_was_measured)
tool.case("every field that is asked for parts lines", every_field_that_is_asked_for_parts_lines)
tool.case("no field that is measured parts lines", no_field_that_is_measured_parts_lines)
tool.case("links part lines unless they were measured", links_part_lines_unless_they_were_measured)
tool.case("figures that follow from the code part no simulations", figures_of_the_code_part_no_simulations)
tool.case("files may be long", files_may_be_long)
tool.case("results that were not checked are not wrong", outcome, [line()], [line(wrong=None)], 0, compared=1, wrong=[])
tool.case("a field that one version alone prints parts nothing", a_field_of_one_version_alone_parts_nothing)
tool.case("a field of a later line parts lines", a_field_of_a_later_line_parts_lines)
tool.case("lines may repeat and stand in any order", lines_of_one_kind_may_repeat_and_stand_in_any_order)
tool.case("the table says what is slower, worse and better", the_table_says_slower_worse_and_better)
tool.case("lines without seconds, and empty ones, are left out", what_has_no_seconds_is_left_out)
tool.case("seconds may be one number", seconds_may_be_one_number)
tool.case("what benchmarks print compares with itself", real_output_compares_with_itself)

GOOD = written("good.json", [line()])
EMPTY = written("empty.json", [])
for arguments, status, mentions in [
        ((), 2, ["OLD.json NEW.json"]), ((GOOD,), 2, ["OLD.json NEW.json"]), ((GOOD, GOOD, GOOD), 2, ["unexpected", "good.json"]),
        ((GOOD, "/nowhere/x.json"), 1, ["/nowhere/x.json"]), ((GOOD, tool.folder), 1, [tool.folder.name]),
        ((GOOD, EMPTY), 1, ["nothing to compare", "empty.json"]), ((EMPTY, EMPTY), 1, ["nothing to compare"]),
        ((GOOD, written("torn.json", [line(), '{"bench": "pl'])), 2, ["torn.json", "line 2", "character 13"]),
        ((written("list.json", ["[1]"]), GOOD), 2, ["list.json", "line 1", "object"]),
        ((GOOD, written("word.json", [line(seconds="quick")])), 2, ["word.json", "line 1", "seconds"]),
        ((GOOD, written("order.json", ["", line(2.0, 3.0, 4.0)])), 2, ["order.json", "line 2", "seconds"]),
        *(((GOOD, written(f"seconds-{n}.json", [line(seconds=seconds)])), 2, [f"seconds-{n}.json", "line 1", "seconds"])
          for n, seconds in enumerate(({}, {"max": 9e-6}, {"median": 1, "min": 1}, {"median": 1, "max": 1}, {"min": 1, "max": 1},
                                       {"median": "9e-6", "min": 0, "max": 1}, {"median": 9e-6, "min": None, "max": 1},
                                       {"median": 9e-6, "min": 0, "max": [3]}, {"median": True, "min": 0, "max": 1}, None, -1))),
        ((GOOD, written("verdict.json", [line(wrong="3")])), 2, ["verdict.json", "line 1", "wrong"]),
        ((written("nameless.json", [line(), {"name": "a", "mesh": "2", "seconds": 1}]), GOOD), 2, ["nameless.json", "line 2", '"bench"']),
        ((GOOD, written("number.json", [line(bench=3)])), 2, ["number.json", "line 1", '"bench"']),
        ((GOOD, written("untimed.json", [{"seconds_of": 1}])), 2, ["untimed.json", "line 1", '"bench"']),
        ((GOOD, text_beyond_the_limit("vast.json")), 1, ["vast.json", "67108864 bytes or more"]),
        ((GOOD, GOOD, "--loss", "x"), 2, ["--loss", "x"]), ((GOOD, GOOD, "--loss", "-0.1"), 2, ["-0.1"]), ((GOOD, GOOD, "--loss", "nan"), 2, ["nan"]),
        ((GOOD, GOOD, "--loss", "0x1"), 2, ["0x1"]), ((GOOD, GOOD, "--loss", "1e999"), 2, ["1e999"]), ((GOOD, GOOD, "--loss", "1.5z"), 2, ["1.5z"]),
        ((GOOD, GOOD, "--loss", "1e"), 2, ["1e"]), ((GOOD, GOOD, "--loss", ""), 2, ["--loss"])]:
    tool.refuses(status, ["bench", "compare", *arguments], mentions)
tool.report.finish()
