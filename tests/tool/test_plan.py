#!/usr/bin/env python3
"""`tessera plan`: every figure and box, compared with index lists; its files; its errors."""
import itertools
import math
import pathlib
import random
import resource
import sys

import harness
import moves

tool = harness.Tool(sys.argv[1])
SIZES = {"f32": 4, "i8": 1, "c64": 8}
FIELDS = ["shape", "dtype", "mode", "objective", "from", "to", "steps", "bytes_received", "bytes_sent", "bytes_kept", "lower_bound", "ratio",
          "messages_received", "workspace_bytes", "seconds", "gather_and_slice"]


def elements(box):
    return set(itertools.product(*(range(*ends) for ends in box)))


def volume(box):
    return math.prod(end - begin for begin, end in box)


def could_merge(a, b):
    """Whether two boxes could be one: they differ along one dim, where they touch."""
    along = [d for d in range(len(a)) if a[d] != b[d]]
    return len(along) == 1 and (a[along[0]][1] == b[along[0]][0] or b[along[0]][1] == a[along[0]][0])


def check_boxes(what, move, plan, direction, peer):
    """Sorted, of that many bytes, and as large as they can be."""
    rows = plan[direction]
    keys = [(row["step"], row[peer], row["box"]) for row in rows]
    wrong = harness.different(f"{what} in order", keys, sorted(keys))
    wrong += [f"{what}: {row}" for row in rows if row["bytes"] != move.size * volume(row["box"]) or row["bytes"] == 0]
    total = plan["bytes_" + ("received" if direction == "receives" else "sent")]
    wrong += harness.different(f"{what}, bytes", {sum(row["bytes"] for row in rows)}, {total["max"], total["total"]})
    # Where values are reduced, what one rank gives another comes of several reductions, and in two phases.
    for a, b in itertools.combinations([] if move.reduced else rows, 2):
        if (a["step"], a[peer]) == (b["step"], b[peer]) and could_merge(a["box"], b["box"]):
            wrong.append(f"{what}: {a} and {b} are one")
    return wrong


def check_receives(move, rank, rows):
    """Without Partial, each missing element is received once, from a rank that holds it."""
    wrong, seen = [], []
    for row in rows:
        seen += elements(row["box"])
        if not elements(row["box"]) <= move.source.held(row["from"]):
            wrong.append(f"rank {rank} receives {row}, which that rank does not hold")
    wrong += harness.different(f"rank {rank}, elements", len(seen), len(set(seen)))
    return wrong + harness.different(f"rank {rank} receives what it lacks", set(seen), move.lacks(rank))


def transfers(plans, direction, peer):
    """Returns all ranks' boxes as (step, from, to, box)."""
    flows = []
    for rank, plan in plans.items():
        for row in plan[direction]:
            ends = (row[peer], rank) if direction == "receives" else (rank, row[peer])
            flows.append((row["step"], *ends, row["box"]))
    return sorted(flows)


def check_ranks(move, plans):
    wrong = []
    for rank, plan in plans.items():
        wrong += harness.different("fields", list(plan), FIELDS + ["rank", "receives", "sends"]) + harness.different("rank", plan["rank"], rank)
        wrong += check_boxes(f"what rank {rank} receives", move, plan, "receives", "from")
        wrong += check_boxes(f"what rank {rank} sends", move, plan, "sends", "to")
        if move.without_partial:
            least = move.size * len(move.lacks(rank))
            wrong += check_receives(move, rank, plan["receives"])
            wrong += harness.different(f"rank {rank}, bound", (plan["lower_bound"], plan["ratio"]), ({"max": least, "total": least}, 1.0))
        elif not move.is_shortcut():
            wrong += harness.different(f"rank {rank}, bound", (plan["lower_bound"], plan["ratio"]), (None, None))
        peers = {(row["step"], row["from"]) for row in plan["receives"]}
        wrong += harness.different(f"rank {rank}, messages", plan["messages_received"]["max"], len(peers))
    received = transfers(plans, "receives", "from")
    return wrong + harness.different("what is sent is what is received", transfers(plans, "sends", "to"), received)


def check_steps(move, whole, plans):
    """Returns the sums of all ranks' plans for each step."""
    wrong = []
    for index, step in enumerate(whole["steps"]):
        sums = [plan["steps"][index]["bytes_received"]["total"] for plan in plans.values()]
        pairs = [(a, b) for s, a, b, _ in transfers(plans, "receives", "from") if s == index]
        wrong += harness.different(f"step {index}", step["bytes_received"], {"max": max(sums), "total": sum(sums)})
        wrong += harness.different(f"step {index}, mesh dims", step["mesh_dims"], move.differing_dims(pairs))
        wrong += harness.different(f"step {index}, text", bool(step["text"]), True)
        wrong += harness.different(f"step {index}, op", {plan["steps"][index]["op"] for plan in plans.values()}, {step["op"]})
    return wrong


def check_whole(move, whole, plans):
    wrong = harness.different("fields", [f for f in whole if f != "busiest_rank"], FIELDS)
    for field in ("bytes_received", "bytes_sent", "bytes_kept"):
        sums = [plan[field]["total"] for plan in plans.values()]
        wrong += harness.different(field, whole[field], {"max": max(sums), "total": sum(sums)})
    received = {rank: plan["bytes_received"]["total"] for rank, plan in plans.items()}
    busiest = min(received, key=lambda rank: (-received[rank], rank)) if any(received.values()) else -1
    wrong += harness.different("busiest rank", whole["busiest_rank"], busiest if busiest >= 0 else None)
    least = move.least_total()
    wrong += harness.different("least, all ranks", whole["lower_bound"]["total"], least)
    if move.without_partial:
        wrong += harness.different("least, one rank", whole["lower_bound"]["max"], move.size * max(len(move.lacks(r)) for r in move.ranks))
    elif not move.is_shortcut():
        wrong += harness.different("least, one rank", whole["lower_bound"]["max"], None)
    wrong += harness.different("it is reached", (whole["bytes_received"]["total"], whole["ratio"]), (least, 1.0))
    wrong += harness.different("messages", whole["messages_received"]["max"], max(p["messages_received"]["max"] for p in plans.values()))
    wrong += harness.different("workspace", whole["workspace_bytes"], max(p["workspace_bytes"] for p in plans.values()))
    gathered = [move.gathered(rank) for rank in move.target.ranks]
    return wrong + harness.different("gather and slice", whole["gather_and_slice"], {"max": max(gathered), "total": sum(gathered)})


def plan(source, target, dtype="f32", options=()):
    """One case: all figures of all ranks, of each rank, and every box."""
    move = moves.Move(source, target, SIZES[dtype])
    arguments = ["plan", *move.arguments(), "--dtype", dtype, *options]
    whole = tool.json(*arguments)
    plans = {rank: tool.json(*arguments, "--rank", rank) for rank in move.ranks}
    return check_whole(move, whole, plans) + check_steps(move, whole, plans) + check_ranks(move, plans)


def case(source, target, **options):
    name = f"{source.mesh_text()} {source.shape} {','.join(source.placements)} -> {target.mesh_text()} {','.join(target.placements)}"
    tool.case(f"{name} {' '.join(map(str, options.values()))}", plan, source, target, **options)


def steps(arguments, wanted):
    found = tool.json("plan", *arguments)
    return harness.different("steps", [step["op"] for step in found["steps"]], wanted)


STEPS = [("4", "S(0)", "S(1)", ["exchange"]), ("4", "S(0)", "R", ["all_gather"]), ("4", "P", "R", ["all_reduce"]), ("4", "R", "S(0)", ["copy"]),
         ("4", "P", "S(0)", ["reduce_scatter"]), ("4", "R", "P", ["copy", "fill"]), ("2x2", "S(0),S(1)", "S(1),S(0)", ["exchange"]),
         ("2x2", "P,R", "S(0),R", ["reduce_scatter"])]
BOUNDS = [("8", "64x64", "S(0)", "S(1)", 448), ("4x2", "64x64", "S(0),S(1)", "S(1),S(0)", 512),
          ("4x2", "64x64", "S(0)[0],S(0)[1]", "S(0)[1],S(0)[0]", 512), ("4x2", "16x16x16", "S(2),S(0)", "S(1)[0],S(1)[1]", 448),
          ("4x2", "64x64", "S(0),R", "R,S(0)", 2048), ("4x2", "64x64", "S(0),R", "R,S(1)", 1536), ("8", "64x64", "S(0)", "R", 3584),
          ("4x2", "64x64", "S(0)[0],S(0)[1]", "S(0),S(1)", 256)]


def most(mesh, shape, source, target, wanted):
    found = tool.json("plan", "--mesh", mesh, "--shape", shape, "--from", source, "--to", target)
    return (harness.different("elements received at most", found["bytes_received"]["max"], 4 * wanted) +
            harness.different("the bound", (found["lower_bound"]["max"], found["ratio"]), (4 * wanted, 1.0)))


def question():
    found = tool.json("plan", "--mesh", "a=2,b=2", "--to-mesh", "3@[7,5,6]", "--shape", "4x6", "--dtype", "bf16", "--from", "S(0),P(sum)", "--to",
                      "S(1;unit=1;balanced)", "--mode", "message", "--objective", "time")
    wanted = {"shape": [4, 6], "dtype": "bf16", "mode": "message", "objective": "time",
              "from": {"mesh": {"shape": [2, 2], "names": ["a", "b"]}, "placements": ["S(0)", "P"]},
              "to": {"mesh": {"shape": [3], "names": None, "ranks": [7, 5, 6]}, "placements": ["S(1;balanced)"]}}
    return harness.different("question", {field: found[field] for field in wanted}, wanted)


def exact_ratio():
    """24 bytes for 13: no decimal digits of it are all."""
    found = tool.json("plan", "--mesh", "3x4", "--shape", "8", "--dtype", "i64", "--from", "P(max),R", "--to", "R,R", "--objective", "time")
    wanted = found["bytes_received"]["total"] / found["lower_bound"]["total"]
    return harness.different("more than the least", wanted > 1, True) + harness.different("within 1e-14", abs(found["ratio"] - wanted) < 1e-14, True)


MANY = ["--mesh", "128x64x128", "--shape", "1048576x1048576", "--from", "S(0),S(1),R", "--to", "S(1),S(0),R"]


def of_a_million():
    """One rank's plan in two seconds of processor time and 1 GiB, which a million plans do not take."""
    limit = lambda: (resource.setrlimit(resource.RLIMIT_CPU, (2, 2)), None if sanitized() else resource.setrlimit(resource.RLIMIT_AS, (2 ** 30, 2 ** 30)))
    done = tool.run("plan", *MANY, "--rank", 77, "--json", preexec_fn=limit)
    if done.returncode != 0:
        return [f"exit status {done.returncode}: {done.stderr}"]
    found = harness.json.loads(done.stdout)
    box, bytes_ = [[8192, 16384], [0, 8192]], 4 * 8192 ** 2
    return harness.different("receives", found["receives"], [{"step": 0, "from": 64 * 128 + 77, "box": box, "bytes": bytes_}])


def of_many_peers():
    """A rank that has thousands lists them all."""
    found = tool.json("plan", "--mesh", "4096", "--shape", "8192x3", "--from", "S(0)", "--to", "R", "--rank", "1000")
    others = [rank for rank in range(4096) if rank != 1000]
    return (harness.different("receives", [(r["from"], r["box"]) for r in found["receives"]], [(r, [[2 * r, 2 * r + 2], [0, 3]]) for r in others]) +
            harness.different("sends", [(r["to"], r["box"]) for r in found["sends"]], [(r, [[2000, 2002], [0, 3]]) for r in others]))


def sanitized():
    return b"__asan_init" in pathlib.Path(tool.path).read_bytes() or b"__tsan_init" in pathlib.Path(tool.path).read_bytes()


def seconds(options, wanted):
    profile = tool.folder / "links.cost"
    profile.write_text("inside=1,100 between=10,10")
    found = tool.json("plan", "--mesh", "4", "--shape", "8x8", "--dtype", "i8", "--from", "S(0)", "--to", "S(1)", "--profile", profile, *options)
    return harness.different("seconds", round(found["seconds"], 6), wanted)


def seconds_from_environment():
    done = tool.run("plan", "--mesh", "4", "--shape", "8x8", "--dtype", "i8", "--from", "S(0)", "--to", "S(1)", "--json",
                    env={"TSR_COST": "inside=1,100 between=1,1"})
    return harness.different("seconds", harness.json.loads(done.stdout)["seconds"], 1.12)


def capped():
    """Moves by messages go in rounds, so that no rank needs more workspace than it may."""
    arguments = ["plan", "--mesh", "4", "--shape", "512x512", "--from", "S(0)", "--to", "S(1)", "--mode", "message"]
    free, tight = tool.json(*arguments), tool.json(*arguments, "--max-workspace", 65536)
    return (harness.different("without a cap it takes more", free["workspace_bytes"] > 65536, True) +
            harness.different("within the cap", 0 < tight["workspace_bytes"] <= 65536, True) +
            harness.different("bytes", tight["bytes_received"], free["bytes_received"]))


def relabelled():
    arguments = ["plan", "--mesh", "4", "--to-mesh", "4@[2,3,0,1]", "--shape", "8x3", "--from", "S(0)", "--to", "S(0)"]
    before, after = tool.json(*arguments), tool.json(*arguments, "--relabel")
    wanted = {"method": "exact", "bytes_kept": {"given": 0, "chosen": 96, "greedy": 96}, "moved_ranks": 4, "ranks": [0, 1, 2, 3]}
    return (harness.different("before", before["bytes_received"]["total"], 96) + harness.different("after", after["bytes_received"]["total"], 0) +
            harness.different("relabel", after["relabel"], wanted) + harness.different("the mesh planned to", after["to"]["mesh"]["shape"], [4]))


def relabelled_in_words():
    done = tool.run("plan", "--mesh", "4", "--to-mesh", "4@[2,3,0,1]", "--shape", "8x3", "--from", "S(0)", "--to", "S(0)", "--relabel")
    return [] if "relabelled (exact): 96 bytes stay in place, 0 bytes in the order given" in done.stdout else [done.stdout]


def saved():
    """Saved bytes are no rank's, and the same each time."""
    paths = [tool.folder / name for name in ("all.plan", "third.plan", "other.plan")]
    arguments = ["plan", "--mesh", "4", "--shape", "8x3", "--from", "S(0)"]
    tool.json(*arguments, "--to", "S(1)", "--save", paths[0])
    tool.json(*arguments, "--to", "S(1)", "--save", paths[1], "--rank", 3)
    tool.json(*arguments, "--to", "R", "--save", paths[2])
    contents = [path.read_bytes() for path in paths]
    return (harness.different("for all and for one rank", contents[0] == contents[1], True) +
            harness.different("of another move", contents[0] != contents[2], True) + harness.different("bytes", len(contents[0]) > 16, True))


PLAIN = ["plan", "--mesh", "2", "--shape", "4x6", "--from", "S(0)", "--to", "S(1)"]


def failed_write(option):
    """A file that cannot be written completely stays unchanged, and no other file is left."""
    path = tool.folder / f"kept{option}"
    path.write_text("old")
    done = tool.run(*PLAIN, option, path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
    wrong = harness.different("exit status", done.returncode, 1) + harness.different("standard output", done.stdout, "")
    wrong += harness.different("sentence", done.stderr.startswith(f"tessera: {option} {path} cannot be written: "), True)
    wrong += harness.different("file", path.read_text(), "old")
    wrong += harness.different("left", sorted(p.name for p in tool.folder.glob("kept*")), [path.name])
    path.unlink()
    return wrong


PAGE = """\
4x6 f32 on mesh tp=2, from S(0) to S(1)
direct, fewest bytes

steps
  1. exchange along mesh dim tp: each rank takes just the boxes that it lacks
     a rank receives at most 24 bytes, all together 48 bytes

2 ranks               at most by one                all together
  received            24 bytes                      48 bytes; rank 0 is the busiest
  sent                24 bytes                      48 bytes
  kept in place       24 bytes                      48 bytes
  least to receive    24 bytes                      48 bytes; ratio 1.00, the least possible
  gather and slice    48 bytes                      96 bytes; 2.00 times as much
  messages            at most 1 received, at most 1 sent
  workspace           none
  time                0.501 us by the model of the links
"""


def unequal_nodes():
    """A byte a second between nodes, while nothing else counts: what the node lacks that lacks most, of rows of 8 bytes."""
    profile = tool.folder / "nodes.cost"
    profile.write_text("inside=0,1e15 between=0,1")
    move = ["--mesh", "15", "--shape", "15x2", "--from", "S(0)", "--to", "R", "--profile", profile]
    wrong = []
    for nodes, rows in (("7,8", 8), ("1,14", 14), ("[0,1,0,1,0,1,0,1,0,1,0,1,0,1,0]", 8), ("5,5,5", 10)):
        wrong += harness.different(f"seconds over nodes {nodes}", tool.json("plan", *move, "--nodes", nodes)["seconds"], 8.0 * rows)
    return wrong


def page():
    done = tool.run("plan", "--mesh", "tp=2", "--shape", "4x6", "--from", "S(0)", "--to", "S(1)")
    return harness.different("page", done.stdout, PAGE)


def page_of_one():
    done = tool.run("plan", "--mesh", "2", "--shape", "4x6", "--from", "P", "--to", "S(1)", "--rank", "1")
    parts = ["rank 1\n", "least to receive    -; a rank alone has none where terms are reduced or made\n", "messages            1 received, 1 sent\n"]
    return [f"{part!r} is not in {done.stdout}" for part in parts if part not in done.stdout]


def plain(**changes):
    options = {"--mesh": "2", "--shape": "4x6", "--from": "S(0)", "--to": "S(1)", **{"--" + k.replace("_", "-"): v for k, v in changes.items()}}
    return ["plan", *(word for pair in options.items() if pair[1] is not None for word in pair)]


USAGE = [(plain(mesh=None), ["--mesh"]), (plain(to=None), ["--to"]), (plain(to_mesh="2x"), ["--to-mesh", "2x"]), (plain(mesh="2x"), ["--mesh", "2x"]), (plain(rank="-1"), ["--rank", "-1"]),
         (plain(rank="two"), ["two"]), (plain(rank=""), ["--rank"]), (plain(objective="speed"), ["speed", "bytes", "time"]),
         (plain(max_workspace="1k"), ["1k"]), (plain(ranks_per_node="x"), ["--ranks-per-node"]), (plain(nodes="1,"), ["--nodes '1,'", "character 3"]),
         (plain(nodes="[0,1"), ["--nodes", "character 5"]), (plain(nodes="1,1]"), ["--nodes", "character 4"]), (plain(nodes=""), ["--nodes", "7,8"]),
         (plain(nodes="1,1", ranks_per_node="1"), ["--nodes", "--ranks-per-node", "one of them"]), (plain(mode="fast"), ["fast"]),
         (plain() + ["--relabel=yes"], ["--relabel"]), (plain(save=None) + ["--svg"], ["--svg"]), (plain(iterations="2"), ["--iterations"])]
REFUSED = [(plain(rank="2"), ["--rank 2", "mesh 2 (ranks 0 to 1)"]), (plain(rank="5", to_mesh="2@[7,3]"), ["mesh 2 (ranks 0 to 1), nor in mesh 2@[7,3]"]), (plain(rank="9223372036854775807"), ["9223372036854775807"]), (plain(to_mesh="0"), ["--to-mesh", "1 to 2147483647"]),
           (plain(to_mesh="2x2"), ["--to"]), (plain(to="S(2)"), ["--to", "2"]), (plain(max_workspace="0"), ["--max-workspace"]),
           (plain(ranks_per_node="0"), ["--ranks-per-node"]), (plain(nodes="2,0"), ["--nodes: node 1 has 0 ranks"]), (plain(nodes="1"), ["tessera: --nodes are listed for ranks 0 to 0", "rank 1"]),
           (plain(nodes="16777217"), ["16777216"]), (plain(nodes="1,9223372036854775807"), ["16777216"]), (plain(profile="/nowhere/x"), ["/nowhere/x"]), (plain(save="/nowhere/x"), ["/nowhere/x"]),
           (plain(svg="/nowhere/x"), ["/nowhere/x"]), (plain(svg=""), ["--svg"]), (plain(save="/dev/null"), ["regular"]),
           (plain(save="same", svg="same"), ["same"]), (plain(shape="4611686018427387904", dtype="c128"), []),
           (plain(shape="2305843009213693951", dtype="i8", mesh="64", to="R"), ["2^"])]


def bench(arguments, count=1):
    done = tool.run("bench", "plan", *arguments, "--json")
    lines = [harness.json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("exit status", (done.returncode, done.stderr), (0, "")) + harness.different("lines", len(lines), count)
    for line in lines:
        spread = line["seconds"]
        wrong += harness.different("bench", line["bench"], "plan") + harness.different("allocated", line["bytes_allocated"] > 0, True)
        wrong += harness.different("in order", 0 < spread["min"] <= spread["median"] <= spread["max"], True)
        wrong += harness.different("messages", line["messages"], line["messages_received"] + line["messages_sent"])
    return lines, wrong


def bench_one():
    move = ["--mesh", "4x2", "--shape", "64x64", "--from", "S(0),S(1)", "--to", "S(1),S(0)"]
    (line,), wrong = bench([*move, "--rank", "1", "--iterations", "3"])
    told = tool.json("plan", *move, "--rank", "1")
    fixed = {"ranks": 8, "mesh": "4x2", "shape": [64, 64], "dtype": "f32", "from": "S(0),S(1)", "to": "S(1),S(0)", "rank": 1,
             "messages_received": told["messages_received"]["max"], "messages_sent": len({row["to"] for row in told["sends"]})}
    return wrong + [f"{k}: {line.get(k)!r} instead of {v!r}" for k, v in fixed.items() if line.get(k) != v]


def bench_of_a_million():
    """The plan of a rank that has few peers takes no memory that grows with the ranks."""
    lines, wrong = bench(["--mesh", "128x64x128", "--shape", "1024x1024x1024x1024", "--from", "S(0),S(1),S(2)", "--to", "S(1),S(0),S(2)",
                          "--sweep", "--iterations", "1"], 17)
    wrong += harness.different("ranks", [line["ranks"] for line in lines], [2 ** n for n in range(4, 21)])
    wrong += harness.different("ranks are those of the mesh", [math.prod(map(int, line["mesh"].split("x"))) for line in lines], [line["ranks"] for line in lines])
    wrong += harness.different("the middle", [line["rank"] for line in lines], [2 ** n for n in range(3, 20)])
    return wrong + [f"{line['bytes_allocated']} bytes: {line}" for line in lines if line["bytes_allocated"] > 2 ** 20]


def bench_table():
    done = tool.run("bench", "plan", "--mesh", "64", "--shape", "64x64", "--from", "S(0)", "--to", "S(1)", "--sweep", "--iterations", "1")
    lines = done.stdout.splitlines()
    return (harness.different("columns", lines[1].split(), ["#", "ranks", "mesh", "shape", "type", "rank", "time", "min", "max", "allocated", "messages"]) +
            harness.different("ranks", [line.split()[0] for line in lines[2:]], ["#", "16", "32", "64"]))


KINDS = ["R", "P", "S(0)", "S(1)", "S(0;balanced)", "S(1;interleave=2)"]
for source, target in harness.thinned(itertools.product(KINDS, repeat=2), 5):
    case(moves.Layout((4,), (source,), (9, 6)), moves.Layout((4,), (target,), (9, 6)))
draw = random.Random(20261121)
for mesh in ((2, 2), (3, 2)):
    for _ in harness.thinned(range(20), 4):
        placements = [tuple(draw.choices(KINDS, k=2)) for _ in range(2)]
        shape = draw.choice([(5, 7), (6, 4), (1, 9), (3, 0)])
        case(moves.Layout(mesh, placements[0], shape), moves.Layout(mesh, placements[1], shape), dtype=draw.choice(list(SIZES)),
             options=["--mode", draw.choice(["direct", "message"])])
for source, target in ((((6,), range(6)), ((8,), range(8))), (((8,), range(8)), ((7,), range(7))), (((4,), range(4)), ((3,), range(8, 11))),
                       (((2, 2), range(4)), ((4,), [2, 0, 5, 3]))):
    for _ in harness.thinned(range(4), 4):
        shape = draw.choice([(16, 3), (5, 7)])
        layouts = [moves.Layout(mesh, draw.choices(["R", "S(0)", "S(1;balanced)", "S(0)"], k=len(mesh)), shape, ranks) for mesh, ranks in (source, target)]
        case(*layouts)
case(moves.Layout((2, 2), ("P", "R"), ()), moves.Layout((2, 2), ("R", "R"), ()))
for mesh, source, target, wanted in STEPS:
    tool.case(f"{mesh}: the steps of {source} -> {target}", steps, ["--mesh", mesh, "--shape", "64x64", "--from", source, "--to", target], wanted)
tool.case("one rank's tensor is broadcast", steps, ["--mesh", "1", "--to-mesh", "4", "--shape", "64", "--from", "R", "--to", "R"], ["broadcast"])
for row in BOUNDS:
    tool.case(f"{row[0]} {row[1]}: {row[2]} -> {row[3]} receives at most {row[4]} elements", most, *row)
tool.case("the question is told as the library prints it", question)
tool.case("a ratio is read as it was divided", exact_ratio)
tool.case("one rank of a million plans alone", of_a_million)
tool.case("one rank of thousands that it talks to", of_many_peers)
tool.case("seconds by a profile's file", seconds, [], 1.12)
tool.case("seconds where nodes are told apart", seconds, ["--ranks-per-node", 2], 11.6)
tool.case("a list of nodes of one size is that size", seconds, ["--nodes", "2,2"], 11.6)
tool.case("the nodes of ranks may have any numbers", seconds, ["--nodes", "[7, 7 ,3,3]"], 11.6)
tool.case("bytes between unequal nodes cross once", unequal_nodes)
tool.case("seconds by the environment's profile", seconds_from_environment)
tool.case("a cap on workspace is kept", capped)
tool.case("a mesh whose ranks stand elsewhere is relabelled", relabelled)
tool.case("relabelling is told in words", relabelled_in_words)
tool.case("a saved plan is no rank's", saved)
for option in ("--save", "--svg"):
    tool.case(f"{option} leaves the file as it was where it cannot be written", failed_write, option)
tool.case("the page for people", page)
tool.case("the page of one rank", page_of_one)
for arguments, mentions in USAGE:
    tool.refuses(2, arguments, mentions)
for arguments, mentions in REFUSED:
    tool.refuses(1, arguments, mentions)
for text, says in (("2x", "found the end"), ("99999999999", "found a number beyond 2147483647")):
    tool.refuses(2 if text == "2x" else 1, plain(mesh=text), [f'tessera: --mesh: mesh "{text}", character ', says])
tool.refuses(1, plain(), ["tessera: TSR_COST: cost profile"], env={"TSR_COST": "foo"})
tool.refuses(2, ["bench", *plain(), "--rank", "1", "--sweep"], ["--sweep"])
tool.refuses(1, ["bench", *plain(rank="5")], ["--rank 5"])
tool.case("bench plan says what it measured", bench_one)
tool.case("bench plan sweeps from 16 ranks to a million", bench_of_a_million)
tool.case("bench plan has a table", bench_table)
tool.report.finish()
