#!/usr/bin/env python3
"""`tessera bench kernels`, and the ways that `tessera info` tells of. Sizes are small: no figure is looked at but for what it must be by itself."""
import csv
import io
import json
import os
import sys
import xml.etree.ElementTree

import harness

tool = harness.Tool(sys.argv[1])
WAYS = ["plain", "plain-ahead", "plain-rows", "stream", "stream-ahead", "stream-rows"]
SMALL = ["-b", "64K", "-n", 2, "-w", 0, "--calls", 1]
FIELDS = ["bench", "kernel", "run_bytes", "bytes", "variant", "bandwidth", "of_peak", "chosen", "of_best"]


def lines(*arguments, **options):
    done = tool.run("bench", "kernels", *arguments, "--json", **options)
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def every_way_has_a_line():
    found = lines("--kernel", "copy,reduce", "--kernel", "reduce-to-all", "--run-bytes", "4K,1T", *SMALL)
    wrong = harness.different("variants", [l["variant"] for l in found], WAYS * 6)
    wrong += harness.different("fields come first", [list(l)[:len(FIELDS)] for l in found], [FIELDS] * len(found))
    wrong += harness.different("kernels", [l["kernel"] for l in found[::6]], ["copy"] * 2 + ["reduce"] * 2 + ["reduce-to-all"] * 2)
    wrong += harness.different("runs", [l["run_bytes"] for l in found[::6]], [4096, 65536, 4096, 65536, 4096, 32768])
    wrong += harness.different("sizes", {l["bytes"] for l in found}, {65536})
    for begin in range(0, len(found), 6):
        of_best = [l["of_best"] for l in found[begin:begin + 6]]
        wrong += harness.different("the best of all", max(of_best), 1.0)
        wrong += harness.different("what is chosen", [l["variant"] for l in found[begin:begin + 6] if l["chosen"]], ["plain"])
    return wrong + [f"{l}: rates" for l in found if not (l["bandwidth"] > 0 and l["of_peak"] > 0 and 0 < l["of_best"] <= 1)]


def sizes_and_ranks_are_stepped_through():
    found = lines("--kernel", "copy", "--run-bytes", "1K", "--ranks", "1,2", "-b", "64K", "-e", "256K", "-f", 2, "-n", 1, "-w", 0, "--calls", 1)
    return harness.different("ranks and sizes", [(l["ranks"], l["bytes"]) for l in found[::6]],
                             [(ranks, size << 10) for ranks in (1, 2) for size in (64, 128, 256)])


def large_calls_choose():
    found = lines("--kernel", "copy", "--run-bytes", "16K", "-b", "8M", "-n", 1, "-w", 0, "--calls", 1)
    return harness.different("chosen", sum(l["chosen"] for l in found), 1)


def a_way_that_is_pinned_is_chosen():
    wrong = []
    for kernels, way in (("stream-rows", "stream-rows"), ("portable,plain-ahead", "plain-ahead"), ("fixed", "stream"), ("fixed,portable", "stream")):
        found = lines("--kernel", "copy", "--run-bytes", "16K", "-b", "8M", "-n", 1, "-w", 0, "--calls", 1, env={**os.environ, "TSR_KERNELS": kernels})
        wrong += harness.different(kernels, [l["variant"] for l in found if l["chosen"]], [way])
    return wrong


def people_get_a_table():
    done = tool.run("bench", "kernels", "--kernel", "copy", "--run-bytes", "1K,4K", *SMALL)
    heads = [line for line in done.stdout.splitlines() if line.startswith("#")]
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    wrong = harness.different("variants", [row[2] for row in rows], WAYS * 2)
    wrong += harness.different("one head", heads[0], "# copy, 1 rank, f32")
    return wrong + harness.different("the last line", heads[-1].startswith("# chosen / best: "), True)


def programs_get_csv():
    done = tool.run("bench", "kernels", "--kernel", "copy", "--run-bytes", "1K", *SMALL, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return harness.different("variants", [row["variant"] for row in rows], WAYS) + harness.different("seconds", "seconds.median" in rows[0], True)


def there_is_a_picture():
    path = tool.folder / "kernels.svg"
    done = tool.run("bench", "kernels", "--kernel", "copy,reduce", "--run-bytes", "1K,4K,16K", *SMALL, "--svg", path)
    words = " ".join(xml.etree.ElementTree.parse(path).getroot().itertext())
    return harness.different("exit", (done.returncode, done.stderr), (0, "")) + [word for word in [*WAYS, "copy", "reduce", "GB/s"] if word not in words]


def info_says_what_was_chosen():
    host = tool.json("info")["devices"][0]
    wrong = harness.different("ways", host["ways"], "measured") + harness.different("why", bool(host["ways_reason"]), True)
    wrong += harness.different("kernels", {c["kernel"] for c in host["choices"]}, {"copy", "reduce"})
    for choice in host["choices"]:
        wrong += harness.different("rates", list(choice["bandwidth"]), WAYS)
        wrong += [] if choice["way"] in [None, *WAYS] else [f"{choice['way']} is no way"]
    return wrong + harness.different("text", tool.run("info").stdout.count("runs from"), len(host["choices"]))


def info_says_what_is_pinned():
    wrong = []
    for kernels, way in (("stream", "stream"), ("portable,fixed", "fixed")):
        host = tool.json("info", env={**os.environ, "TSR_KERNELS": kernels})["devices"][0]
        wrong += harness.different(kernels, (host["ways"], host["choices"], "TSR_KERNELS" in host["ways_reason"]), (way, [], True))
    return wrong


tool.case("every way has a line, with the fields that programs know", every_way_has_a_line)
tool.case("sizes and ranks are stepped through", sizes_and_ranks_are_stepped_through)
tool.case("large calls choose one way", large_calls_choose)
tool.case("a way that is pinned is the one that is chosen", a_way_that_is_pinned_is_chosen)
tool.case("people get a table", people_get_a_table)
tool.case("programs get CSV", programs_get_csv)
tool.case("there is a picture", there_is_a_picture)
tool.case("info says what was chosen", info_says_what_was_chosen)
tool.case("info says what is pinned", info_says_what_is_pinned)
tool.refuses(2, ["bench", "kernels", "--kernel", "dance"], ["--kernel", "'dance'", "reduce-to-all"])
tool.refuses(2, ["bench", "kernels", "--run-bytes", "many"], ["--run-bytes", "'many'"])
tool.refuses(1, ["bench", "kernels", "--run-bytes", "2", "-b", "2"], ["f32"])
tool.refuses(1, ["bench", "kernels", "--ranks", "100000"], ["--ranks", "100000"])
tool.refuses(1, ["bench", "kernels", "--svg", "nowhere/at/all.svg"], ["--svg"])
tool.refuses(1, ["info"], ["TSR_KERNELS", "fastest", "stream-rows"], env={"TSR_KERNELS": "fastest"})
tool.refuses(1, ["info"], ["TSR_KERNELS", "avx2,,", "avx512"], env={"TSR_KERNELS": "avx2,,"})
tool.report.finish()
