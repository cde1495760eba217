#!/usr/bin/env python3
"""`tessera rows` on real files: rows and tables are those of plain loops; failures leave no files.
And `tessera bench rows`, whose figures are looked at only for what they must be by themselves.

usage: test_rows.py TOOL"""
import itertools
import json
import math
import random
import sys

import harness

tool = harness.Tool(sys.argv[1])
numbers = itertools.count()
FEW = ["-n", 2, "-w", 0, "--calls", 1]
FIELDS = ["bench", "op", "engine", "ranks", "rows", "row_bytes", "ids", "skew", "duplicates", "seconds", "rows_per_second", "bandwidth", "of_copy",
          "wrong", "calls"]
LAYOUTS = [("1", "R", 1), ("2", "S(0)", 2), ("3", "S(0;sizes=4,0,5)", 3), ("2", "S(1)", 2), ("2x2", "S(0),S(1)", 4), ("2x2", "R,S(0)", 4),
           ("4", "S(0;interleave=2)", 4), ("2@[1,0]", "S(0)", 2)]
ROWS, WIDTH = 9, 4


def fresh(name="out"):
    return tool.folder / f"{name}-{next(numbers)}"


def folder(name):
    path = fresh(name)
    path.mkdir()
    return path


def write_shards(name, descr, shards):
    """Each shard is (shape, elements)."""
    path = folder(name)
    for rank, (shape, elements) in enumerate(shards):
        harness.write_npy(path / f"rank-{rank}.npy", descr, shape, elements)
    return path


def case_of(ranks):
    """A table, the ids of each rank, and their rows."""
    table = [[random.randrange(-99, 99) for _ in range(WIDTH)] for _ in range(ROWS)]
    ids = [[random.randrange(ROWS) for _ in range(random.randrange(7))] for _ in range(ranks)]
    rows = [[[random.randrange(-9, 9) for _ in range(WIDTH)] for _ in of] for of in ids]
    return table, ids, rows


def flat(rows):
    return [value for row in rows for value in row]


def write_case(table, ids, rows, descr, id_descr):
    path = fresh("table.npy")
    harness.write_npy(path, descr, (ROWS, WIDTH), flat(table))
    return (path, write_shards("ids", id_descr, [((len(of),), of) for of in ids]),
            write_shards("rows", descr, [((len(of), WIDTH), flat(of)) for of in rows]))


def updated(table, ids, rows, op):
    table = [list(row) for row in table]
    for at in range(ROWS):
        found = [row for of, brought in zip(ids, rows) for i, row in zip(of, brought) if i == at]
        for c in range(WIDTH if found else 0):
            column = [row[c] for row in found]
            table[at][c] = {"assign": column[-1], "add": table[at][c] + sum(column), "mean": table[at][c] + sum(column) / len(column),
                            "max": max([table[at][c], *column])}[op]
    return table


def gathered_rows_come_in_the_order_of_ids(mesh, placements, ranks, id_descr):
    table, ids, rows = case_of(ranks)
    path, id_folder, _ = write_case(table, ids, rows, "<f4", id_descr)
    out = fresh()
    answer = tool.json("rows", "gather", "--mesh", mesh, "--placements", placements, "--table", path, "--ids", id_folder, "--output", out)
    wrong = harness.different("ids", answer["ids"], sum(map(len, ids))) + harness.different("op, ranks", (answer["op"], answer["ranks"]), ("gather", ranks))
    wrong += harness.different("files", sorted(p.name for p in out.iterdir()), sorted(answer["files"]))
    for rank, of in enumerate(ids):
        wrong += harness.different(f"rank {rank}", harness.read_npy(out / f"rank-{rank}.npy"), ("<f4", (len(of), WIDTH), flat(table[i] for i in of)))
    return wrong


def tables_are_updated(mesh, placements, ranks, op, descr):
    table, ids, rows = case_of(ranks)
    path, id_folder, row_folder = write_case(table, ids, rows, descr, "<i8")
    out = fresh("new.npy")
    answer = tool.json("rows", "update", "--mesh", mesh, "--placements", placements, "--table", path, "--ids", id_folder, "--rows", row_folder,
                       "--op", op, "--output", out)
    wrong = harness.different("answer", (answer["op"], answer["ids"], answer["files"]), (op, sum(map(len, ids)), [out.name]))
    return wrong + harness.different("table", harness.read_npy(out), (descr, (ROWS, WIDTH), flat(updated(table, ids, rows, op))))


def refusals():
    table, ids, rows = case_of(2)
    ids = [[1, 2], [3, ROWS]]
    rows = [[[0] * WIDTH] * 2] * 2
    path, id_folder, row_folder = write_case(table, ids, rows, "<f4", "<i8")
    out, new = fresh(), fresh("new.npy")
    gather = ["rows", "gather", "--mesh", 2, "--placements", "S(0)", "--table", path, "--ids", id_folder, "--output", out]
    update = ["rows", "update", "--mesh", 2, "--placements", "S(0)", "--table", path, "--ids", id_folder, "--rows", row_folder, "--output", new]
    tool.refuses(1, gather, ["ids of rank 1 at position 1 is 9: there are 9 rows"])
    tool.refuses(1, [*update, "--op", "add"], ["ids of rank 1 at position 1 is 9"])
    tool.report.check("failures leave no files", [] if not out.exists() and not new.exists() else ["there are files"])
    tool.refuses(2, [*update, "--op", "sum"], ["none of assign, add, mean and max"])
    tool.refuses(2, update, ["--op"])
    tool.refuses(1, [*gather[:5], "P", *gather[6:]], ["holds terms, not rows"])
    tool.refuses(1, [*gather[:3], 3, *gather[4:]], ["rank-2.npy"])
    narrow = write_shards("rows", "<f8", [((2, WIDTH), [0] * 8)] * 2)
    tool.refuses(1, [*update[:-3], narrow, *update[-2:], "--op", "add"], ["f64"])


def lines(*arguments):
    done = tool.run("bench", "rows", *arguments, *FEW, "--json")
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def benchmarks_are_right(*arguments):
    found = lines("--shape", "301x5", "--batch", 40, *arguments)
    wrong = harness.different("fields", {tuple(l) for l in found}, {tuple(FIELDS)})
    wrong += harness.different("wrong", [l["wrong"] for l in found], [0] * len(found))
    wrong += harness.different("rows", {(l["rows"], l["row_bytes"], l["ids"]) for l in found}, {(301, 20, 40)})
    return wrong + [f"{l}: rates" for l in found if not (abs(l["bandwidth"] / (20 * l["rows_per_second"]) - 1) < 1e-9 and l["of_copy"] > 0 and l["seconds"]["min"] > 0)]


def ops_are_gather_and_add_unless_one_is_named():
    wrong = harness.different("both", [l["op"] for l in lines("--shape", "50x3", "--batch", 9)], ["gather", "add"])
    return wrong + harness.different("max", [(l["op"], l["ranks"]) for l in lines("--shape", "50x3", "--batch", 9, "--op", "max", "--ranks", 3)], [("max", 3)])


def experts_are_right(*arguments):
    found = lines("--op", "experts", "--batch", 30, *arguments)
    wrong = harness.different("fields", [list(l) for l in found], [[*FIELDS, "slots"]])
    wrong += harness.different("wrong", [(l["wrong"], l["ids"], l["slots"]) for l in found], [(0, 60, 2)])
    return wrong + [f"{l}: rates" for l in found if not (l["bandwidth"] > 0 and l["of_copy"] > 0 and l["seconds"]["min"] > 0)]


def people_get_a_table():
    done = tool.run("bench", "rows", "--shape", "50x4", "--batch", 9, "-c", 0, *FEW)
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    return harness.different("rows", [row[:5] + [row[9]] for row in rows], [["gather", "2", "50", "16", "9", "N/A"], ["add", "2", "50", "16", "9", "N/A"]])


def lines_can_be_compared():
    path = tool.folder / "rows.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines("--shape", "50x4", "--batch", 9)))
    return harness.different("compared", tool.json("bench", "compare", path, path)["compared"], 2)


random.seed(7)
for mesh, placements, ranks in LAYOUTS:
    for id_descr in ("<i8", "<i4"):
        tool.case(f"rows of {placements} on {mesh} come in the order of ids ({id_descr})", gathered_rows_come_in_the_order_of_ids, mesh, placements, ranks,
                  id_descr)
    for op, descr in (("assign", "<i2"), ("add", "<i8"), ("add", "<f8"), ("mean", "<f8"), ("max", "<i4")):
        tool.case(f"tables of {placements} on {mesh} are updated: {op}, {descr}", tables_are_updated, mesh, placements, ranks, op, descr)
refusals()
for arguments in ([], ["--skew", "zipf"], ["--duplicates", 60, "--ranks", 3], ["--op", "mean", "--skew", "zipf"], ["--op", "assign"], ["--op", "max", "--ranks", 1]):
    tool.case(f"bench rows {harness.shown(arguments)[8:]}: every element is right", benchmarks_are_right, *arguments)
for arguments in ([], ["--shape", "3x5", "--ranks", 4], ["--shape", "1x16", "--ranks", 3], ["--skew", "zipf", "--shape", "20x9"]):
    tool.case(f"bench rows --op experts {harness.shown(arguments)[8:]}: every element is right", experts_are_right, *arguments)
tool.case("bench rows measures gather and add unless an op is named", ops_are_gather_and_add_unless_one_is_named)
tool.case("bench rows prints a table", people_get_a_table)
tool.case("bench compare knows lines of bench rows", lines_can_be_compared)
for arguments, mentions in (["--op", "sum"], ["none of gather, assign"]), (["--skew", "even"], ["neither uniform nor zipf"]), (["--duplicates", 101], ["percentage"]), \
        (["--shape", "3"], ["rows of one or more columns"]), (["--op", "experts", "--shape", "8"], ["like 8x1024"]), \
        (["--op", "experts", "--duplicates", 5], ["name each expert once"]):
    tool.refuses(2, ["bench", "rows", *arguments], mentions)
tool.report.finish()
