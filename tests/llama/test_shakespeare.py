"""The real model against what transformers computes in f32 (expected.json, logits.npy)."""
import json
import os

from harness import SHAKESPEARE, answer, case, command, expect, ids_text, largest_difference, read_npy, run, run_cases

EXPECTED = json.loads((SHAKESPEARE / "expected.json").read_text())
# Under sanitizers fewer meshes show the same; ThreadSanitizer has no use for one thread.
RANKS = {"1": (1, 5, 12), "2": (2, 6)}.get(os.environ.get("TSR_TEST_THIN"), (1, 2, 3, 4, 5, 6, 7, 9, 12))


def tensor_bytes():
    data = (SHAKESPEARE / "model.safetensors").read_bytes()
    return len(data) - 8 - int.from_bytes(data[:8], "little")


for ranks in RANKS:
    @case(f"{ranks} ranks: the logits of a prompt agree within 1e-4 of the largest")
    def logits(directory, ranks=ranks):
        answer(SHAKESPEARE, "--ranks", ranks, "--prompt", EXPECTED["logits_of"], "--tokens", 1, "--logits", directory / "l.npy")
        shape, values = read_npy(directory / "l.npy")
        wanted_shape, wanted = read_npy(SHAKESPEARE / "logits.npy")
        expect(shape == wanted_shape, shape, "is not", wanted_shape)
        bound = 1e-4 * max(map(abs, wanted))
        expect(largest_difference(values, wanted) <= bound, largest_difference(values, wanted), "is more than", bound)

    for index, wanted in enumerate(EXPECTED["cases"]):
        @case(f"{ranks} ranks: greedy tokens after {wanted['prompt'][:20]!r} are those of transformers")
        def tokens(directory, ranks=ranks, wanted=wanted):
            arguments = (SHAKESPEARE, "--ranks", ranks, "--prompt", wanted["prompt"], "--tokens", len(wanted["ids"]))
            got = answer(*arguments)
            expect(got["prompt_ids"] == wanted["prompt_ids"], command(arguments), "reads", got["prompt_ids"])
            expect(got["ids"] == wanted["ids"], command(arguments), "gives", got["text"], "not", wanted["text"])
            expect(got["text"] == wanted["text"], command(arguments), "says", got["text"], "not", wanted["text"])

    @case(f"{ranks} ranks: what they read adds up to the file, norms once a rank and k, v once a group")
    def bytes_read(directory, ranks=ranks):
        read = answer(SHAKESPEARE, "--ranks", ranks, "--prompt", "O", "--tokens", 1)["bytes_read"]
        norms, keys = 9 * 192 * 2, 4 * 2 * 96 * 192 * 2
        copies = ranks // 3 if ranks > 3 and ranks % 3 == 0 else 1
        wanted = tensor_bytes() + (ranks - 1) * norms + (copies - 1) * keys
        expect(len(read) == ranks and sum(read) == wanted, read, "sums to", sum(read), "not", wanted)
        expect(ranks == 1 or max(read) < tensor_bytes(), "a rank reads the whole file:", read)


@case("two ranks share the file as their heads do: the rank with two of three key/value heads reads more")
def shares(directory):
    read = answer(SHAKESPEARE, "--ranks", 2, "--prompt", "O", "--tokens", 1)["bytes_read"]
    head = 4 * 2 * (4 * 32 * 192)  # of one key/value head: q and o for two queries, k and v, bf16, 4 layers
    head += 4 * 2 * (2 * 32 * 192)
    expect(read[0] - read[1] == head, read, "differ by", read[0] - read[1], "not", head)


@case("token numbers do what the text does")
def numbers(directory):
    wanted = EXPECTED["cases"][0]
    got = answer(SHAKESPEARE, "--prompt-ids", ids_text(wanted["prompt_ids"]), "--tokens", 20)
    expect(got["ids"] == wanted["ids"][:20], got["ids"])


@case("without --json exactly the text goes to standard output, and the report to standard error")
def plain(directory):
    wanted = EXPECTED["cases"][0]
    done = run(SHAKESPEARE, "--ranks", 2, "--prompt", wanted["prompt"], "--tokens", len(wanted["ids"]))
    expect(done.returncode == 0 and done.stdout == wanted["text"].encode(), done)
    expect(b"tokens/s" in done.stderr and done.stderr.count(b"bytes of the checkpoint") == 2, done.stderr)


@case("what many ranks read is summed up in one line, and one token is one")
def summed(directory):
    done = run(SHAKESPEARE, "--ranks", 9, "--prompt", "a", "--tokens", 2)
    read = json.loads(run(SHAKESPEARE, "--ranks", 9, "--prompt", "a", "--tokens", 2, "--json").stdout)["bytes_read"]
    line = f"\nthe ranks read {sum(read)} bytes of the checkpoint, from {min(read)} to {max(read)} each\n"
    expect(line in done.stderr.decode() and b"prompt: 1 token in" in done.stderr and b"decode: 1 token in" in done.stderr, done.stderr)


@case("one rank receives nothing, and n ranks the 2(n-1) copies a sum needs and n-1 of the logits")
def received(directory):
    for ranks in RANKS:
        got = answer(SHAKESPEARE, "--ranks", ranks, "--prompt", "O", "--tokens", 2)["bytes_received_per_token"]
        sums, logits = (1 + 2 * 4) * 192 * 4, 256 * 4
        wanted = (ranks - 1) * (2 * sums + logits)
        expect(got == wanted, f"{ranks} ranks receive {got} bytes a token, not {wanted}")


@case("--weights: as the checkpoint has them, which is bf16, or f32, with the same tokens and all but the same logits")
def weights(directory):
    wanted, logits = EXPECTED["cases"][0], read_npy(SHAKESPEARE / "logits.npy")[1]
    for given, kept in (((), "bf16"), (("--weights", "checkpoint"), "bf16"), (("--weights", "f32"), "f32"), (("--weights", "bf16"), "bf16")):
        got = answer(SHAKESPEARE, *given, "--ranks", 2, "--prompt", wanted["prompt"], "--tokens", len(wanted["ids"]))
        expect(got["weights"] == kept and got["ids"] == wanted["ids"], given, got["weights"], got["text"])
        answer(SHAKESPEARE, *given, "--prompt", EXPECTED["logits_of"], "--tokens", 1, "--logits", directory / "l.npy")
        difference = largest_difference(read_npy(directory / "l.npy")[1], logits)
        expect(difference <= 1e-4 * max(map(abs, logits)), given, "is off by", difference)


@case("a prompt of few tokens has logits of the same bits, however its weights are kept")
def same_bits(directory):
    for kept in ("f32", "bf16"):
        answer(SHAKESPEARE, "--weights", kept, "--prompt", "ROMEO:", "--tokens", 1, "--logits", directory / f"{kept}.npy")
    expect((directory / "f32.npy").read_bytes() == (directory / "bf16.npy").read_bytes(), "other bits")


run_cases()
