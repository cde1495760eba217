#!/usr/bin/env python3
"""Hostile checkpoints for the example that runs a Llama: usage models.py TESSERA_LLAMA MODEL_DIR [--seed N --first N --count N --seconds N]"""
import json
import pathlib
import resource
import struct
import subprocess
import tempfile

import commands
import mutate
from drill import Drill

MEMORY = 4 << 30
DTYPES = ("F32", "BF16", "F16", "F64", "I64", "U8", "BOOL", "F8_E4M3", "F3", "", "\0")


def pack(header, data, length=None):
    return struct.pack("<Q", len(header) if length is None else length & (1 << 64) - 1) + header + data


def spoil_entry(draws, header):
    """The header with one tensor told otherwise."""
    name = draws.choice([name for name in header if name != "__metadata__"])
    entry = header[name]
    kind = draws.randrange(6)
    if kind == 0:
        entry["dtype"] = draws.choice(DTYPES)
    elif kind == 1:
        entry["shape"] = [mutate.number(draws) for _ in range(draws.randrange(10))]
    elif kind == 2:
        entry["data_offsets"] = [mutate.number(draws), mutate.number(draws)]
    elif kind == 3:
        entry["data_offsets"] = header[draws.choice([other for other in header if other != "__metadata__"])]["data_offsets"]
    elif kind == 4:
        header[draws.choice(("x" * 70000, "", "\u0000", "a\nb", "__metadata__"))] = header.pop(name)
    else:
        header[name] = draws.choice((None, 1, [], "x", {}))
    return json.dumps(header).encode()


def spoil_weights(draws, whole):
    length, = struct.unpack_from("<Q", whole)
    header, data = whole[8:8 + length], whole[8 + length:]
    kind = draws.randrange(6)
    if kind == 0:
        return mutate.damage(draws, whole)
    if kind == 1:
        return pack(mutate.damage(draws, header), data)
    if kind == 2:
        return pack(mutate.replace_number(draws, header), data)
    if kind == 3:
        return pack(header, data, mutate.number(draws))
    if kind == 4:
        return pack(draws.choice((b"[" * 100000, b'{"a":' * 50000, b"{" * 100000, b"", b"null", b'{"\xff": 1}')), data)
    return pack(spoil_entry(draws, json.loads(header)), data)


def spoil_config(draws, whole):
    if draws.random() < 0.2:
        return draws.choice((mutate.damage(draws, whole), b"[" * 100000, b'{"a":' * 50000, b""))
    if draws.random() < 0.4:
        return mutate.replace_number(draws, whole)
    config = json.loads(whole)
    name = draws.choice(sorted(config))
    config[name] = draws.choice((None, [], {}, "x", True, 1.5, -1, 0, mutate.number(draws), [mutate.number(draws)] * 3))
    return json.dumps(config).encode()


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main():
    drill = Drill("models", "a checkpoint that is damaged or lies is refused with a line and status 1 or 2, or runs: no crash, bounded time and memory", 700,
                  "llama", "model")
    llama, model = str(pathlib.Path(drill.options.llama).resolve()), pathlib.Path(drill.options.model).resolve()
    config, weights = (model / "config.json").read_bytes(), (model / "model.safetensors").read_bytes()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for _ in drill.cases():
            draws = drill.draws()
            of_weights = draws.random() < 0.6
            (directory / "model.safetensors").write_bytes(spoil_weights(draws, weights) if of_weights else weights)
            (directory / "config.json").write_bytes(config if of_weights else spoil_config(draws, config))
            words = [llama, directory, "--ranks", str(draws.randint(1, 3)), "--prompt", "O", "--tokens", "2"]
            try:
                done = subprocess.run(words, capture_output=True, timeout=commands.SECONDS, check=False, preexec_fn=limit_memory)
            except subprocess.TimeoutExpired:
                drill.fail("it hangs")
                continue
            problem = done.returncode and commands.told_in_a_line(done, 1, 2)
            if problem:
                drill.fail(f"{'weights' if of_weights else 'config.json'}: {problem}")
    drill.end()


main()
