/* Fuzzes .safetensors files: input is refused with a message, or is a file whose tensors lie
 * inside it, do not overlap, and have the lengths that their shapes and dtypes give. */
#include "fuzz.h"

#include <tessera/safetensors.h>

static void check(const tsr_safetensors_entry *entry, size_t size)
{
    int64_t count = 0;
    const tsr_tensor view = tsr_tensor_contiguous(NULL, entry->dtype, entry->ndim, entry->shape);
    FUZZ_REQUIRE(tsr_tensor_count(&view, &count) == TSR_OK);
    FUZZ_REQUIRE(entry->bytes == count * (int64_t)tsr_dtype_bytes(entry->dtype));
    FUZZ_REQUIRE(entry->offset >= 8 && (size_t)entry->offset <= size &&
                 (size_t)entry->bytes <= size - (size_t)entry->offset);
}

static void check_pair(const tsr_safetensors_entry *a, const tsr_safetensors_entry *b)
{
    FUZZ_REQUIRE(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = fuzz_copy(data, size);
    tsr_safetensors *file = NULL;
    if (tsr_safetensors_parse("model.safetensors", bytes, size, &file) == TSR_OK) {
        for (size_t i = 0; i < tsr_safetensors_count(file); i++)
            check(tsr_safetensors_get(file, i), size);
        const tsr_safetensors_entry *const a = tsr_safetensors_find(file, "a");
        const tsr_safetensors_entry *const b = tsr_safetensors_find(file, "b");
        if (a && b)
            check_pair(a, b);
        tsr_safetensors_destroy(file);
    } else {
        FUZZ_REQUIRE(!file);
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    }
    free(bytes);
    return 0;
}
