#!/usr/bin/env python3
"""`tessera program`: what it says of a program, what it refuses, and runs whose outputs are those of
plain loops, under many layouts."""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import harness

tool = harness.Tool(sys.argv[1])
ROWS, HIDDEN, WIDE = 6, 5, 7


def value(name, shape, placements=None, kind="parameter", **more):
    return {"name": name, "kind": kind, "shape": shape, "dtype": "f32", "placements": placements, **more}


def op(name, inputs, output, **attributes):
    return {"op": name, "inputs": inputs, "outputs": [output], "attributes": attributes}


def mlp(x, up, bias, down):
    """An MLP and the sum of squares of its result, with gradients; weights are varying."""
    placed = [texts.split(",") for texts in (x, up, bias, down)]
    return {"values": [value("x", [ROWS, HIDDEN], placed[0], "input", gradient="P"), value("up", [WIDE, HIDDEN], placed[1], gradient="P"),
                       value("bias", [WIDE], placed[2], gradient="P"), value("down", [HIDDEN, WIDE], placed[3], gradient="P"),
                       value("half", [], None, "constant", value=0.5)],
            "ops": [op("linear", ["x", "up", "bias"], "h"), op("relu", ["h"], "r"), op("linear", ["r", "down", None], "p"),
                    op("all_reduce", ["p"], "y"), op("square", ["y"], "s"), op("sum", ["s"], "t", dim=[0, 1], keep=False),
                    op("all_reduce", ["t"], "u"), op("mul", ["u", "half"], "loss")],
            "outputs": [{"name": "y", "placements": None}, {"name": "loss"}],
            "gradients": {"of": "loss", "to": ["x", "up", "bias", "down"]}}


def save(program, name="program.json"):
    path = tool.folder / name
    path.write_text(program if isinstance(program, str) else json.dumps(program))
    return path


def numbers(seed, count):
    return [(i * 7 + seed * 5 + i // 3) % 9 - 4 for i in range(count)]


def rows(values, width):
    return [values[i:i + width] for i in range(0, len(values), width)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(column) for column in zip(*a)]


def flat(a):
    return [x for row in a for x in row]


def expected(x, up, bias, down):
    """The outputs of the MLP by plain loops over whole numbers."""
    h = [[v + b for v, b in zip(row, bias)] for row in product(x, turned(up))]
    r = [[max(v, 0) for v in row] for row in h]
    y = product(r, turned(down))
    dr = product(y, down)
    dh = [[g if v > 0 else 0 for g, v in zip(a, b)] for a, b in zip(dr, h)]
    return {"y": flat(y), "loss": [sum(v * v for v in flat(y)) / 2], "d.x": flat(product(dh, up)), "d.up": flat(product(turned(dh), x)),
            "d.bias": [sum(column) for column in zip(*dh)], "d.down": flat(product(turned(y), r))}


SHAPES = {"x": (ROWS, HIDDEN), "up": (WIDE, HIDDEN), "bias": (WIDE,), "down": (HIDDEN, WIDE), "y": (ROWS, HIDDEN), "loss": ()}


def run(mesh, *placements):
    inputs, output = tool.folder / "inputs", tool.folder / f"output-{mesh}"
    inputs.mkdir(exist_ok=True)
    given = {}
    for seed, name in enumerate(["x", "up", "bias", "down"]):
        shape = SHAPES[name]
        given[name] = numbers(seed, shape[0] * (shape[1] if len(shape) > 1 else 1))
        harness.write_npy(inputs / f"{name}.npy", "<f4", shape, given[name])
    tool.json("program", save(mlp(*placements)), "--mesh", mesh, "--inputs", inputs, "--output", output)
    wanted = expected(rows(given["x"], HIDDEN), rows(given["up"], HIDDEN), given["bias"], rows(given["down"], WIDE))
    wrong = harness.different("files", sorted(path.name for path in output.iterdir()), sorted(f"{name}.npy" for name in wanted))
    for name, values in wanted.items():
        found = harness.read_npy(output / f"{name}.npy")
        wrong += harness.different(name, found, ("<f4", SHAPES[name.removeprefix("d.")], values))
    return wrong


def told():
    program = {"values": [value("x", [4, 8], ["S(0)"], "input"), value("w", [16, 8])],
               "ops": [op("linear", ["x", "w", None], "y")], "outputs": [{"name": "y", "placements": None}]}
    answer = tool.json("program", save(program), "--mesh", "2")
    wanted = {"mesh": {"shape": [2], "names": None}, "moves": [], "bytes_received": {"max": 0, "total": 0},
              "peak_bytes": {"max": 2 * 8 * 4 + 16 * 8 * 4 + 2 * 16 * 4}, "flops": {"max": 2 * 2 * 8 * 16}}
    memory = answer.pop("memory")
    memory.pop("executable")
    parts = {"parameters": 16 * 8 * 4, "inputs": 2 * 8 * 4, "outputs": 2 * 16 * 4, "optimizer_states": 0, "gathered": 0, "activations": 0, "gradients": 0,
             "workspaces": 0, "gaps": 0}
    wrong = harness.different("answer", {key: answer.get(key) for key in wanted}, wanted) + harness.different("memory", memory, parts)
    wrong += harness.different("fields", set(answer), {*wanted, "ops", "seconds"})
    wrong += harness.different("an op", {key: item for key, item in answer["ops"][0].items() if key != "seconds"},
                               {"op": "linear", "inputs": ["x", "w", None], "outputs": ["y"], "placements": [["S(0)"]], "gradient": ["R"],
                                "bytes_received": {"max": 0, "total": 0}, "view": False, "group": None})
    return wrong + harness.different("seconds", answer["ops"][0]["seconds"], answer["seconds"])


def training(weight="R", optimizer=None, **changes):
    """A linear layer with the sum of squares of its result, which an optimizer makes smaller."""
    return {"values": [value("x", [8, 6], ["S(0)"], "input"), value("w", [12, 6], [weight], "state", gradient="P"),
                       {**value("rate", [], None, "input"), "dtype": "f64"}, {**value("step", [], None, "input"), "dtype": "f64"}],
            "ops": [op("linear", ["x", "w", None], "y"), op("square", ["y"], "s"), op("sum", ["s"], "t", dim=[0, 1]), op("all_reduce", ["t"], "loss")],
            "outputs": [{"name": "loss"}], "gradients": {"of": "loss", "to": ["w"]},
            "optimizer": optimizer if optimizer is not None else {"name": "adamw", "rate": "rate", "step": "step", "weight_decay": 0, **changes}}


def optimized():
    """Memory by ZeRO's stages, and the same weights on one rank and on four."""
    wrong, bytes_of_w = [], 12 * 6 * 4
    for changes, parameters, states in (({}, 1, 1), ({"shard_over": ["dp"]}, 1, 4), ({"shard_over": [0], "clip": 1.5}, 1, 4)):
        answer = tool.json("program", save(training(**changes)), "--mesh", "dp=4")
        memory = answer["memory"]
        wrong += harness.different(f"states, {changes}", memory["optimizer_states"], 2 * bytes_of_w // states)
        wrong += harness.different(f"sum, {changes}", sum(memory.values()) - memory["executable"], answer["peak_bytes"]["max"])
        if memory["parameters"] < bytes_of_w // parameters or memory["gradients"] == 0 or memory["executable"] == 0:
            wrong.append(f"{changes}: {memory}")
    inputs, found = tool.folder / "trained", []
    inputs.mkdir(exist_ok=True)
    for name, kind, shape, values in (("x", "<f4", (8, 6), numbers(1, 48)), ("w", "<f4", (12, 6), numbers(2, 72)), ("w.exp_avg", "<f4", (12, 6), [0] * 72),
                                      ("w.exp_avg_sq", "<f4", (12, 6), [0] * 72), ("rate", "<f8", (), [0.25]), ("step", "<f8", (), [1])):
        harness.write_npy(inputs / f"{name}.npy", kind, shape, values)
    for mesh in ("dp=1", "dp=4"):
        output = tool.folder / f"trained-{mesh}"
        tool.json("program", save(training(shard_over=["dp"])), "--mesh", mesh, "--inputs", inputs, "--output", output)
        found.append({name: harness.read_npy(output / f"{name}.npy") for name in ("w", "w.exp_avg", "w.exp_avg_sq", "loss")})
    wrong += harness.different("on four ranks", found[1], found[0])
    # AdamW's first step is rate times the sign of the gradient, but for epsilon.
    moved = [abs(new - old) for new, old in zip(found[0]["w"][2], numbers(2, 72))]
    if not all(size < 1e-6 or abs(size - 0.25) < 1e-6 for size in moved) or max(moved) < 0.2:
        wrong.append(f"w moved by {moved}")
    # An output that is a state has what the update leaves there, as ops below a store see it.
    output = tool.folder / "trained-output"
    tool.json("program", save({**training(), "outputs": [{"name": "w"}]}), "--mesh", "dp=4", "--inputs", inputs, "--output", output)
    wrong += harness.different("w as an output", harness.read_npy(output / "w.npy"), found[0]["w"])
    text = tool.run("program", save(training(shard_over=["dp"])), "--mesh", "dp=4").stdout
    return wrong + ([] if re.search(r"at most: parameters .*, optimizer's states 144 B, .*gradients", text) else [text])


# x is cut where the weight is: the product is Partial, and an output wants it whole.
REDUCED = {"values": [value("x", [4, 8], ["S(1)"], "input"), value("w", [6, 8], ["S(1)"])],
           "ops": [op("linear", ["x", "w"], "p"), op("relu", ["p"], "y")], "outputs": [{"name": "y", "placements": ["S(0)"]}]}


def moved():
    answer = tool.json("program", save(REDUCED), "--mesh", "4", "--policy", "allow")
    moves = [{key: move[key] for key in ("value", "from", "to", "cause", "bytes_received")} for move in answer["moves"]]
    # P -> S(0) by a reduce-scatter: each rank receives three terms of a row of 6 floats. P -> R: as much again.
    wanted = {"value": "p", "from": ["P"], "cause": "relu"}
    wrong = harness.different("a move", {key: moves[0][key] for key in wanted}, wanted)
    total = {key: sum(move["bytes_received"][key] for move in moves) for key in ("max", "total")}
    wrong += harness.different("bytes", answer["bytes_received"], total)
    wrong += harness.different("layout", answer["ops"][-1]["placements"], [moves[0]["to"]])
    return wrong + harness.different("ranks", moves[0]["bytes_received"]["total"], 4 * moves[0]["bytes_received"]["max"])


def written():
    """A redistribution that the program says has no cause."""
    program = {"values": [value("x", [4, 8], ["S(0)"], "input")], "ops": [op("redistribute", ["x"], "y", placements=["R"])],
               "outputs": [{"name": "y"}]}
    answer = tool.json("program", save(program), "--mesh", "2")
    move = dict(answer["moves"][0])
    move.pop("seconds")
    return harness.different("the move", move, {"value": "x", "from": ["S(0)"], "to": ["R"], "output": "y", "cause": None, "before": 0, "shares": False,
                                                "bytes_received": {"max": 64, "total": 128}})


def one_of_many():
    wide = {"values": [value("x", [2048, 1024], ["S(0)", "R"], "input"), value("w", [8192, 1024], ["R", "S(0)"])],
            "ops": [op("linear", ["x", "w"], "h"), op("redistribute", ["h"], "y", placements=["S(0)", "R"])], "outputs": [{"name": "y"}]}
    path = save(wide)
    mesh = ["--mesh", "dp=1024,tp=1024"]
    answer, other = tool.json("program", path, *mesh), tool.json("program", path, *mesh, "--rank", "77")
    received = 2 * (8192 - 8) * 4
    return (harness.different("the first", answer["bytes_received"], {"max": received, "total": None})
            + harness.different("of its move", answer["moves"][0]["bytes_received"], {"max": received, "total": None})
            + harness.different("rank 77", other["bytes_received"], {"max": received, "total": received})
            + harness.different("rank", (answer.get("rank"), other["rank"]), (None, 77)))


def varying():
    answer = tool.json("program", save(mlp("R", "S(0)", "S(0)", "S(1)")), "--mesh", "2")
    made = {step["outputs"][0]: step["gradient"] for step in answer["ops"]}
    return harness.different("gradients", [made[name] for name in ("x", "up", "h")], [["P"], ["R"], ["R"]])


def people():
    said = tool.run("program", save(REDUCED), "--mesh", "4", "--policy", "allow").stdout
    return [f"{text!r} is not in:\n{said}" for text in ("linear", "move for relu", "4x6 f32", "P -> ", "a rank receives at most", "memory: ")
            if text not in said]


def long_layouts():
    """Placements that are too long for the table are cut, and what is said behind them stays in its column."""
    sizes = [1000 + i for i in range(100)]
    x = value("x", [sum(sizes)], ["S(0;sizes=" + ",".join(map(str, sizes)) + ")", "R"], gradient="P")
    said = tool.run("program", save({"values": [x], "ops": [op("neg", ["x"], "y")], "outputs": [{"name": "y"}]}), "--mesh", "100x2").stdout
    lines = [line for line in said.splitlines() if line.startswith(("vary ", "neg "))]
    return harness.different("lines", len(lines), 2) + [line for line in lines if not re.search(r",10[0-9,]*\.\., varies( +[\d.]+ .?s)?$", line)]


def drawn():
    """The picture is XML, names every op and move, and keeps within its borders."""
    path = tool.folder / "picture.svg"
    answer = tool.json("program", save(REDUCED), "--mesh", "4", "--policy", "allow", "--svg", path)
    root = ElementTree.fromstring(path.read_bytes())
    svg = "{http://www.w3.org/2000/svg}"
    texts = ["".join(text.itertext()) for text in root.iter(svg + "text")]
    wanted = ["x 4x8 f32 S(1)", "with w 6x8 f32 S(1)", "p 4x6 f32 P", "output y", f"P -> {answer['moves'][0]['to'][0]}", "put in for relu"]
    wrong = [f"{text!r} is not in {texts}" for text in wanted if text not in texts]
    wrong += [f"no box of {step['op']}" for step in answer["ops"] if not any(text.startswith(step["op"] + ",") for text in texts)]
    width, height = float(root.get("width")), float(root.get("height"))
    for box in root.iter(svg + "rect"):
        x, y, wide, high = (float(box.get(name)) for name in ("x", "y", "width", "height"))
        if x < 0 or y < 0 or x + wide > width or y + high > height:
            wrong.append(f"a box at {x}, {y}")
    for flow in root.iter(svg + "path"):
        corners = [float(number) for number in re.findall(r"-?\d+\.\d+", flow.get("d"))] if flow.get("stroke-width") != "0.6" else []
        if any(x < 0 or x > width for x in corners[::2]) or any(y < 0 or y > height for y in corners[1::2]):
            wrong.append(f"a line {flow.get('d')}")
    return wrong


def wide():
    """Boxes of one level do not overlap, and far values are named in words."""
    path = tool.folder / "wide.svg"
    ops = [op("relu", ["x"], f"a{i}") for i in range(1)] + [op("scale", ["x"], f"b{i}", factor=i + 2) for i in range(7)]
    ops += [op("neg", ["a0"], "c0")] + [op("neg", [f"c{i}"], f"c{i + 1}") for i in range(20)] + [op("add", ["c20", "a0"], "y")]
    program = {"values": [value("x", [4, 8], None, "input")], "ops": ops, "outputs": [{"name": "y"}] + [{"name": f"b{i}"} for i in range(7)]}
    tool.json("program", save(program), "--mesh", "2", "--svg", path)
    root = ElementTree.fromstring(path.read_bytes())
    svg = "{http://www.w3.org/2000/svg}"
    boxes = [tuple(float(box.get(name)) for name in ("x", "y", "width", "height")) for box in root.iter(svg + "rect")][1:]
    wrong = [f"{a} and {b} overlap" for i, a in enumerate(boxes) for b in boxes[:i]
             if a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]]
    texts = ["".join(text.itertext()) for text in root.iter(svg + "text")]
    return wrong + harness.different("far", [text for text in texts if "from above" in text], ["with a0 from above"])


CACHE = {"values": [value("k", [1, 4], ["R"], "input"), {"name": "at", "kind": "input", "shape": [], "dtype": "i64"},
                    value("cache", [3, 4], ["S(1)"], "state"), value("steps", [], ["R"], "state"), value("one", [], ["R"], "constant", value=1)],
         "ops": [{"op": "store", "inputs": ["cache", "k", "at"], "outputs": []}, op("add", ["cache", "cache"], "twice"),
                 op("add", ["steps", "one"], "next"), {"op": "store", "inputs": ["steps", "next"], "outputs": []}],
         "outputs": [{"name": "twice", "placements": None}]}


def stored():
    """Ops below a store see what it stored, and states are written after the run."""
    inputs, output = tool.folder / "state-in", tool.folder / "state-out"
    inputs.mkdir()
    harness.write_npy(inputs / "k.npy", "<f4", (1, 4), [10, 11, 12, 13])
    harness.write_npy(inputs / "at.npy", "<i8", (), [1])
    harness.write_npy(inputs / "cache.npy", "<f4", (3, 4), list(range(12)))
    harness.write_npy(inputs / "steps.npy", "<f4", (), [6])
    answer = tool.json("program", save(CACHE), "--mesh", "2", "--policy", "allow", "--inputs", inputs, "--output", output)
    cache = [0, 1, 2, 3, 10, 11, 12, 13, 8, 9, 10, 11]
    wrong = [f"{name}: {found!r} instead of {wanted}" for name, wanted in (
                 ("cache", ("<f4", (3, 4), cache)), ("twice", ("<f4", (3, 4), [2 * x for x in cache])), ("steps", ("<f4", (), [7])))
             if (found := harness.read_npy(output / f"{name}.npy")) != wanted]
    wrong += harness.different("files", len(list(output.iterdir())), 3)
    stores = [step for step in answer["ops"] if step["op"] == "store"]
    return wrong + harness.different("stores", [(s["inputs"][0], s["inputs"][2], s["outputs"]) for s in stores], [("cache", "at", []), ("steps", None, [])])


def trained():
    """A step of gradient descent: the weight is a varying state, and its name is new after the store."""
    step = {"values": [value("x", [4, 2], ["S(0)"], "input"), value("w", [3, 2], ["R"], "state", gradient="P"), value("rate", [], None, "constant", value=-0.5)],
            "ops": [op("linear", ["x", "w", None], "y"), op("square", ["y"], "s"), op("sum", ["s"], "t", dim=[0, 1], keep=False), op("all_reduce", ["t"], "loss")],
            "outputs": [{"name": "loss"}], "gradients": {"of": "loss", "to": ["w"]}}
    answer = tool.json("program", save(step), "--mesh", "2")
    return harness.different("layout", [s["placements"] for s in answer["ops"] if s["outputs"] == ["d.w"]], [[["P"]]])


def left_alone():
    """A run that fails leaves older files as they were."""
    output = tool.folder / "older"
    output.mkdir()
    (output / "y.npy").write_text("older")
    done = tool.run("program", save(REDUCED), "--mesh", "4", "--policy", "allow", "--inputs", tool.folder / "missing", "--output", output)
    return harness.different("status", done.returncode, 1) + harness.different("file", (output / "y.npy").read_text(), "older")


def ids():
    """Integers go in, and two results of one op come out."""
    program = {"values": [value("table", [5, 4], ["S(0)"]), {"name": "ids", "kind": "input", "shape": [3], "dtype": "i64"}],
               "ops": [op("embedding", ["table", "ids"], "p"), op("all_reduce", ["p"], "e"),
                       {"op": "topk", "inputs": ["e"], "outputs": ["values", "indices"], "attributes": {"k": 2, "dim": -1}}],
               "outputs": [{"name": "values"}, {"name": "indices"}]}
    inputs, output = tool.folder / "ids", tool.folder / "ids-out"
    inputs.mkdir()
    table, chosen = [7, 1, 8, 3, 2, 9, 4, 6, 5, 0, 11, 10, 1, 2, 3, 4, 4, 3, 2, 1], [4, 0, 2]
    harness.write_npy(inputs / "table.npy", "<f4", (5, 4), table)
    harness.write_npy(inputs / "ids.npy", "<i8", (3,), chosen)
    tool.json("program", save(program), "--mesh", "3", "--inputs", inputs, "--output", output)
    return (harness.different("values", harness.read_npy(output / "values.npy"), ("<f4", (3, 2), [4, 3, 8, 7, 11, 10]))
            + harness.different("indices", harness.read_npy(output / "indices.npy"), ("<i8", (3, 2), [0, 1, 2, 0, 2, 3])))


tool.case("ops are told with layouts and costs", told)
tool.case("moves are told with causes and bytes", moved)
tool.case("a move that the program says has no cause", written)
tool.case("one rank of 2^20 is told", one_of_many)
tool.case("varying values are told", varying)
tool.case("people get a table", people)
tool.case("long layouts are cut", long_layouts)
tool.case("a picture is drawn", drawn)
tool.case("boxes of a picture lie apart", wide)
for case in (("1", "R", "R", "R", "R"), ("2", "R", "S(0)", "S(0)", "S(1)"), ("3", "R", "S(0)", "S(0)", "S(1)"), ("2", "S(0)", "R", "R", "R"),
             ("4", "S(0)", "R", "R", "R"), ("4", "R", "S(0;balanced)", "S(0;balanced)", "S(1;balanced)"),
             ("2x2", "S(0),R", "R,S(0)", "R,S(0)", "R,S(1)"), ("2@1", "R", "S(0)", "S(0)", "S(1)"), ("2x2@[3,1,0,2]", "R,S(0)", "S(0),R", "S(0),R", "S(1),R")):
    tool.case(f"an MLP on {case[0]} with x {case[1]}, up {case[2]}", run, *case)
tool.case("integers and ops of two results run", ids)
tool.case("stores are told, and states are written", stored)
tool.case("a varying state has a gradient", trained)
tool.case("an optimizer changes states, and memory is told by what it is for", optimized)
tool.case("older files stay where a run fails", left_alone)

X = value("x", [4, 8], None, "input")


def refuses(status, program, mentions, *options):
    tool.refuses(status, ["program", save(program, f"refused-{refuses.count}.json"), "--mesh", "2", *options], mentions)
    refuses.count += 1


refuses.count = 0
tool.refuses(1, ["program", "missing.json", "--mesh", "2"], ["missing.json"])
tool.refuses(2, ["program", save({}), "--mesh", "2x"], ["--mesh"])
tool.refuses(2, ["program", save({}), "--mesh", "2", "--inputs", "x"], ["--output"])
refuses(2, "{", ["line 1"])
refuses(2, [], ["values, ops, outputs, gradients, optimizer"])
refuses(2, {"value": []}, ["\"value\" is not one of its fields"])
refuses(1, {}, ["neither outputs nor stores"])
refuses(2, {"values": [{**X, "kind": "weight"}]}, ["values[0], \"x\"", "weight"])
refuses(2, {"values": [{**X, "dtype": "f33"}]}, ["values[0], \"x\"", "f33"])
refuses(2, {"values": [{**X, "shape": [2.5]}]}, ["values[0], \"x\"", "shape[0]"])
refuses(2, {"values": [{**X, "gradient": "S"}]}, ["values[0], \"x\"", "gradient"])
refuses(2, {"values": [X, {**X, "kind": "constant", "name": "c"}]}, ["values[1], \"c\"", "value is missing"])
refuses(1, {"values": [{**X, "placements": ["S(2)"]}]}, ["values[0], \"x\"", "S(2)"])
refuses(1, {"values": [X, X]}, ["values[1], \"x\"", "already"])
refuses(2, {"values": [X], "ops": [{"op": "store", "inputs": ["x", "x", None], "outputs": []}]}, ["ops[0], store", "not the name of a state"])
refuses(2, {"values": [{**X, "kind": "state"}], "ops": [{"op": "store", "inputs": ["x", "x"], "outputs": ["y"]}]}, ["ops[0], store", "no outputs"])
refuses(1, {"values": [{**X, "kind": "state"}], "ops": [{"op": "store", "inputs": ["x"], "outputs": []}]}, ["ops[0], store"])
refuses(2, {"values": [X], "ops": [op("reluu", ["x"], "y")]}, ["ops[0]", "relu"])
refuses(2, {"values": [X], "ops": [op("relu", ["z"], "y")]}, ["ops[0], relu", "\"z\""])
refuses(2, {"values": [X], "ops": [op("relu", ["x", "x"], "y")]}, ["2 inputs", "takes 1"])
refuses(2, {"values": [X], "ops": [op("relu", ["x"], "x")]}, ["ops[0], relu", "already"])
refuses(2, {"values": [X], "ops": [op("softmax", ["x"], "y", dims=1)]}, ["ops[0], softmax", "\"dims\""])
refuses(2, {"values": [X], "ops": [op("softmax", ["x"], "y", dim="1")]}, ["ops[0], softmax", "dim must be a whole number"])
refuses(2, {"values": [X], "ops": [op("cast", ["x"], "y", dtype="f33")]}, ["ops[0], cast", "name of a dtype"])
refuses(1, {"values": [X], "ops": [op("softmax", ["x"], "y", dim=5)]}, ["ops[0], softmax", "dim"])
refuses(2, {"values": [X], "outputs": [{"name": "y"}]}, ["outputs[0], \"y\""])
refuses(1, {"values": [X], "outputs": [{"name": "x", "placements": ["S(0)"]}]}, ["outputs[0], \"x\"", "policy"])
refuses(2, {"values": [X], "gradients": {"of": "x", "to": []}}, ["gradients", "to must be"])
refuses(1, {"values": [X], "gradients": {"of": "x", "to": ["x"]}}, ["gradients", "must have 1"])
refuses(2, training(optimizer={"name": "adam", "rate": "rate"}), ["optimizer", "adamw"])
refuses(2, training(optimizer={"name": "adamw"}), ["optimizer", "rate is missing"])
refuses(1, training(optimizer={"name": "adamw", "rate": "rate"}), ["optimizer", "step is TSR_NONE"])
refuses(2, training(betas=[0.9]), ["optimizer", "betas must be two numbers"])
refuses(2, training(masters=1), ["optimizer", "masters must be true or false"])
refuses(2, training(shard_over=["tp"]), ["optimizer", 'shard_over[0] is "tp", but must be'])
refuses(2, training(shard_over=[0, 3]), ["optimizer", "shard_over[1] is 3, but must be"])
refuses(2, training(shard_over=[None]), ["optimizer", "shard_over[0] must be"])
refuses(2, training(momentum=0.9), ["optimizer", "adamw has no momentum"])
refuses(2, training(name="sgd", betas=[0.9, 0.99]), ["optimizer", "sgd has no betas"])
refuses(2, training(lr=1), ["optimizer", "\"lr\" is not one of its fields"])
refuses(2, training(clip="1"), ["optimizer", "clip must be a number"])
refuses(2, {**training(), "gradients": None}, ["optimizer", "there are no gradients"])
refuses(2, {**training(), "values": [{**v, "kind": "parameter"} if v["name"] == "w" else v for v in training()["values"]]}, ["optimizer", "w"])
refuses(1, REDUCED, ["ops[1], relu"])
refuses(1, REDUCED, ["--rank 2"], "--rank", "2")
tool.report.finish()
