#!/usr/bin/env python3
"""Exit statuses and error lines; and that help, manual page and completion know every command and option."""
import json
import pathlib
import re
import subprocess
import sys

import harness

tool = harness.Tool(sys.argv[1])
folder = pathlib.Path(sys.argv[2])
completion = pathlib.Path(sys.argv[3])
LAYOUT = {"--mesh": "2", "--shape": "4", "--placements": "R"}
MOVE = {"--mesh": "2", "--shape": "4", "--from": "R", "--to": "S(0)"}
# Without a launcher there is one rank of MPI, where it can be used at all.
WITH_MPI = tool.has_engine("mpi")


def with_options(command, options, **changes):
    options = {**options, **{"--" + name: value for name, value in changes.items()}}
    return [*command, *(word for pair in options.items() if pair[1] is not None for word in pair)]


def layout(**changes):
    return with_options(["layout"], LAYOUT, **changes)


def bench(kind, **changes):
    return with_options(["bench", kind], MOVE, **changes)


def calibrate(**changes):
    return with_options(["bench", "calibrate"], {}, **changes)


USAGE = [
    ([], ["no command"]), (["nothing"], ["nothing"]), (["bench"], ["bench"]), (["bench", "plan"], ["plan"]), (["--nothing"], ["--nothing"]),
    (layout(mesh=None), ["--mesh"]), (layout(shape=None), ["--shape"]), (layout(placements=None), ["--placements"]),
    (layout(nothing="1"), ["--nothing"]), (layout(to="R"), ["--to"]), (["layout", "--mesh"], ["--mesh", "value"]),
    (["layout", "--json=yes"], ["--json", "no value"]), (["layout", "-m", "2"], ["-m"]), (layout() + ["more"], ["more"]),
    (layout() + ["a\nb"], ["a?b"]),
    (layout(mesh=""), []), (layout(mesh="2x"), []), (layout(mesh="x2"), []), (layout(mesh="-2"), []), (layout(mesh="2@"), []),
    (layout(mesh="2@[0"), []), (layout(mesh="dp2,tp=2"), []), (layout(mesh="dp=2,2"), []), (layout(mesh="2.5"), []),
    (layout(mesh="1 2"), []), (layout(mesh="dp=2 tp=2"), []), (layout(mesh="2@1 2"), []), (layout(mesh="(2"), []), (layout(mesh="2,"), []),
    (layout(mesh="2(2)"), []), (layout(mesh="(2)x2"), []),
    (layout(shape=""), []), (layout(shape="4x"), []), (layout(shape="x4"), []), (layout(shape="-4"), []), (layout(shape="4 4"), []), (layout(shape="4(4)"), []), (layout(shape="((4),4)"), []), (layout(shape="[4"), []), (layout(shape="torch.Size"), []),
    (layout(shape="99999999999999999999"), []), (layout(shape="Scalar"), []), (layout(shape="0x10z"), []),
    (layout(placements=""), []), (layout(placements="Q"), []), (layout(placements="S"), []), (layout(placements="S(-1)"), []),
    (layout(placements="S(0"), []), (layout(placements="R,"), []), (layout(placements="P(median)"), []),
    (layout(placements="S(0;units=2)"), []), (layout(dtype="float23"), ["float23", "did you mean 'f32'?"]),
    (layout(dtype=""), []), (layout(dtype="F16"), ["did you mean 'f16'?"]), (layout(dtype="torch.quint8"), ["torch.quint8"]),
    (layout(placements="Shard(-1)"), ["S(-1)"]), (layout(placements="Shard"), []), (layout(placements="Shard(0;balanced)"), ["write S(0)"]),
    (layout(placements="[R"), []), (layout(placements="_Partial(max"), ['"_Partial(max"']), (layout(placements="_StridedShard(0)"), ["write S(0;interleave=k)"]),
    (["layuot"], ["(did you mean 'layout'?)"]), (["benhc", "plan"], ["(did you mean 'bench'?)"]), (["dispatch"], ["(did you mean 'bench dispatch'?)"]),
    (["bench", "dispach"], ["(did you mean 'dispatch'?)"]), (["help", "pln"], ["(did you mean 'plan'?)"]), (["help", "nothing"], ["nothing"]),
    (["rows"], ["rows needs to be told which"]), (["rows", "gahter"], ["(did you mean 'gather'?)"]),
    (["help", "bench", "dispach"], ["(did you mean 'dispatch'?)"]), (["help", "plan", "more"], ["more"]),
    (layout(placemnts="R"), ["(did you mean '--placements'?)"]), (layout(Dtype="f32"), ["(did you mean '--dtype'?)"]),
    (bench("redistribute", engine="thread"), ["(did you mean 'threads'?)"]), (bench("redistribute", device="hots"), ["(did you mean 'host'?)"]),
    (bench("redistribute", mode="fast"), ["fast"]), (bench("redistribute", engine="nothing"), ["nothing"]),
    (bench("redistribute", device="nothing"), ["nothing"]), (bench("redistribute", iterations="0x10"), ["0x10"]),
    (bench("redistribute", iterations="-1"), ["-1"]), (bench("dispatch", iterations=""), []), (bench("dispatch", mode="x"), ["'x'"]),
    (bench("dispatch", calls="x"), ["--calls", "'x'"]), (["bench", "linear", "--mode", "direct"], ["--mode"]), (bench("plan", check="1"), ["--check"]),
    (bench("plan") + ["--rank", "0", "--rank", "1"], ["--rank", "twice", "'0'", "'1'"]), (layout() + ["--mesh", "3"], ["--mesh", "twice"]),
    (bench("redistribute") + ["-n", "1", "--iterations", "2"], ["--iterations", "twice"]),
    (calibrate(mesh="2"), ["--mesh"]), (calibrate(mode="fast"), ["fast"]), (calibrate(ranks="two"), ["two"]), (calibrate(engine="x"), ["x"]),
    (calibrate(profile=str(folder / "meson.build")), ["meson.build", "line 3", "character 1"]),
    (bench("linear"), ["--shape"]), (["bench", "linear", "--mesh", "2"], ["--tokens"]),
    (with_options(["redistribute"], MOVE, output="out"), ["--input"]),
    (with_options(["redistribute"], MOVE, output="out", **{"input": "a", "input-shards": "b"}), ["--input"]),
]
REFUSED = [
    (layout(mesh="2x0", placements="R,R"), []), (layout(mesh="a=2,a=2", placements="R,R"), []), (layout(mesh="2@[0,0]"), []),
    (layout(mesh="2@[0,1,2]"), []), (layout(shape="1x1x1x1x1x1x1x1x1"), ["9 dims"]), (layout(shape="4294967296x4294967296"), []),
    (layout(placements="S(1)"), ["1"]), (layout(placements="R,R"), []), (layout(placements="P(avg)", dtype="i32"), []),
    (layout(placements="S(0;sizes=1,2)"), []), (layout(placements="S(0;interleave=2;blocks=2,2)"), []),
    (layout(mesh="2x2", placements="S(0)[0],S(0)[0]"), []), (layout(mesh="2x2", placements="P(max),P(min)"), []),
    (bench("redistribute", engine="mpi"), ["1 rank was launched; start it by mpirun -n " if WITH_MPI else "libtessera-mpi"]),
    (bench("redistribute", iterations="0"), ["0"]), (bench("redistribute", iterations="9000000000"), ["9000000000"]),
    (bench("dispatch", calls="1000001"), ["--calls is 1000001", "1000000"]),
    (bench("dispatch", iterations="1000001"), ["--iterations is 1000001", "1000000"]),
    (bench("redistribute", mesh="2@100000"), ["100001"]), (bench("dispatch", mesh="65536"), ["65535"]),
    (["bench", "linear", "--mesh", "2", "--tokens", "1", "--hidden", "2", "--intermediate", "2", "--dtype", "i32"], ["i32"]),
    (["bench", "linear", "--mesh", "2", "--tokens", "1", "--hidden", "2", "--intermediate", "2", "--dtype", "bf16", "--weights", "f32"],
     ["--weights f32", "--dtype bf16"]),
    (calibrate(ranks="1"), ["1", "2"]), (calibrate(ranks="5000"), ["5000", "4096"]),
    (calibrate(engine="mpi"), ["--ranks is 1" if WITH_MPI else "libtessera-mpi"]),
    (calibrate(profile="/nowhere/x"), ["/nowhere/x"]), (calibrate(profile="/"), ["--profile /"]), (calibrate(profile="/dev/zero"), ["long"]),
    (calibrate(output="/nowhere/x"), ["/nowhere/x"]), (calibrate(output="/"), ["regular"]), (calibrate(output="/dev/null"), ["regular"]),
    (calibrate(output=""), ["empty"]), (calibrate(profile=sys.argv[1]), ["byte"]),
    (with_options(["redistribute"], {**MOVE, "--shape": None}, input="/nowhere/x.npy", output="/tmp"), ["/nowhere/x.npy"]),
    (with_options(["redistribute"], {**MOVE, "--shape": None}, input="x.npy", output="/dev/null"), ["/dev/null"]),
]


def commands():
    return [name.strip() for name in re.findall(r"^  tessera ((?:\w+ ?)+?)  ", tool.run("--help").stdout, re.M)]


def options(command):
    return sorted(set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", tool.run(*command.split(), "--help").stdout, re.M)))


def prints_help(*words):
    """These words print what the words without -h and help print with --help."""
    done = tool.run(*words)
    named = [word for word in words if word not in ("-h", "help")]
    return (harness.different("exit status", done.returncode, 0) + harness.different("standard error", done.stderr, "") +
            harness.different("standard output", done.stdout, tool.run(*named, "--help").stdout))


# What --help says no default of: options that must be given, or without which something is left out.
WITHOUT_DEFAULT = {"--mesh", "--shape", "--placements", "--from", "--to", "--input", "--input-shards", "--inputs", "--output", "--tokens", "--hidden",
                   "--intermediate", "--begin", "--nodes", "--save", "--svg", "--operand", "--gradient", "--table", "--ids", "--rows", "--op"}


def defaults_are_told(command):
    text = tool.run(*command.split(), "--help").stdout.split("Examples:\n")[0]
    rows = re.findall(r"^ {2,6}(?:-\w, )?(--[a-z-]+)=\S+((?:.*\n(?! {2,6}-))*.*)", text, re.M)
    return [name for name, said in rows if "(default: " not in " ".join(said.split()) and name not in WITHOUT_DEFAULT]


def answer(**changes):
    """The mesh, shape, placements and dtype that `layout` understands, as it prints them."""
    done = tool.run(*layout(**changes))
    return done.stdout.splitlines()[0] if done.returncode == 0 else done.stderr


def spellings():
    rows = [
        ({"mesh": "(2, 4)", "placements": "R,R"}, "4 f32 as R,R on mesh 2x4"), ({"mesh": "2,4", "placements": "R,R"}, "4 f32 as R,R on mesh 2x4"),
        ({"mesh": "[2,]"}, "4 f32 as R on mesh 2"), ({"mesh": " 2 x\t4 ", "placements": "R,R"}, "4 f32 as R,R on mesh 2x4"),
        ({"mesh": "(dp=2, tp=4) @ [7, 6,5,4, 3,2,1,0]", "placements": "R,R"}, "4 f32 as R,R on mesh dp=2,tp=4@[7,6,5,4,3,2,1,0]"),
        ({"mesh": "dp = 2"}, "4 f32 as R on mesh dp=2"), ({"mesh": "2 @ 8"}, "4 f32 as R on mesh 2@8"),
        ({"shape": "64,64"}, "64x64 f32 as R on mesh 2"), ({"shape": "(64, 64)"}, "64x64 f32 as R on mesh 2"),
        ({"shape": "[64, 64]"}, "64x64 f32 as R on mesh 2"), ({"shape": "64 x 64"}, "64x64 f32 as R on mesh 2"),
        ({"shape": "torch.Size([64, 64])"}, "64x64 f32 as R on mesh 2"), ({"shape": "(64,)"}, "64 f32 as R on mesh 2"),
        ({"shape": "()"}, "scalar f32 as R on mesh 2"), ({"shape": "torch.Size([])"}, "scalar f32 as R on mesh 2"),
        ({"placements": "Shard(0)"}, "4 f32 as S(0) on mesh 2"), ({"placements": " S( 0 ; unit = 2 ) "}, "4 f32 as S(0;unit=2) on mesh 2"),
        ({"placements": "[Replicate()]"}, "4 f32 as R on mesh 2"), ({"placements": "(Shard(dim=0),)"}, "4 f32 as S(0) on mesh 2"),
        ({"mesh": "2x2", "placements": "[Shard(0), Replicate()]"}, "4 f32 as S(0),R on mesh 2x2"),
        ({"mesh": "2x2", "placements": "Replicate, Partial"}, "4 f32 as R,P on mesh 2x2"),
        ({"mesh": "2x2", "placements": "Partial('avg'), Partial(reduce_op=\"avg\")"}, "4 f32 as P(avg),P(avg) on mesh 2x2"),
        ({"mesh": "2x2", "placements": "[_StridedShard(dim=0, sf=2), Shard(dim=0)]"}, "4 f32 as S(0;interleave=2),S(0) on mesh 2x2"),
        ({"mesh": "2x2", "placements": "_StridedShard(0, split_factor=2),S(0)"}, "4 f32 as S(0;interleave=2),S(0) on mesh 2x2"),
        ({"placements": "_StridedShard(0,2)"}, "4 f32 as S(0;interleave=2) on mesh 2"),
        ({"mesh": "2x2", "placements": "S(0)[1],S(0)[0]"}, "4 f32 as S(0)[1],S(0)[0] on mesh 2x2"),
        ({"placements": "Partial()"}, "4 f32 as P on mesh 2"), ({"placements": "Partial(sum)"}, "4 f32 as P on mesh 2"),
        ({"placements": "Partial(product)"}, "4 f32 as P(prod) on mesh 2"), ({"placements": "_Partial(max)"}, "4 f32 as P(max) on mesh 2"),
    ]
    names = {"float64": "f64", "double": "f64", "float32": "f32", "float": "f32", "float16": "f16", "half": "f16", "bfloat16": "bf16",
             "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "int64": "i64", "long": "i64", "int32": "i32", "int": "i32", "int16": "i16",
             "short": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool", "complex64": "c64",
             "cfloat": "c64", "complex128": "c128", "cdouble": "c128"}
    for theirs, ours in harness.thinned(names.items(), 4):
        rows += [({"dtype": text}, f"4 {ours} as R on mesh 2") for text in (theirs, "torch." + theirs, f" {ours} ")]
    return [wrong for changes, wanted in rows for wrong in harness.different(str(changes), answer(**changes), wanted)]


def lists_of_spellings():
    """Commas part the shapes and dtypes of a list, unless they are in brackets."""
    lines = tool.run(*bench("plan", mesh="(2, 2)", shape="(8, 8),64 , torch.Size([4])", dtype="float32, torch.half", **{"from": "[Shard(0), R]"}, to="R,R"),
                     "-n", "1", "--json").stdout.splitlines()
    return harness.different("shapes and dtypes", [(row["shape"], row["dtype"], row["from"]) for row in map(json.loads, lines)],
                             [(shape, dtype, "S(0),R") for dtype in ("f32", "f16") for shape in ([8, 8], [64], [4])])


def completions(*words):
    """Returns bash's completions of the last of these words."""
    script = f"""source {completion}
COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=()
_tessera tessera "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return sorted(word.strip() for word in subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split())


def help_of(command):
    done = tool.run(*command.split(), "--help")
    examples = [line for line in done.stdout.split("Examples:\n")[-1].splitlines() if line.startswith("  tessera " + command)]
    return (harness.different("exit status", done.returncode, 0) + harness.different("standard error", done.stderr, "") +
            harness.different("it has examples", bool(examples), True) + harness.different("--help", "--help" in options(command), True))


def manual_knows(command):
    page = (folder / "tessera.1").read_text().replace("\\-", "-")
    wrong = [] if re.search(rf"^\.SS tessera {command}$", page, re.M) else [f"no .SS tessera {command}"]
    section = re.split(rf"^\.SS tessera {command}$", page, flags=re.M)[-1]
    section = re.split(r"^\.S[SH] ", section, flags=re.M)[0]
    return wrong + [name for name in options(command) if name != "--help" and name not in section]


def completion_knows(command):
    return harness.different("options", completions("tessera", *command.split(), "--"), options(command))


def manual_renders():
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", folder / "tessera.1"], capture_output=True, text=True)
    return harness.different("groff", (done.returncode, done.stderr), (0, ""))


def full_device():
    with open("/dev/full", "w") as full:
        done = subprocess.run([tool.path, "info"], stdout=full, stderr=subprocess.PIPE, text=True)
    return harness.different("exit status", done.returncode, 1) + harness.different("sentence", done.stderr.startswith("tessera: "), True)


def unchecked_output():
    """Calls of which a lack of memory, or a full device, is not seen in the end: answers are made and said by what checks."""
    calls = (r"(?<![\w])(?:v?printf|puts|putchar|fwrite|json_dumpf|open_memstream|mkstemp|mktemp|mmap|json_copy|json_deep_copy)\(|"
             r"fputs\(.*stdout|putc\(.*stdout|json_array_append|json_object_set|json_object_update_new")
    checking = {"cli/say.c": r"vprintf|fputs", "cli/report.c": r"json_array_append_new|json_object_set_new",
                "bench/compare/lines.c": r"json_object_set_new"}
    found = []
    for path in sorted(folder.rglob("*.c")):
        name = str(path.relative_to(folder))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.lstrip().startswith("/*") and re.search(calls, line) and not re.search(checking.get(name, "$^"), line):
                found.append(f"{name}:{number}: {line.strip()}")
    return found


for arguments, mentions in USAGE:
    tool.refuses(2, arguments, mentions)
for arguments, mentions in REFUSED:
    tool.refuses(1, arguments, mentions)
tool.case("there are commands", lambda: harness.different("commands", {"info", "layout", "plan", "redistribute", "bench redistribute",
                                                                       "bench dispatch", "bench calibrate", "bench plan"}
                                                          - set(commands()), set()))
tool.case("every answer is made and said by what checks", unchecked_output)
# Texts are the same in every build, and one in four shows sanitizers how they are printed.
for name in harness.thinned(commands(), 4):
    tool.case(f"{name} --help has examples", help_of, name)
    tool.case(f"the manual page knows {name} and all its options", manual_knows, name)
    tool.case(f"completion knows all options of {name}", completion_knows, name)
    tool.case(f"{name} --help tells the default of each option that has one", defaults_are_told, name)
    tool.case(f"{name} -h prints help", prints_help, *name.split(), "-h")
    tool.case(f"help {name} prints help", prints_help, "help", *name.split())
tool.case("bench --help lists the benchmarks", lambda: [n for n in commands() if n.startswith("bench") and n not in tool.run("bench", "--help").stdout])
tool.case("completion offers every command", lambda: harness.different(
    "commands", completions("tessera", ""), sorted({n.split()[0] for n in commands()} | {"help", "--help", "--version"})))
tool.case("completion offers every command to help", lambda: harness.different(
    "commands", completions("tessera", "help", ""), sorted({n.split()[0] for n in commands()})))
for words in (["-h"], ["help"], ["help", "help"], ["help", "-h"], ["bench", "-h"], ["help", "bench"], ["rows", "-h"], ["help", "rows"]):
    tool.case(" ".join(words) + " prints help", prints_help, *words)
tool.case("PyTorch's spellings, and blanks, are understood, and printed in ours", spellings)
tool.case("lists may have PyTorch's spellings", lists_of_spellings)
tool.case("completion offers every benchmark", lambda: harness.different(
    "benchmarks", completions("tessera", "bench", ""), sorted([n.split()[1] for n in commands() if n.startswith("bench ")] + ["--help"])))
tool.case("completion offers what rows can do", lambda: harness.different("rows", completions("tessera", "rows", ""), ["--help", "gather", "update"]))
tool.case("completion offers dtypes", lambda: harness.different("f1..", completions("tessera", "layout", "--dtype", "f1"), ["f16"]))
tool.case("completion offers dtypes of weights",
          lambda: harness.different("weights", completions("tessera", "bench", "linear", "--weights", ""), ["bf16", "f16", "f32"]))
tool.case("completion offers objectives", lambda: harness.different("objectives", completions("tessera", "plan", "--objective", ""), ["bytes", "time"]))
tool.case("completion offers modes", lambda: harness.different("modes", completions("tessera", "redistribute", "--mode", ""), ["direct", "message"]))
try:
    subprocess.run(["groff", "--version"], capture_output=True, check=True)
    tool.case("the manual page is rendered without a warning", manual_renders)
except (OSError, subprocess.CalledProcessError):
    tool.report.skip("the manual page is rendered without a warning", "there is no groff")
tool.case("standard output that is full is a failure", full_device)
tool.case("an option may be given as --name=value", lambda: harness.different("shape", tool.json(
    "layout", "--mesh=2", "--shape=4", "--placements=S(0)")["shape"], [4]))
tool.report.finish()
