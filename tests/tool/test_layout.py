#!/usr/bin/env python3
"""`tessera info` and `tessera layout`: fields and values, against index lists."""
import itertools
import math
import re
import sys

import harness

tool = harness.Tool(sys.argv[1])

EXAMPLE = {"mesh": {"shape": [2, 2], "names": ["dp", "tp"]}, "shape": [9, 6], "dtype": "f32", "placements": ["S(0)", "S(1)"],
           "ranks": [{"rank": 2 * r + c, "coordinate": [r, c], "local_shape": [[5, 4][r], 3], "global_offset": [5 * r, 3 * c],
                      "intervals": [[[[0, 5], [5, 9]][r]], [[3 * c, 3 * c + 3]]]} for r in range(2) for c in range(2)]}


def info():
    found = tool.json("info")
    wrong = [field for field in ("version", "engines", "devices", "blas", "environment") if field not in found]
    engines = {row["name"]: row for row in found["engines"]}
    devices = {row["name"]: row for row in found["devices"]}
    wrong += harness.different("engines", sorted(engines), ["mpi", "nccl", "threads"])
    wrong += harness.different("devices", sorted(devices), ["cuda", "host"])
    for row in engines.values():
        wrong += harness.different(f"{row['name']} reason is null where available", row["reason"] is None, row["available"])
        wrong += harness.different("fields", sorted(row), ["available", "name", "reason", "version"])
    wrong += harness.different("threads", engines["threads"]["available"], True)
    wrong += harness.different("host devices", (devices["host"]["count"], devices["host"]["reason"]), (1, None))
    wrong += harness.different("kernels known", devices["host"]["kernels"] in ("portable", "avx2", "avx512"), True)
    wrong += harness.different("variables", {"TSR_LOG", "TSR_COST", "TSR_MPI"} - set(found["environment"]), set())
    return wrong + harness.different("BLAS said", bool(found["blas"]), True)


def info_environment():
    done = tool.run("info", "--json", env={"TSR_LOG": "error", "TSR_KERNELS": "portable"})
    return [part for part in ('"TSR_LOG": "error"', '"kernels": "portable"', '"TSR_KERNELS": "portable"') if part not in done.stdout]


def layout(mesh, shape, placements, dtype="f32"):
    arguments = ["layout", "--mesh", "x".join(map(str, mesh)), "--shape", "x".join(map(str, shape)) or "scalar", "--placements",
                 ",".join(placements), "--dtype", dtype]
    found = tool.json(*arguments)
    wrong = harness.different("mesh", found["mesh"], {"shape": list(mesh), "names": None})
    wrong += harness.different("shape", found["shape"], list(shape)) + harness.different("dtype", found["dtype"], dtype)
    wrong += harness.different("placements", found["placements"], list(placements))
    wrong += harness.different("ranks", len(found["ranks"]), math.prod(mesh))
    for rank, coordinate in enumerate(harness.coordinates(mesh)):
        dims = harness.owned(shape, mesh, placements, coordinate)
        row = found["ranks"][rank]
        wrong += harness.different("rank", row["rank"], rank) + harness.different("coordinate", row["coordinate"], list(coordinate))
        wrong += harness.different(f"rank {rank}'s shape", row["local_shape"], [len(d) for d in dims])
        wrong += harness.different(f"rank {rank}'s offset", row["global_offset"], [d[0] if d else size for d, size in zip(dims, shape)])
        wrong += harness.different(f"rank {rank}'s intervals", row["intervals"], [merged(d) for d in dims])
    return wrong


def merged(indices):
    """Returns ascending indices as half-open intervals."""
    intervals = []
    for i in indices:
        if intervals and intervals[-1][1] == i:
            intervals[-1][1] = i + 1
        else:
            intervals.append([i, i + 1])
    return intervals


def permuted():
    found = tool.json("layout", "--mesh", "2x2@[3,1,0,2]", "--shape", "8", "--placements", "S(0),R")
    return (harness.different("mesh", found["mesh"], {"shape": [2, 2], "names": None, "ranks": [3, 1, 0, 2]}) +
            harness.different("ranks", [row["rank"] for row in found["ranks"]], [3, 1, 0, 2]) +
            harness.different("coordinates", [row["coordinate"] for row in found["ranks"]], [[0, 0], [0, 1], [1, 0], [1, 1]]))


def moved():
    found = tool.json("layout", "--mesh", "x=3@8", "--shape", "8", "--placements", "S(0)")
    return harness.different("mesh", found["mesh"], {"shape": [3], "names": ["x"], "ranks": [8, 9, 10]})


def long_lists():
    arguments = ["--mesh", "2", "--shape", "40000", "--placements", "S(0;interleave=10000)"]
    shown = tool.run("layout", *arguments).stdout
    wrong = [part for part in ("[0,2)+[4,6)+[8,10)+[12,14) and 9996 more", "no picture: ") if part not in shown]
    wrong += harness.different("characters for people", len(shown) < 2000, True)
    found = tool.json("layout", *arguments)["ranks"][1]["intervals"]
    vast = tool.run("layout", "--mesh", "2", "--shape", "2000000000", "--placements", "S(0;interleave=1000000000)").stdout
    wrong += [part for part in ("[1,2)+[3,4)+[5,6)+[7,8) and 999999996 more",) if part not in vast]
    return wrong + harness.different("intervals", found, [[[4 * i + 2, 4 * i + 4] for i in range(10000)]])


def vast_lists():
    wrong = []
    for extra in ([], ["--json"]):
        done = tool.run("layout", "--mesh", "2", "--shape", "2000000000", "--placements", "S(0;interleave=333333333)", *extra,
                        env={"TSR_PLAN_ENTRIES": "10000"})
        wrong += harness.different("exit status", done.returncode, 1)
        wrong += [part for part in ("S(0;interleave=333333333) on mesh 2", "plan_entries", "allows 10000") if part not in done.stderr]
        wrong += harness.different("what was printed", done.stdout, "")
    return wrong


def canonical():
    found = tool.json("layout", "--mesh", "2x2x2", "--shape", "8x24", "--placements", "P(sum) , S(1;unit=2;balanced)[1] ,S(1)[0]")
    return harness.different("placements", found["placements"], ["P", "S(1;balanced;unit=2)[1]", "S(1)[0]"])


def lists_of_numbers():
    found = tool.json("layout", "--mesh", "2x3", "--shape", "7x6", "--placements", "S(0;sizes=3,4),S(1;blocks=4,2)")
    return harness.different("placements", found["placements"], ["S(0;sizes=3,4)", "S(1;blocks=4,2)"])


def big():
    found = tool.json("layout", "--mesh", "256x256", "--shape", "1000000007x3", "--placements", "S(0),S(0)")
    last = found["ranks"][-1]
    return harness.different("ranks", len(found["ranks"]), 65536) + harness.different("last", last["coordinate"], [255, 255])


def huge_sizes():
    found = tool.json("layout", "--mesh", "2", "--shape", "2305843009213693951", "--placements", "S(0)")
    return harness.different("intervals", found["ranks"][1]["intervals"], [[[1152921504606846976, 2305843009213693951]]])


def picture(arguments, wanted):
    text = tool.run("layout", *arguments).stdout
    drawn = [line.rstrip() for line in text.split("\n\n", 2)[2].rstrip("\n").split("\n")]
    return harness.different("picture", drawn, wanted)


tool.case("info lists every engine, device and variable", info)
tool.case("info shows the environment that it runs in", info_environment)
tool.refuses(1, ["layout", "--mesh", "2", "--shape", "9223372036854775807x0", "--placements", "S(0)"], ["tessera: shape 9223372036854775807x0 of f32"])
tool.refuses(1, ["info"], ["TSR_LOG"], env={"TSR_LOG": "loud"})
tool.case("the example of the format", lambda: harness.different(
    "answer", tool.json("layout", "--mesh", "dp=2,tp=2", "--shape", "9x6", "--placements", "S(0),S(1)"), EXAMPLE))
KINDS = ["R", "P", "S(0)", "S(1)", "S(0;balanced)", "S(1;interleave=2)"]
LAYOUTS = [(mesh, placements, shape) for mesh in ((4,), (2, 2), (3, 2), (1, 5)) for placements in itertools.product(KINDS, repeat=len(mesh))
           for shape in ((9, 6), (1, 0), (5, 13))]
for mesh, placements, shape in harness.thinned(LAYOUTS, 7):
    tool.case(f"{mesh} {shape} {','.join(placements)}", layout, mesh, shape, placements)
tool.case("a scalar has no intervals", layout, (2, 2), (), ("R", "P"))
tool.case("eight dims", layout, (2,), (1, 2, 1, 3, 1, 2, 1, 2), ("S(1)",), "c128")
tool.case("ranks in another order are listed", permuted)
tool.case("ranks that begin elsewhere are listed", moved)
tool.case("placements are printed as the library prints them", canonical)
tool.case("commas within a placement do not part placements", lists_of_numbers)
tool.case("a mesh of 65,536 ranks", big)
tool.case("sizes near the end of int64", huge_sizes)
tool.case("a picture of blocks", picture, ["--mesh", "2x2", "--shape", "9x6", "--placements", "S(0),S(1)"],
          ["    0   3   6", "    +---+---+", "  0 | 0 | 1 |", "    +---+---+", "  5 | 2 | 3 |", "    +---+---+", "  9"])
tool.case("a picture of replicas and terms", picture, ["--mesh", "2x2", "--shape", "4", "--placements", "P,R"],
          ["  0         4", "  +---------+", "  | 0+2 1+3 |", "  +---------+"])
tool.case("a picture of a scalar", picture, ["--mesh", "2", "--shape", "scalar", "--placements", "R"], ["  +-----+", "  | 0 1 |", "  +-----+"])
tool.case("long lists of intervals are cut for people", long_lists)
tool.case("what cannot be listed is refused before anything is printed", vast_lists)
tool.case("no picture of an empty tensor", picture, ["--mesh", "2", "--shape", "0x4", "--placements", "S(0)"],
          ["no picture: the tensor is empty"])
tool.case("no picture of three dims", lambda: [] if re.search("^no picture:", tool.run(
    "layout", "--mesh", "2", "--shape", "2x2x2", "--placements", "R").stdout, re.M) else ["there is one"])
tool.report.finish()
