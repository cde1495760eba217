#!/usr/bin/env python3
"""One version everywhere: usage versions.py SOURCE_ROOT CORE.so PKGCONFIG_DIRECTORY [TOOL]"""
import ctypes
import pathlib
import re
import sys

import tap


def differs(what, found, version):
    return [] if found == version else [f"{what} says {found}, include/tessera/version.h {version}"]


def pkgconfig_version(path):
    return re.search(r"^Version: (.*)$", path.read_text(), flags=re.M).group(1)


def main(root, core, directory, tool=None):
    header = (pathlib.Path(root) / "include/tessera/version.h").read_text()
    version = ".".join(re.search(rf"TSR_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
    report = tap.Report()

    library = ctypes.CDLL(core)
    library.tsr_version.restype = ctypes.c_char_p
    report.check("tsr_version() is the header's version", differs("the library", library.tsr_version().decode(), version))

    soname = re.search(r"\(SONAME\).*\[(.*)\]", tap.run("readelf", "-dW", core)).group(1)
    report.check("the soname carries the header's major version", differs("the soname", soname.rsplit(".", 1)[-1], version.split(".")[0]))
    for path in sorted(pathlib.Path(directory).glob("tessera*.pc")):
        if not path.stem.endswith("-uninstalled"):
            report.check(f"{path.name} has the header's version", differs(path.name, pkgconfig_version(path), version))
    if tool:
        report.check("tessera --version ends in the header's version", differs("the tool", tap.run(tool, "--version").split()[-1], version))
    news = (pathlib.Path(root) / "NEWS.md").read_text()
    report.check("NEWS.md begins with the header's version", differs("NEWS.md", re.search(r"^## (\S+)", news, flags=re.M).group(1), version))
    report.finish()


main(*sys.argv[1:])
