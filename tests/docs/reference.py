#!/usr/bin/env python3
"""doxygen makes a page of every public header, prints no warning, and finds a text for every declaration. TAP.

usage: reference.py SOURCE_ROOT [DOXYGEN]
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402
import tree  # noqa: E402


def generate(source, doxygen, directory):
    """What doxygen prints, and the pages as XML."""
    options = (source / "Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {directory}\nGENERATE_XML = YES\n"
    done = subprocess.run([doxygen, "-"], cwd=source, input=options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = done.stdout.split("\n")[:-1] + ([f"exit {done.returncode}"] if done.returncode else [])
    pages = [xml.etree.ElementTree.parse(path).find("compounddef") for path in pathlib.Path(directory, "xml").glob("*.xml")
             if re.search(r"_8h|^struct", path.name)]
    return said, pages


def has_text(element, *kinds):
    return any("".join(element.find(kind).itertext()).strip() for kind in kinds)


def mute(page):
    """What a page declares without a text. Members of structs are left out, because one text often is of several."""
    if page.get("kind") == "struct" and not has_text(page, "briefdescription", "detaileddescription"):
        yield page.findtext("compoundname")
    for member in page.iter("memberdef"):
        # A typedef of a struct of its own name shows that struct's text.
        of_struct = re.match(r"struct .*", "".join(member.find("type").itertext())) if member.get("kind") == "typedef" else None
        if member.get("kind") != "variable" and not of_struct and not has_text(member, "briefdescription", "detaileddescription"):
            yield member.findtext("name")


def unlisted(source):
    """Public headers that the main page leaves out."""
    listed = re.findall(r"\]\(\.\./include/([^)]*)\)", (source / "docs/reference.md").read_text())
    cpp = [str(header.relative_to(source / "include")) for header in (source / "include").rglob("*.hpp")]
    return [header for header in names(source) + cpp if header not in listed]


def names(source):
    return [str(header.relative_to(source / "include")) for header in tree.headers(source)]


def main(source, doxygen=None):
    source = pathlib.Path(source)
    report = tap.Report()
    report.check("docs/reference.md lists every public header", unlisted(source))
    if not doxygen:
        report.skip("doxygen makes the API reference", "there is no doxygen")
        report.finish()
    with tempfile.TemporaryDirectory() as directory:
        said, pages = generate(source, doxygen, directory)
    report.check("doxygen says nothing", said)
    found = [page.find("location").get("file") for page in pages if page.get("kind") == "file" and has_text(page, "briefdescription")]
    report.check("every public header has a page that begins with what it is for", (name for name in names(source) if name not in found))
    report.check("all that public headers declare has a text", (name for page in pages for name in mute(page)))
    report.finish()


main(*sys.argv[1:])
