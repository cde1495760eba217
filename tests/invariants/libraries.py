#!/usr/bin/env python3
"""What shared libraries export and need, and how programs are linked: usage libraries.py
SOURCE_ROOT LIBRARY.so.. [-- PROGRAM..]"""
import re
import sys

import tap
import tree

# Contents of sections that come from the C runtime.
RUNTIME_OBJECTS = re.compile(r"^(completed\.\d+|__dso_handle|__TMC_END__|__frame_dummy_init_array_entry|"
                             r"DW\.ref\.__gcc_personality_v0|__do_global_dtors_aux_fini_array_entry|_DYNAMIC|_GLOBAL_OFFSET_TABLE_|__FRAME_END__)$")
SYSTEM = re.compile(r"^(libc|libm|libpthread|libgcc_s)\.so|^ld-linux")

# Mutable state that the design allows: the thread's last error, and a guard of OpenBLAS' thread
# count; XLA's ids of types; ggml's registry.
STATE = {"libtessera-core": {".tbss": 1}, "libtessera": {".bss": 1, ".data": 1}, "libtessera-bench": {}, "libtessera-files": {}, "libtessera-programs": {}, "libtessera-cuda": {}, "libtessera-mpi": {},
         "libggml-tessera": {".bss": 2}, "libtessera-xla": {".bss": 2}, "libtessera-tvm": {".bss": 3}}
# Functions by which hosts that load a library begin. It exports nothing else. ggml keeps pointers to what the library lists; Disco's
# workers are known by their threads.
ENTRIES = {"libggml-tessera": {"ggml_backend_init"},
           "libtessera-tvm": {"__tvm_ffi_" + name for name in (
               "version", "layout", "print_layout", "local_shape", "local_offset", "plan", "save_plan", "load_plan", "plan_bytes", "plan_messages",
               "plan_workspace", "describe_plan", "ranks", "move", "load_move", "run", "run_rank", "bind", "redistribute", "register_ccl")}}

# Headers of libraries that a build may lack.
ENGINES = {"new_file.h": "libtessera-files", "npy.h": "libtessera-files", "safetensors.h": "libtessera-files", "program_json.h": "libtessera-programs", "cuda.h": "libtessera-cuda", "nccl.h": "libtessera-cuda", "mpi.h": "libtessera-mpi", "xla.h": "libtessera-xla"}
NEEDED = {"libtessera-core": "", "libtessera": r"|^libtessera-core\.so|^libopenblas",
          "libtessera-bench": r"|^libtessera-core\.so",
          "libtessera-files": r"|^libtessera-core\.so|^libjansson\.so",
          "libtessera-programs": r"|^libtessera\.so|^libtessera-core\.so|^libjansson\.so",
          "libtessera-cuda": r"|^libtessera-core\.so|^libcudart\.so|^libcublasLt\.so|^libnccl\.so",
          "libtessera-mpi": r"|^libtessera-core\.so|^libmpi\.so|^libmpich\.so",
          "libggml-tessera": r"|^libtessera-core\.so|^libggml(-base)?\.so",
          "libtessera-tvm": r"|^libtessera-core\.so|^libtvm_ffi\.so",
          "libtessera-xla": r"|^libtessera\.so|^libtessera-core\.so"}


def stem(library):
    return library.rsplit("/", 1)[-1].split(".so")[0]


def family(library):
    """The name of a library without the MPI implementation, of which each has its own library."""
    return re.sub(r"^(libtessera-mpi)-.*", r"\1", stem(library))


def exported(library):
    return {line.split()[-1].split("@")[0] for line in tap.run("nm", "-D", "--defined-only", library).splitlines()}


def declared(root, without=()):
    """The functions of the public headers, but for those of libraries in `without`."""
    names = set()
    for header in tree.headers(root):
        if ENGINES.get(header.name) in without:
            continue
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        names |= set(re.findall(r"^TSR_API[^;(]*?\b(tsr_\w+)\(", text, flags=re.M))
    return names


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", tap.run("readelf", "-dW", library))


def sections(library):
    """{section number: (name, bytes)}."""
    rows = re.findall(r"^ *\[ *(\d+)\] (\S+) +\S+ +\S+ +\S+ +(\S+)", tap.run("readelf", "-SW", library), flags=re.M)
    return {number: (name, int(size, 16)) for number, name, size in rows}


def objects(library):
    """(section, symbol) of every object of the library that is in writable memory after loading."""
    names = sections(library)
    for line in tap.run("readelf", "-sW", library).splitlines():
        columns = line.split()
        if len(columns) == 8 and columns[3] in ("OBJECT", "TLS", "NOTYPE") and columns[6] in names:
            section = names[columns[6]][0]
            if section in (".data", ".bss", ".tbss", ".tdata") and not RUNTIME_OBJECTS.match(columns[7]):
                if columns[3] != "NOTYPE":
                    yield section, columns[7]


def state_beyond_design(library):
    found = sorted(set(objects(library)))
    allowed = STATE[family(library)]
    for section in {section for section, _ in found}:
        here = [name for where, name in found if where == section]
        if len(here) > allowed.get(section, 0):
            yield f"{section} holds {', '.join(here)}; the design allows {allowed.get(section, 0)} object(s) there"


def constructors(library):
    pointer = 8 if "ELF64" in tap.run("readelf", "-h", library) else 4
    return [f"{name} has {size // pointer} entries" for name, size in sections(library).values() if name == ".init_array" and size > pointer]


def uninvited(library):
    """Calls that end the process or write to standard output; the default log may write to standard
    error."""
    calls = {line.split()[-1].split("@")[0] for line in tap.run("nm", "-D", "--undefined-only", library).splitlines()}
    return sorted(calls & {"abort", "exit", "_exit", "_Exit", "quick_exit", "__assert_fail", "printf", "__printf_chk", "puts", "putchar",
                           "perror", "stdout", "system", "signal", "sigaction"})


def bound_late(file):
    """What is missing for full RELRO: binding of symbols at load time, and tables that are
    read-only afterwards."""
    if not re.search(r"\((FLAGS|FLAGS_1)\).*\b(BIND_NOW|NOW)\b", tap.run("readelf", "-dW", file)):
        yield "DT_FLAGS has no BIND_NOW"
    if "GNU_RELRO" not in tap.run("readelf", "-lW", file):
        yield "no segment is GNU_RELRO"


def main(root, *files):
    libraries, programs = (files[:files.index("--")], files[files.index("--") + 1:]) if "--" in files else (files, ())
    report = tap.Report()
    for file in (*libraries, *programs):
        report.check(f"{stem(file)} binds its symbols when it is loaded", bound_late(file))
    everything = set().union(*(exported(library) for library in libraries))
    for library in libraries:
        if stem(library) in ENTRIES:
            report.check(f"{stem(library)} exports what its host begins with, and nothing else", sorted(exported(library) ^ ENTRIES[stem(library)]))
            continue
        report.check(f"{stem(library)} exports tsr_ symbols only", sorted(n for n in exported(library) if not n.startswith("tsr_")))
        report.check(f"{stem(library)} exports nothing that no header declares", sorted(exported(library) - declared(root)))
    for library in libraries:
        report.check(f"{stem(library)} keeps no mutable state but what the design allows", state_beyond_design(library))
        report.check(f"{stem(library)} never ends the process, prints, or catches signals", uninvited(library))
        report.check(f"{stem(library)} has no static constructors", constructors(library))
        others = re.compile(SYSTEM.pattern + NEEDED[family(library)])
        report.check(f"{stem(library)} needs nothing but what the design allows", (n for n in needed(library) if not others.match(n)))
    missing = set(ENGINES.values()) - {family(library) for library in libraries}
    if "libtessera" in map(stem, libraries):
        report.check("every declared function is exported by one of the libraries", sorted(declared(root, missing) - everything))
    report.finish()


main(*sys.argv[1:])
