#!/usr/bin/env python3
"""`tessera redistribute` on real files: values, shapes and dtypes of every shard; failures leave no
files."""
import itertools
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys

import harness

tool = harness.Tool(sys.argv[1])
numbers = itertools.count()


def fresh(name="out"):
    return tool.folder / f"{name}-{next(numbers)}"


def mesh_text(mesh):
    return "x".join(map(str, mesh))


def move(mesh, source, target, *more):
    return ["redistribute", "--mesh", mesh_text(mesh), "--from", ",".join(source), "--to", ",".join(target), *more]


def check_shards(folder, descr, mesh, shape, elements, placements, ranks=None):
    """Returns every rank's file for a layout without Partial."""
    wrong = []
    for rank, coordinate in enumerate(harness.coordinates(mesh)):
        rank = ranks[rank] if ranks else rank
        dims = harness.owned(shape, mesh, placements, coordinate)
        wanted = (descr, tuple(map(len, dims)), harness.select(shape, elements, dims))
        wrong += harness.different(f"rank {rank}", harness.read_npy(folder / f"rank-{rank}.npy"), wanted)
    return wrong + harness.different("files", sorted(path.name for path in folder.iterdir()),
                                     sorted(f"rank-{ranks[r] if ranks else r}.npy" for r in range(math.prod(mesh))))


def check_sum(folder, mesh, shape, elements, placements):
    """Under Partial(sum): the ranks' terms add up to the tensor."""
    sums = {}
    for rank, coordinate in enumerate(harness.coordinates(mesh)):
        dims = harness.owned(shape, mesh, placements, coordinate)
        found = harness.read_npy(folder / f"rank-{rank}.npy")[2]
        kept = tuple(c for c, p in zip(coordinate, placements) if not p.startswith("P"))
        for index, value in zip(itertools.product(*dims), found):
            sums[kept, index] = sums.get((kept, index), 0) + value
    wanted = {}
    for coordinate in harness.coordinates(mesh):
        dims = harness.owned(shape, mesh, placements, coordinate)
        kept = tuple(c for c, p in zip(coordinate, placements) if not p.startswith("P"))
        wanted.update({(kept, index): value for index, value in zip(itertools.product(*dims), harness.select(shape, elements, dims))})
    return harness.different("sums", sums, wanted)


def check_target(folder, descr, mesh, shape, elements, placements):
    if any(p.startswith("P") for p in placements):
        return check_sum(folder, mesh, shape, elements, placements)
    return check_shards(folder, descr, mesh, shape, elements, placements)


def round_trip(mesh, shape, source, target, mode):
    """The global tensor to shards under `source`; those to `target`."""
    elements = [random.randrange(-1000, 1000) for _ in range(math.prod(shape))]
    file, between, after = fresh("x.npy"), fresh(), fresh()
    harness.write_npy(file, "<i4", shape, elements)
    first = tool.json(*move(mesh, source, source, "--input", file, "--output", between, "--mode", mode))
    wrong = harness.different("ranks", first["ranks"], math.prod(mesh)) + harness.different("bytes", first["bytes_received"], {"max": 0, "total": 0})
    wrong += check_target(between, "<i4", mesh, shape, elements, source)
    answer = tool.json(*move(mesh, source, target, "--input-shards", between, "--output", after, "--mode", mode))
    wrong += check_target(after, "<i4", mesh, shape, elements, target)
    wrong += harness.different("files", answer["files"], [f"rank-{r}.npy" for r in range(math.prod(mesh))])
    wrong += harness.different("seconds", answer["seconds"] > 0, True)
    shutil.rmtree(between)
    shutil.rmtree(after)
    file.unlink()
    return wrong


def every_dtype(name, descr):
    values = [0, 1, 0, 1, 1, 1, 0] if descr == "|b1" else [3, 0, 1, 7, 100, 2, 5]
    file, out = fresh("x.npy"), fresh()
    harness.write_npy(file, descr, (7,), values)
    tool.json(*move((2,), ["R"], ["S(0;balanced)"], "--input", file, "--output", out, "--dtype", name))
    return check_shards(out, descr, (2,), (7,), values, ["S(0;balanced)"])


def input_form(descr, out_descr, **options):
    """Big-endian, Fortran order, other versions, elements that begin anywhere: the same tensor."""
    shape, elements = (3, 5), list(range(15))
    file, out = fresh("x.npy"), fresh()
    stored = elements if not options.get("fortran") else [elements[r * 5 + c] for c in range(5) for r in range(3)]
    harness.write_npy(file, descr, shape, stored, **options)
    tool.json(*move((2,), ["S(1)"], ["S(0)"], "--input", file, "--output", out))
    return check_shards(out, out_descr, (2,), shape, elements, ["S(0)"])


def terms_add_up():
    """A Partial source as files: the terms are taken as they are."""
    shards, out = fresh("shards"), fresh()
    shards.mkdir()
    for rank in range(3):
        harness.write_npy(shards / f"rank-{rank}.npy", "<f8", (4,), [rank + i / 4 for i in range(4)])
    answer = tool.json(*move((3,), ["P"], ["R"], "--input-shards", shards, "--output", out))
    return check_shards(out, "<f8", (3,), (4,), [3 + 3 * i / 4 for i in range(4)], ["R"]) + harness.different(
        "bytes", answer["bytes_received"]["total"], 4 * 8 * 4)


def between_meshes(mesh, source, target_mesh, ranks, target, mode):
    """The global tensor as shards of one mesh, and from there on other ranks: as shards, and as one file."""
    shape = (7, 6)
    elements = [random.randrange(-1000, 1000) for _ in range(math.prod(shape))]
    file, between, after, whole = fresh("x.npy"), fresh(), fresh(), fresh("y") / "y.npy"
    whole.parent.mkdir()
    harness.write_npy(file, "<i4", shape, elements)
    tool.json(*move(mesh, source, source, "--input", file, "--output", between))
    to_mesh = mesh_text(target_mesh) + (f"@{list(ranks)}".replace(" ", "") if ranks else "")
    given = ["--to-mesh", to_mesh, "--mode", mode, "--shape", "7x6"]
    answer = tool.json(*move(mesh, source, target, "--input-shards", between, "--output", after, *given))
    used = list(ranks) if ranks else list(range(math.prod(target_mesh)))
    wrong = harness.different("ranks", answer["ranks"], len(used))
    wrong += harness.different("files", answer["files"], [f"rank-{rank}.npy" for rank in sorted(used)])
    if not any(p.startswith("P") for p in target):
        wrong += check_shards(after, "<i4", target_mesh, shape, elements, target, used)
    answer = tool.json(*move(mesh, source, target, "--input-shards", between, "--output", whole, *given))
    wrong += harness.different("files", (answer["ranks"], answer["files"]), (len(used), ["y.npy"]))
    wrong += harness.different("the whole tensor", harness.read_npy(whole), ("<i4", shape, elements))
    return wrong + harness.different("beside it", [path.name for path in whole.parent.iterdir()], ["y.npy"])


def one_file(descr, name, shape, *more):
    """A file is replaced by the whole tensor, and people are told."""
    elements = [value % 100 for value in range(math.prod(shape))]
    file, whole = fresh("x.npy"), tool.folder / "whole.npy"
    harness.write_npy(file, descr, shape, elements)
    whole.write_text("old")
    done = tool.run(*move((2, 2), ["R", "P"], ["P", "R"], "--input", file, "--output", whole, "--dtype", name, *more))
    wrong = harness.different("status", (done.returncode, done.stderr), (0, ""))
    wrong += harness.different("what is said", done.stdout.startswith(f"the whole tensor in {whole}; "), True)
    return wrong + harness.different("the tensor", harness.read_npy(whole), (descr, shape, elements))


def all_to_all_bytes():
    file, out = fresh("x.npy"), fresh()
    harness.write_npy(file, "<f4", (8, 8), list(range(64)))
    answer = tool.json(*move((4,), ["S(0)"], ["S(1)"], "--input", file, "--output", out))
    return harness.different("bytes", answer["bytes_received"], {"max": 12 * 4, "total": 48 * 4})


def other_ranks():
    file, out = fresh("x.npy"), fresh()
    harness.write_npy(file, "<i4", (5,), list(range(5)))
    answer = tool.json("redistribute", "--mesh", "3@[4,1,2]", "--from", "R", "--to", "S(0)", "--input", file, "--output", out)
    return check_shards(out, "<i4", (3,), (5,), list(range(5)), ["S(0)"], [4, 1, 2]) + harness.different("ranks", answer["ranks"], 3)


def deep_folder():
    file, out = fresh("x.npy"), fresh()
    harness.write_npy(file, "<i4", (), [7])
    tool.json(*move((2,), ["R"], ["R"], "--input", file, "--output", f"{out}/a//b/"))
    return check_shards(out / "a" / "b", "<i4", (2,), (), [7], ["R"])


def kept_folder():
    """Other files are kept; older results are replaced."""
    file, out = fresh("x.npy"), fresh()
    out.mkdir()
    (out / "other").write_text("mine")
    (out / "rank-1.npy").write_text("old")
    harness.write_npy(file, "<i4", (2,), [7, 8])
    tool.json(*move((2,), ["R"], ["S(0)"], "--input", file, "--output", out))
    wrong = harness.different("other", (out / "other").read_text(), "mine")
    (out / "other").unlink()
    return wrong + check_shards(out, "<i4", (2,), (2,), [7, 8], ["S(0)"])


def text_answer():
    file, out = fresh("x.npy"), fresh()
    harness.write_npy(file, "<i4", (2,), [7, 8])
    done = tool.run(*move((2,), ["R"], ["S(0)"], "--input", file, "--output", out))
    return harness.different("answer", (done.returncode, "2 files" in done.stdout, done.stderr), (0, True, ""))


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def leaves_nothing(fact, arguments, mentions=(), **options):
    """One case for the refusal and one for what is left: what was there before."""
    before = tree(tool.folder)
    tool.refuses(1, arguments, mentions, **options)
    tool.report.check("nothing is left: " + fact, harness.different("files", tree(tool.folder), before))


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def interrupted():
    """A signal while files are written: incomplete files are removed, and the signal ends the
    program."""
    file, out = fresh("x.npy"), fresh("stopped")
    harness.write_npy(file, "<i4", (1 << 20,), [0] * (1 << 20))
    wrong = []
    for attempt in harness.thinned(range(8), 4):
        running = subprocess.Popen([tool.path, *map(str, move((16,), ["R"], ["R"], "--input", file, "--output", out))], stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)
        while running.poll() is None and not out.exists():
            pass
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
        left = tree(out) if out.exists() else None
        whole = sorted(f"rank-{r}.npy" for r in range(16))
        if left != whole and (left is not None or running.returncode == 0):
            wrong.append(f"attempt {attempt}: exit {running.returncode}, left {left}")
        shutil.rmtree(out, ignore_errors=True)
    return wrong


def unheard():
    """A report that cannot be written is a failure too, with one line of error and no files."""
    file = fresh("x.npy")
    harness.write_npy(file, "<i4", (4,), [0] * 4)
    wrong = []
    for fact, command in (("a full device", ["sh", "-c", 'exec "$@" >/dev/full', "sh"]), ("no standard output", ["sh", "-c", 'exec "$@" >&-', "sh"])):
        for more in ([], ["--json"]):
            out = fresh("unheard")
            done = subprocess.run([*command, tool.path, *map(str, move((2,), ["R"], ["S(0)"], "--input", file, "--output", out)), *more],
                                  capture_output=True, text=True, timeout=60)
            wrong += harness.different(f"{fact}, {more}", (done.returncode, done.stderr.count("\n"), out.exists()), (1, 1, False))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([tool.path, *map(str, move((2,), ["R"], ["S(0)"], "--input", file, "--output", fresh("unheard")))], stdout=writing,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writing)
    wrong += harness.different("a pipe that nobody reads", (done.returncode, done.stderr.count("\n")), (1, 1))
    return wrong + harness.different("folders", [path.name for path in tool.folder.iterdir() if path.name.startswith("unheard")], [])


def stale_shards():
    """What is no rank's file by its name may stay."""
    out, file = fresh("stale"), tool.folder / "stale.npy"
    harness.write_npy(file, "<i4", (8,), list(range(8)))
    give = ["--input", file, "--output", out]
    wrong = harness.different("4 ranks", tool.run(*move((4,), ["R"], ["S(0)"], *give)).returncode, 0)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for mesh, named in (("2", ("rank-2.npy", "rank-3.npy")), ("3@1", ("rank-0.npy",)), ("3@[3,0,2]", ("rank-1.npy",))):
        done = tool.run("redistribute", "--mesh", mesh, "--from", "R", "--to", "R", *give)
        wrong += harness.different(f"{mesh}: exit status", done.returncode, 1)
        wrong += [] if any(name in done.stderr for name in named) else [f"{mesh}: none of {named} is in: {done.stderr}"]
    wrong += harness.different("files", {path.name: path.read_bytes() for path in out.iterdir()}, before)
    for name in ("rank-9.npz", "rank-09.npy", "rank-.npy", "rank-99999999999999999999.npy", "xrank-9.npy"):
        (out / name).write_bytes(b"")
    return wrong + harness.different("the same ranks again", tool.run(*move((2, 2), ["R", "R"], ["S(0)", "R"], *give)).returncode, 0)


random.seed(int(os.environ.get("TSR_TEST_SEED", "20261121")))
KINDS = ["R", "P", "S(0)", "S(1)", "S(0;balanced)", "S(1;interleave=2)"]
PAIRS = list(itertools.product(KINDS, repeat=2))
for source, target in harness.thinned(PAIRS, 5):
    tool.case(f"3 ranks, 7x5, {source} -> {target}", round_trip, (3,), (7, 5), [source], [target], "direct")
GRIDS = [(source, target) for source in itertools.product(KINDS, repeat=2) for target in itertools.product(KINDS, repeat=2)]
for source, target in harness.thinned(random.sample(GRIDS, 60), 4):
    mesh, shape, mode = random.choice([(2, 2), (2, 3), (1, 4)]), random.choice([(5, 6), (1, 3), (8, 0)]), random.choice(["direct", "message"])
    tool.case(f"{mesh_text(mesh)} ranks, {mesh_text(shape)}, {','.join(source)} -> {','.join(target)}, {mode}", round_trip, mesh, shape, source,
              target, mode)
for name, descr in (("f64", "<f8"), ("f32", "<f4"), ("bf16", "<u2"), ("f8e4m3", "|u1"), ("f8e5m2", "|u1"), ("i64", "<i8"), ("i32", "<i4"),
                    ("i16", "<i2"), ("i8", "|i1"), ("u64", "<u8"), ("u32", "<u4"), ("u16", "<u2"), ("u8", "|u1"), ("bool", "|b1")):
    tool.case(f"{name} travels as {descr}", every_dtype, name, descr)
for version in (1, 2, 3):
    tool.case(f"input of version {version}", input_form, "<i4", "<i4", version=version)
for descr, wanted in ((">i4", "<i4"), (">f8", "<f8"), (">u2", "<u2")):
    tool.case(f"big-endian input {descr}", input_form, descr, wanted)
tool.case("input in Fortran order", input_form, "<f8", "<f8", fortran=True)
tool.case("big-endian input in Fortran order", input_form, ">f8", "<f8", fortran=True)
for spaces in range(8):
    tool.case(f"input whose elements begin {spaces} bytes further on", input_form, "<f8", "<f8", spaces=spaces)
tool.case("terms in files add up", terms_add_up)
tool.case("an all-to-all's bytes", all_to_all_bytes)
tool.case("a mesh of other ranks", other_ranks)
tool.case("the folder is made with its parents; a scalar", deep_folder)
tool.case("other files in the folder stay", kept_folder)
tool.case("a folder with another mesh's files is refused", stale_shards)
tool.case("the answer for people", text_answer)

good = tool.folder / "good.npy"
harness.write_npy(good, "<f4", (4, 6), list(range(24)))
body = harness.pack("<f4", list(range(24)))
HOSTILE = {
    "empty": b"", "magic": b"\x93NUMPX" + good.read_bytes()[6:], "version": harness.header("<f4", (4, 6), version=1).replace(b"\x01", b"\x09", 1) + body,
    "truncated": good.read_bytes()[:-1], "header-cut": good.read_bytes()[:20], "longer": good.read_bytes() + b"x",
    "lying-more": harness.header("<f4", (5, 6)) + body, "lying-less": harness.header("<f4", (4, 5)) + body,
    "overflow": harness.header("<f4", (1 << 40, 1 << 40)) + body, "int64": harness.header("<f4", (1 << 64,)) + body,
    "negative": harness.header("<f4", (-4, -6)) + body, "object": harness.header("|O", (24,)) + body, "text": harness.header("<U6", (4,)) + body,
    "structured": harness.header("", (24,)).replace(b"''", b"[('a', '<f4')]") + body, "dims": harness.header("<f4", (1,) * 8 + (24,)) + body,
    "no-dict": harness.MAGIC + b"\x01\x00\x02\x00[]" + body, "length": harness.MAGIC + b"\x02\x00\xff\xff\xff\xff{}" + body,
    "code": harness.header("<f4", ("__import__('os')",)) + body, "nul": harness.header("<f4\0", (4, 6)) + body,
}
for name, content in HOSTILE.items():
    path = tool.folder / f"hostile-{name}.npy"
    path.write_bytes(content)
    leaves_nothing(f"hostile {name}", move((2,), ["R"], ["S(0)"], "--input", path, "--output", tool.folder / "new" / "out"), [path.name])
MOVE = move((2,), ["R"], ["S(0)"], "--input", good)
leaves_nothing("missing input", move((2,), ["R"], ["S(0)"], "--input", tool.folder / "none.npy", "--output", tool.folder / "out"), ["none.npy"])
leaves_nothing("input is a folder", move((2,), ["R"], ["S(0)"], "--input", tool.folder, "--output", tool.folder / "out"))
leaves_nothing("another dtype", MOVE + ["--dtype", "f64", "--output", tool.folder / "out"], ["f64", "<f4"])
leaves_nothing("another shape", MOVE + ["--shape", "6x4", "--output", tool.folder / "out"], ["6x4", "4x6"])
leaves_nothing("a layout that is refused", move((2,), ["R"], ["S(2)"], "--input", good, "--output", tool.folder / "out"), ["--to"])
leaves_nothing("another engine", MOVE + ["--engine", "mpi", "--output", tool.folder / "out"], ["1 rank" if tool.has_engine("mpi") else "mpi"])
leaves_nothing("the output is a file", MOVE + ["--output", good], ["good.npy"])
leaves_nothing("the output is below a file", MOVE + ["--output", good / "out"])
leaves_nothing("the output has no name", MOVE + ["--output", ""])
leaves_nothing("files may not grow", MOVE + ["--output", tool.folder / "new" / "out"], ["rank-0.npy"], preexec_fn=small_files)
old = tool.folder / "old"
(old / "rank-1.npy").mkdir(parents=True)
leaves_nothing("a result cannot get its name", MOVE + ["--output", old], ["rank-1.npy"])
leaves_nothing("files may not grow in a folder that was there", MOVE + ["--output", old], preexec_fn=small_files)
leaves_nothing("a timeout that is no number", MOVE + ["--output", tool.folder / "out"], ["TSR_TIMEOUT_MS"], env={"TSR_TIMEOUT_MS": "soon"})

(tool.folder / "folder.npy").mkdir()
shards = tool.folder / "shards"
shards.mkdir()
FROM_SHARDS = move((2,), ["S(0)"], ["R"], "--input-shards", shards, "--output", tool.folder / "out")
harness.write_npy(shards / "rank-0.npy", "<f4", (3, 2), list(range(6)))
leaves_nothing("a shard is missing", FROM_SHARDS, ["rank-1.npy"])
harness.write_npy(shards / "rank-1.npy", "<f8", (2, 2), list(range(4)))
leaves_nothing("shards of two dtypes", FROM_SHARDS, ["f32", "f64"])
harness.write_npy(shards / "rank-1.npy", "<f4", (4,), list(range(4)))
leaves_nothing("shards of two numbers of dims", FROM_SHARDS, ["dims"])
harness.write_npy(shards / "rank-1.npy", "<f4", (2, 3), list(range(6)))
leaves_nothing("shards that do not fit together", FROM_SHARDS)
harness.write_npy(shards / "rank-1.npy", "<f4", (4, 2), list(range(8)))
leaves_nothing("shards that no chunks give", FROM_SHARDS)
harness.write_npy(shards / "rank-1.npy", "<f4", (2, 2), list(range(4)))
leaves_nothing("shards of another shape than --shape", FROM_SHARDS + ["--shape", "6x2"])
tool.case("shards tell the global shape", lambda: harness.different("ranks", tool.json(*FROM_SHARDS)["ranks"], 2) + check_shards(
    tool.folder / "out", "<f4", (2,), (5, 2), list(range(6)) + list(range(4)), ["R"]))

for case in (((4,), ["S(0)"], (6,), None, ["S(0)"], "direct"), ((2, 2), ["S(0)", "S(1)"], (3,), (5, 0, 2), ["S(1;balanced)"], "message"),
             ((2,), ["R"], (2,), (3, 2), ["S(0)"], "direct"), ((2,), ["P"], (2,), (1, 0), ["R"], "direct"), ((3,), ["S(1)"], (2, 2), None, ["P", "S(0)"], "direct")):
    tool.case(f"from mesh {case[0]} to {case[2]} of ranks {case[3]}, {case[1]} to {case[4]}", between_meshes, *case)
for case in (("<f4", "f32", (4, 6)), ("<u2", "bf16", (5,)), ("|u1", "f8e4m3", ()), ("<f8", "f64", (3, 0)), ("<i8", "i64", (9, 2), "--mode", "message")):
    tool.case(f"one file of {case[1]} {case[2]}", one_file, *case)
WHOLE = tool.folder / "whole.npy"
tool.refuses(2, MOVE + ["--to-mesh", "x", "--output", WHOLE], ["--to-mesh"])
leaves_nothing("placements for a mesh of one dim, a mesh of two", MOVE + ["--to-mesh", "2x2", "--output", WHOLE], ["--to"])
leaves_nothing("a folder of ranks outside the other mesh", MOVE + ["--to-mesh", "1", "--output", old], ["rank-1.npy"])
leaves_nothing("the file lies in no folder", MOVE + ["--output", tool.folder / "nowhere" / "y.npy"], ["y.npy"])
leaves_nothing("the file is a folder", MOVE + ["--output", tool.folder / "folder.npy"], ["regular"])
leaves_nothing("the file may not grow", MOVE + ["--output", WHOLE], ["whole.npy"], preexec_fn=small_files)
tool.case("a signal leaves nothing or everything", interrupted)
tool.case("a report that cannot be written leaves nothing", unheard)
tool.report.finish()
