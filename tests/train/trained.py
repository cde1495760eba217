"""What the tests of tessera-train share, beside the harness of tessera-llama."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "llama"))
import harness  # noqa: E402
import made  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "training"
TINY = {"model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2,
        "max_position_embeddings": 32}
TEXT = b"All the world's a stage, and all the men and women merely players. " * 4


def steps(*arguments):
    """The JSON objects of a run that must succeed."""
    done = harness.run(*arguments, "--json")
    harness.expect(done.returncode == 0, arguments, "exits", done.returncode, done.stderr.decode(errors="replace"))
    return [json.loads(line) for line in done.stdout.splitlines()]


def losses(*arguments):
    return [step["loss"] for step in steps(*arguments)]


def write_tiny(directory, **changes):
    """A config.json and a text, as the first options of a run."""
    (directory / "config.json").write_text(json.dumps({**TINY, **changes}))
    (directory / "text.txt").write_bytes(TEXT)
    return [directory / "config.json", "--data", directory / "text.txt", "--batch", 3, "--length", 8]


def header(path):
    """What a safetensors file says of its tensors."""
    data = path.read_bytes()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])


def write_numbers(path, values, kind="i8"):
    """A .npy of one dim."""
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({len(values)},), }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    data = struct.pack(f"<{len(values)}{ {'i8': 'q', 'i4': 'i', 'f4': 'f'}[kind]}", *values)
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def write_golden(directory, model):
    """A checkpoint of made weights with its tokens, as the first options of a run, and what is expected."""
    expected = json.loads((GOLDEN / model / "expected.json").read_text())
    config = json.loads((GOLDEN / model / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config))
    harness.write_safetensors(directory / "model.safetensors", made.tensors(expected, "single", "F32"))
    tokens = made.tokens(expected["tokens"], config["vocab_size"])
    data = directory / "tokens"
    if config["vocab_size"] == 256:
        data.write_bytes(bytes(tokens))
    else:
        write_numbers(data, tokens)
    return [directory, "--data", data, "--batch", expected["batch"], "--length", expected["length"]], expected
