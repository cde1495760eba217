"""The files of the tree: those that git tracks or, without git, all but build directories."""
import pathlib
import subprocess


def files(root, *suffixes):
    root = pathlib.Path(root)
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
        paths = [root / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in root.rglob("*") if not path.relative_to(root).parts[0].startswith(("build", "."))]
    return sorted(path for path in paths if path.is_file() and (not suffixes or path.suffix in suffixes))


def headers(root):
    return sorted((pathlib.Path(root) / "include").rglob("*.h"))
