"""Checkpoints that are truncated, lie or attack: a sentence, exit 1, nothing written."""
import json
import os
import resource
import shutil
import struct

from harness import SANITIZED, SHAKESPEARE, Skip, case, refused, run_cases, write_safetensors


def split(path):
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + length]), data[8 + length:]


def join(path, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def copy(directory):
    """The real checkpoint, to be spoiled."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(SHAKESPEARE / name, directory / name)
    return directory / "model.safetensors"


def expect_refused(directory, *says):
    for ranks in (1, 3):
        refused(1, directory, "--ranks", ranks, "--prompt", "O", "--tokens", 2, "--logits", directory / "logits.npy", says=says)
    assert not (directory / "logits.npy").exists()


def change_config(directory, **changes):
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def spoil(change):
    """A case's body: the real header after `change`, with the real data."""
    def body(directory, *says):
        path = copy(directory)
        header, data = split(path)
        data = change(header, data) or data
        join(path, header, data)
        expect_refused(directory, *says)
    return body


NORM = "model.norm.weight"
EMBEDDING = "model.embed_tokens.weight"


def set_entry(**fields):
    return spoil(lambda header, data: header[NORM].update(fields))


SPOILED = {
    "data cut short": (spoil(lambda header, data: data[:-1]), "safetensors"),
    "bytes after the data": (spoil(lambda header, data: data + b"x"), "last 1 bytes"),
    "a tensor that is missing": (spoil(lambda header, data: header.update({"other": header.pop(NORM)})), NORM),
    "a shape that lies": (set_entry(shape=[193]), NORM),
    "a negative size": (set_entry(shape=[-192]), NORM),
    "a shape that overflows": (set_entry(shape=[1 << 62, 1 << 62]), NORM),
    "nine dims": (set_entry(shape=[192] + [1] * 8), NORM),
    "an unknown dtype": (set_entry(dtype="F3"), "F3"),
    "a dtype of another size": (set_entry(dtype="F32"), NORM),
    "integers for weights": (set_entry(dtype="I16"), "i16"),
    "offsets beyond the file": (set_entry(data_offsets=[1 << 40, (1 << 40) + 384]), NORM),
    "offsets that are no numbers": (set_entry(data_offsets=["0", "384"]), NORM),
    "an entry that is no object": (spoil(lambda header, data: header.update({NORM: 1})), NORM),
    "overlapping tensors": (spoil(lambda header, data: header[NORM].update(data_offsets=[0, 384])), "overlap"),
    "another shape than config.json's": (spoil(lambda header, data: header[EMBEDDING].update(shape=[192, 256])), "192x256", "256x192"),
    "other dims than config.json's": (spoil(lambda header, data: header[NORM].update(shape=[1, 192])), "1x192"),
}
for sentence, (body, *says) in SPOILED.items():
    @case(f"{sentence}: refused with a sentence")
    def spoiled(directory, body=body, says=says):
        body(directory, *says)


@case("an empty file, one byte, a header longer than the file, a huge header: refused with a sentence")
def prefixes(directory):
    path = copy(directory)
    for data in (b"", b"\1", b"\0" * 8, struct.pack("<Q", 1 << 63), struct.pack("<Q", 100) + b"{}", struct.pack("<Q", (1 << 64) - 8) + b"{}"):
        path.write_bytes(data)
        expect_refused(directory, "model.safetensors")


@case("a header that repeats a key, is no JSON or no object: refused with a sentence")
def headers(directory):
    path = copy(directory)
    entry = b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
    for header in (b"{" + entry + b"," + entry + b"}", b"{", b"[]", b'{"a": NaN}', b"[" * 100000, b'{"\xff": 1}'):
        join(path, header, b"x")
        expect_refused(directory, "header")


@case("a tensor's name with control characters cannot break the one line of the error")
def control(directory):
    join(copy(directory), {"a\nb\u001b[2J": {"dtype": "F33", "shape": [1], "data_offsets": [0, 1]}}, b"x")
    expect_refused(directory, "a?b?[2J")


@case("a directory without weights, a missing directory, directories for files: refused with a sentence")
def nothing(directory):
    path = copy(directory)
    path.unlink()
    expect_refused(directory, "model.safetensors")
    path.mkdir()
    expect_refused(directory, "model.safetensors")
    refused(1, directory / "none", "--prompt", "O", says="none/config.json")
    os.mkfifo(directory / "fifo")
    refused(1, "--random", directory / "fifo", says="fifo")


@case("an index that leads out of the directory, names missing files or tensors, or is no index: refused with a sentence")
def indices(directory):
    copy(directory).rename(directory / "a.safetensors")
    index = directory / "model.safetensors.index.json"
    names = [name for name in split(directory / "a.safetensors")[0] if name != "__metadata__"]
    for text, says in (('{"weight_map": {"x": "../a.safetensors"}}', "../a.safetensors"), ('{"weight_map": {"x": "/etc/passwd"}}', "/etc/passwd"),
                       ('{"weight_map": {"x": "b.safetensors"}}', "b.safetensors"), ('{"weight_map": {"x": 1}}', "x"), ("{}", "weight_map"),
                       ('{"weight_map": {"x": "a.safetensors"}}', "tensor x"), ("{", "index.json"),
                       (json.dumps({"weight_map": {name: "a.safetensors" for name in names if name != NORM}}), NORM)):
        index.write_text(text)
        expect_refused(directory, says)


@case("configurations that are not a Llama's, or do not fit the weights: refused with a sentence")
def configurations(directory):
    for changes, says in (({"model_type": "gpt2"}, "gpt2"), ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
                          ({"rope_parameters": {"rope_type": "yarn", "factor": 2}}, "yarn"), ({"hidden_act": "gelu"}, "gelu"),
                          ({"num_hidden_layers": 5}, "model.layers.4."), ({"vocab_size": 257}, EMBEDDING),
                          ({"tie_word_embeddings": False}, "lm_head.weight"), ({"attention_bias": True}, "q_proj.bias"),
                          ({"mlp_bias": True}, "gate_proj.bias"), ({"num_attention_heads": 0}, "num_attention_heads"),
                          ({"head_dim": 31}, "head_dim"), ({"hidden_size": 1 << 60}, "hidden_size"), ({"hidden_size": "192"}, "hidden_size")):
        copy(directory)
        change_config(directory, **changes)
        refused(1, directory, "--ranks", 2, "--prompt-ids", "1", "--tokens", 2, says=says)
    (directory / "config.json").write_text("{" * 100000)
    expect_refused(directory, "config.json")


@case("a model too large for memory is refused with a sentence, on every number of ranks")
def too_large(directory):
    if SANITIZED:
        raise Skip("sanitizers end the program where memory is short")
    path = directory / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "vocab_size": 1 << 30, "hidden_size": 1 << 20, "intermediate_size": 1 << 20,
                                "num_hidden_layers": 1, "num_attention_heads": 1 << 10, "max_position_embeddings": 64}))
    for ranks in (1, 4):
        refused(1, "--random", path, "--ranks", ranks, "--prompt-ids", "1", "--tokens", 1, says="tessera: ")


@case("an empty checkpoint file names the first tensor that is missing")
def empty(directory):
    copy(directory)
    write_safetensors(directory / "model.safetensors", {})
    expect_refused(directory, EMBEDDING)


@case("logits that outgrow the limit of a file are an error like any other, and nothing is left of them")
def file_limit(directory):
    path = directory / "logits.npy"
    refused(1, SHAKESPEARE, "--prompt", "ROMEO:", "--tokens", 0, "--json", "--logits", path, says="logits.npy",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    assert not path.exists()


run_cases()
