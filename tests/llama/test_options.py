"""The command line: what it takes, what it refuses, what it prints."""
import json
import os
import subprocess

from harness import PROGRAM, SHAKESPEARE, answer, case, expect, read_npy, refused, run, run_cases

USAGE = {
    "nothing at all": (),
    "two directories": (SHAKESPEARE, SHAKESPEARE),
    "a directory and --random": (SHAKESPEARE, "--random", SHAKESPEARE / "config.json"),
    "an unknown option": (SHAKESPEARE, "--rank", "x", "--wrong"),
    "a short option that is not known": (SHAKESPEARE, "-x"),
    "an option without its value": (SHAKESPEARE, "--tokens"),
    "a value where none belongs": (SHAKESPEARE, "--json=yes"),
    "no ranks": (SHAKESPEARE, "--ranks", "0"),
    "ranks that are no number": (SHAKESPEARE, "--ranks", "two"),
    "negative ranks": (SHAKESPEARE, "--ranks", "-2"),
    "too many ranks": (SHAKESPEARE, "--ranks", "99999999999999999999"),
    "tokens that are no number": (SHAKESPEARE, "--tokens", "1.5"),
    "negative tokens": (SHAKESPEARE, "--tokens", "-1"),
    "a negative temperature": (SHAKESPEARE, "--temperature", "-0.5"),
    "a temperature that is no number": (SHAKESPEARE, "--temperature", "nan"),
    "a seed that is no number": (SHAKESPEARE, "--seed", "x"),
    "a seed beyond 64 bits": (SHAKESPEARE, "--seed", "18446744073709551616"),
    "an unknown engine": (SHAKESPEARE, "--engine", "smoke"),
    "weights that are kept as nothing known": (SHAKESPEARE, "--weights", "q3"),
    "two prompts": (SHAKESPEARE, "--prompt", "O", "--prompt-ids", "1"),
    "a prompt that is no list": (SHAKESPEARE, "--prompt-ids", "1,,2"),
    "an empty list": (SHAKESPEARE, "--prompt-ids", ""),
}
for sentence, arguments in USAGE.items():
    @case(f"{sentence}: exit 2 and one line")
    def usage(directory, arguments=arguments):
        refused(2, *arguments)


REFUSED = {
    "ranks that nobody launched": ((SHAKESPEARE, "--engine", "mpi", "--ranks", "2"), ""),
    "an empty prompt": ((SHAKESPEARE, "--prompt", ""), "empty"),
    "a token outside the vocabulary": ((SHAKESPEARE, "--prompt-ids", "1,256"), "256"),
    "more tokens than positions": ((SHAKESPEARE, "--prompt", "ROMEO:\n", "--tokens", "506"), "505"),
    "a prompt longer than all positions": ((SHAKESPEARE, "--prompt", "x" * 513), "512"),
    "a place for logits that is none": ((SHAKESPEARE, "--prompt", "O", "--tokens", "3", "--logits", "/nonexistent/l.npy"), "/nonexistent"),
}
for sentence, (arguments, says) in REFUSED.items():
    @case(f"{sentence}: exit 1 and one line")
    def refuse(directory, arguments=arguments, says=says):
        refused(1, *arguments, says=says)


@case("text for a model whose tokens are not bytes: exit 1, and the sentence names --prompt-ids")
def no_text(directory):
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads((SHAKESPEARE / "config.json").read_text()), "vocab_size": 300}))
    refused(1, "--random", path, "--prompt", "O", says="--prompt-ids")
    got = answer("--random", path, "--tokens", 3)
    expect(got["prompt_ids"] == [0] and len(got["ids"]) == 3 and got["text"] is None, got)
    done = run("--random", path, "--tokens", 3)
    expect(done.stdout.decode().split() == [str(token) for token in got["ids"]], done.stdout)


@case("no tokens asked for: the prompt is run, its logits are written, nothing is generated")
def no_tokens(directory):
    got = answer(SHAKESPEARE, "--ranks", 2, "--prompt", "ROMEO", "--tokens", 0, "--logits", directory / "l.npy")
    expect(got["ids"] == [] and got["text"] == "" and got["tokens_per_second"]["decode"] == 0, got)
    expect(got["tokens_per_second"]["prompt"] > 0 and read_npy(directory / "l.npy")[0] == (5, 256), got)
    done = run(SHAKESPEARE, "--prompt", "ROMEO", "--tokens", 0)
    expect(done.returncode == 0 and done.stdout == b"", done)


@case("the last position can be used: prompt and tokens together as many as max_position_embeddings")
def full(directory):
    got = answer(SHAKESPEARE, "--ranks", 3, "--prompt", "ROMEO:\n", "--tokens", 505)
    expect(len(got["ids"]) == 505, len(got["ids"]))
    got = answer(SHAKESPEARE, "--prompt", "x" * 512)
    expect(got["ids"] == [], got["ids"])


@case("without a prompt, text begins with a line feed, and bos_token_id comes first")
def default_prompt(directory):
    expect(answer(SHAKESPEARE, "--tokens", 1)["prompt_ids"] == [10], "no line feed")
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads((SHAKESPEARE / "config.json").read_text()), "bos_token_id": 7}))
    expect(answer("--random", path, "--tokens", 1)["prompt_ids"] == [7], "no begin token")


@case("the JSON object has every field, of its type")
def fields(directory):
    got = answer(SHAKESPEARE, "--ranks", 2, "--prompt", "R", "--tokens", 5)
    expect(got["ranks"] == 2 and got["prompt_ids"] == [82] and len(got["ids"]) == 5 and isinstance(got["text"], str), got)
    expect(set(got["seconds"]) == {"load", "prompt", "decode"} and all(value > 0 for value in got["seconds"].values()), got)
    expect(set(got["tokens_per_second"]) == {"prompt", "decode"} and isinstance(got["bytes_received_per_token"], int), got)


@case("bytes that are no UTF-8 make a valid JSON text")
def bytes_as_text(directory):
    got = answer("--random", SHAKESPEARE / "config.json", "--seed", 5, "--temperature", 50, "--tokens", 300)
    expect(any(token > 127 for token in got["ids"]), got["ids"])
    expect(got["text"] == bytes(got["ids"]).decode("utf-8", "replace"), got["text"])


@case("--help and --version print to standard output, whatever else is given")
def help_text(directory):
    done = run("--help", "--ranks", "2")
    expect(done.returncode == 0 and done.stderr == b"", done)
    for option in ("--ranks", "--engine", "--prompt", "--prompt-ids", "--tokens", "--temperature", "--seed", "--random", "--weights", "--logits", "--json"):
        expect(option.encode() in done.stdout, "no", option)
    expect(run("-h").stdout == done.stdout and run("-h").returncode == 0, "-h prints something else")
    expect(run("--version").stdout.startswith(b"tessera-llama "), "no version")


@case("a misspelled option is refused with the one that it probably is")
def misspelled(directory):
    refused(2, SHAKESPEARE, "--promt", "O", says="--promt is not an option (did you mean '--prompt'?)")
    refused(2, SHAKESPEARE, "--Tokens=3", says="(did you mean '--tokens'?)")
    refused(2, SHAKESPEARE, "--json=yes", says="--json takes no value")


@case("standard output that is full is an error")
def full_output(directory):
    if not os.path.exists("/dev/full"):
        return
    with open("/dev/full", "wb") as full_device:
        done = subprocess.run([PROGRAM, str(SHAKESPEARE), "--prompt", "O", "--tokens", "3"], stdout=full_device, stderr=subprocess.PIPE, timeout=60)
    expect(done.returncode == 1 and b"standard output" in done.stderr, done)


run_cases()
