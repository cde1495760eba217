#!/usr/bin/env python3
"""Which files may include which headers: usage includes.py SOURCE_ROOT"""
import pathlib
import re
import sys

import tap
import tree

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
ORDER = ["base", "mesh", "placement", "sharding", "device", "comm", "redistribute", "tensor", "ops", "bench", "files", "hosts"]
# Libraries on top, which include only what an embedder can: headers of include/, and their own.
ON_TOP = ("ops", "bench", "files", "hosts")
# Rooms (subfolders) of a folder: each may include itself and the rooms listed after it; ".": files
# outside of rooms.
ROOMS = {
    "src/comm": {"core": [], "collectives": ["core"], "groups": ["core", "collectives"], "meshes": ["core", "collectives", "groups"],
                 "engines": ["core"], "run": []},
    "src/comm/engines": {"mpi": [], "nccl": [], "threads": []},
    "src/comm/engines/mpi": {"calls": [], "node": ["calls"], ".": ["calls", "node"]},
    "src/ops": {"blas": [], "vectors": [], ".": ["blas", "rules", "vectors"], "rules": [], "kernels": [".", "blas", "vectors"], "rows": ["rules", "kernels"], "eager": ["rows", "rules", "kernels"],
                "programs": [".", "eager", "rows", "rules", "kernels"], "models": ["programs"], "optimizers": ["programs"], "replicas": ["programs", "kernels", "."]},
    "src/ops/programs": {".": [], "compiled": [".", "told"], "prepared": ["."], "recorded": ["."], "saved": [".", "recorded"], "told": ["."], "typed": [".", "recorded"]},
    "src/ops/eager": {".": [], "typed": ["."]},
    "src/ops/rules": {".": [], "shardy": ["."]},
    "src/ops/rows": {".": [], "groups": ["."]},
    "src/sharding": {"text": [], "form": ["text"], "formats": ["text", "form"], ".": ["text", "form", "formats"]},
    "src/files": {".": [], "programs": ["."]},
    "src/redistribute": {"match": [], "schedule": ["match"], "execute": ["match", "schedule"], "explain": ["match", "schedule"],
                         "relabel": ["match", "schedule"], "saved": ["match", "schedule"]},
}
# Rooms of the tool: each may include itself, headers at the top, and the rooms before it.
TOOL_ROOMS = ["cli", "files", "shards", "place", "draw", "plan", "layout", "convert", "redistribute", "rows", "info", "bench/run", "bench/check", "bench/moves",
              "bench/linear", "bench/kernels", "bench/calibrate", "bench/compare", "bench/plan", "bench/ops", "bench/program", "bench/rows", "bench/checkpoint", "bench/dlpack", "bench/suite", "simulate", "ops", "program"]
# Headers that the model in oracle/, with which the engine is compared, may include.
PLAIN = ("tessera/placement.h", "tessera/dtype.h")
MOST_FILES = 34
CODE = (".c", ".h", ".cc", ".hpp", ".cu", ".cuh")
VENDOR = re.compile(r"^(cuda|cublas|nccl|mpi)[\w.]*\.h$")
# Files that may include vendors' headers: bench/, which calls peers as their users do; engines and
# devices; and tests that make streams, graphs and processes.
VENDOR_HOME = ("bench/", "src/device/cuda", "src/comm/engines/nccl", "src/comm/engines/mpi", "include/tessera/mpi.h", "include/tessera/cuda.h", "tests/device",
               "tests/graphs", "tests/mpi")
BLAS = re.compile(r"^(f77blas|cblas|openblas_config)\.h$")


def includes(path):
    return INCLUDE.findall(path.read_text(errors="replace"))


def downward(root, path):
    """Includes of src/ that name a folder below the file's own."""
    folder = path.relative_to(root).parts[1]
    for quote, name in includes(path):
        target = name.split("/")[0]
        if quote == '"' and target in ORDER and (folder in ON_TOP and target != folder or ORDER.index(target) > ORDER.index(folder)):
            yield f"{path.relative_to(root)}: {name}"


def room_of(names):
    return names[0] if len(names) > 1 else "."


def beyond_rooms(root, top, rooms):
    """Includes by a room of `top` of another room that it must not include."""
    prefix = top.removeprefix("src/") + "/"
    for path in sorted((root / top).rglob("*.[ch]")):
        room = room_of(path.relative_to(root / top).parts)
        if room not in rooms:
            yield f"{path.relative_to(root)}: it lies in no room of {top}"
            continue
        for quote, name in includes(path):
            target = room_of(name[len(prefix):].split("/"))
            if quote == '"' and name.startswith(prefix) and target != room and target not in rooms[room]:
                yield f"{path.relative_to(root)}: {name}"


def beyond_tool_rooms(root):
    for path in sorted((root / "tools").rglob("*.[ch]")):
        room = str(path.relative_to(root / "tools").parent)
        if room == ".":
            continue
        if room not in TOOL_ROOMS:
            yield f"{path.relative_to(root)}: it lies in no room of tools"
            continue
        for quote, name in includes(path):
            target = str(pathlib.PurePosixPath(name).parent)
            if quote == '"' and target != "." and (target not in TOOL_ROOMS or TOOL_ROOMS.index(target) > TOOL_ROOMS.index(room)):
                yield f"{path.relative_to(root)}: {name}"


def crowded(root, sources):
    """Folders with more than MOST_FILES code files."""
    counts = {}
    for path in sources:
        counts[path.parent] = counts.get(path.parent, 0) + 1
    return (f"{folder.relative_to(root)}: {count}" for folder, count in sorted(counts.items()) if count > MOST_FILES)


def into_src(root, path):
    """Quoted includes, by a file outside src/, of headers that only src/ has. Only the folder of
    tests with the name of a folder of src/ may include its private headers."""
    own = path.relative_to(root).parts[:1] == ("tests",) and path.parent.name
    for quote, name in includes(path):
        if quote == '"' and not (path.parent / name).exists() and (root / "src" / name).exists() and name.split("/")[0] != own:
            yield f"{path.relative_to(root)}: {name}"
        if "src/" in name or name.startswith("../src"):
            yield f"{path.relative_to(root)}: {name}"


def main(root):
    root = pathlib.Path(root)
    sources = tree.files(root, *CODE)
    report = tap.Report()
    for folder in ORDER:
        inside = [path for path in sources if path.relative_to(root).parts[:2] == ("src", folder)]
        report.check(f"src/{folder} includes only folders above it", (line for path in inside for line in downward(root, path)))
    for top, rooms in ROOMS.items():
        report.check(f"the rooms of {top} include one way", beyond_rooms(root, top, rooms))
    report.check("the rooms of tools include one way", beyond_tool_rooms(root))
    report.check(f"no folder of src or tools has more than {MOST_FILES} code files",
                 crowded(root, [path for path in tree.files(root, *CODE) if path.relative_to(root).parts[0] in ("src", "tools")]))
    for folder in ("include", "oracle", "tools", "bench", "examples", "tests"):
        inside = [path for path in sources if path.relative_to(root).parts[0] == folder]
        report.check(f"{folder}/ includes nothing of src/" + (" but a folder's own tests" if folder == "tests" else ""), (line for path in inside for line in into_src(root, path)))
    model = [path for path in sources if path.relative_to(root).parts[0] == "oracle"]
    report.check("of the library, oracle/ knows plain types alone",
                 (f"{path.relative_to(root)}: {name}" for path in model for _, name in includes(path)
                  if name.startswith("tessera/") and name not in PLAIN))
    ours = {path.name for path in sources}
    outside = [path for path in sources if not str(path.relative_to(root)).startswith(VENDOR_HOME)]
    report.check("vendors' headers stay in the folders of their engines",
                 (f"{path.relative_to(root)}: {name}" for path in outside for quote, name in includes(path)
                  if VENDOR.match(name) and not (quote == '"' and name in ours)))
    json = [path for path in sources if path.relative_to(root).parts[0] in ("include", "src") and path.relative_to(root).parts[:2] != ("src", "files")]
    report.check("of the libraries, src/files alone knows JSON",
                 (f"{path.relative_to(root)}: {name}" for path in json for _, name in includes(path) if name == "jansson.h"))
    library = [path for path in sources if path.relative_to(root).parts[0] in ("include", "src") and "ops" not in path.parts]
    report.check("of the library, src/ops alone knows BLAS",
                 (f"{path.relative_to(root)}: {name}" for path in library for _, name in includes(path) if BLAS.match(name)))
    public = [path for path in tree.headers(root) if "sys" not in path.parts]
    report.check("users' headers do not include those for back-end writers",
                 (f"{path.name}: {name}" for path in public for _, name in includes(path) if name.startswith("tessera/sys/")))
    report.finish()


main(*sys.argv[1:])
