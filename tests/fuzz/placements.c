/* Fuzzes placements: text is refused with a position inside it, or its printed form parses to the
 * same placements. */
#include "fuzz.h"

#include <tessera/placement.h>

static int parse(const char *text, tsr_placement *out, int64_t *numbers, size_t capacity, int *count)
{
    size_t position = SIZE_MAX;
    const tsr_status status = tsr_placements_parse(text, out, TSR_MAX_DIMS, count, numbers, capacity, &position);
    if (status == TSR_OK)
        return 1;
    FUZZ_REQUIRE(status == TSR_ERROR_ARGUMENT);
    FUZZ_REQUIRE(position <= strlen(text));
    FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    int64_t *numbers = fuzz_memory((size + 1) * sizeof *numbers);
    tsr_placement placements[TSR_MAX_DIMS], again[TSR_MAX_DIMS];
    int count = 0, count_again = 0;
    if (parse(text, placements, numbers, size, &count) && count <= TSR_MAX_DIMS) {
        const size_t length = tsr_placements_print(placements, count, NULL, 0);
        char *printed = fuzz_memory(length + 1), *printed_again = fuzz_memory(length + 1);
        int64_t *numbers_again = fuzz_memory((length + 1) * sizeof *numbers);
        FUZZ_REQUIRE(tsr_placements_print(placements, count, printed, length + 1) == length);
        FUZZ_REQUIRE(parse(printed, again, numbers_again, length, &count_again));
        FUZZ_REQUIRE(count_again == count);
        FUZZ_REQUIRE(tsr_placements_print(again, count, printed_again, length + 1) == length);
        FUZZ_REQUIRE(strcmp(printed, printed_again) == 0);
        free(numbers_again);
        free(printed_again);
        free(printed);
    }
    free(numbers);
    free(text);
    return 0;
}
