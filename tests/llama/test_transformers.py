"""Small random Qwen3 and Mistral checkpoints, as transformers saves them, against what transformers computes in f32."""
import json
import os
import pathlib

from harness import answer, case, expect, ids_text, largest_difference, read_npy, run_cases

MODELS = pathlib.Path(__file__).resolve().parents[1] / "golden" / "models"
RANKS = (1, 4) if os.environ.get("TSR_TEST_THIN") else (1, 2, 3, 4, 6, 8)

for model in sorted(path for path in MODELS.iterdir() if path.is_dir()):
    expected = json.loads((model / "expected.json").read_text())
    for ranks in RANKS:
        @case(f"{model.name} on {ranks} ranks: logits within 1e-4 of the largest, and the same tokens")
        def check(directory, model=model, expected=expected, ranks=ranks):
            got = answer(model, "--ranks", ranks, "--prompt-ids", ids_text(expected["prompt_ids"]), "--tokens", len(expected["ids"]), "--logits",
                         directory / "l.npy")
            shape, values = read_npy(directory / "l.npy")
            wanted_shape, wanted = read_npy(model / "logits.npy")
            bound = 1e-4 * max(map(abs, wanted))
            expect(shape == wanted_shape, shape, "is not", wanted_shape)
            expect(largest_difference(values, wanted) <= bound, largest_difference(values, wanted), "is more than", bound)
            # A token's lead over the next best is more than logits may differ.
            expect(2 * bound < expected["least_lead"], "the leads are too small to compare tokens")
            expect(got["ids"] == expected["ids"], got["ids"], "is not", expected["ids"])

run_cases()
