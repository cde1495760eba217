/* Fuzzes .npy files: input is refused, or is a file whose elements begin where the header says and
 * fill the rest of the file. */
#include "fuzz.h"

#include <tessera/npy.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *file = fuzz_copy(data, size);
    tsr_npy_header header;
    const tsr_status status = tsr_npy_header_parse(file, size, size, &header);
    if (status == TSR_OK) {
        int64_t count = 0;
        const tsr_tensor view = tsr_tensor_contiguous(NULL, header.dtype, header.ndim, header.shape);
        FUZZ_REQUIRE(tsr_tensor_count(&view, &count) == TSR_OK);
        FUZZ_REQUIRE(header.bytes == count * (int64_t)tsr_dtype_bytes(header.dtype));
        FUZZ_REQUIRE(header.data >= 0 && (size_t)header.data <= size &&
                     (size_t)header.bytes == size - (size_t)header.data);
    } else {
        FUZZ_REQUIRE(status == TSR_ERROR_IO || status == TSR_ERROR_UNSUPPORTED);
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    }
    free(file);
    return 0;
}
