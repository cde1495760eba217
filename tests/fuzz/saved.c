/* Fuzzes saved plans: input is refused with a message, or is a plan that saves to the same bytes.
 * Each input is tried as it is, and with its length and checksum corrected, so that the checks
 * after those are reached. */
#include "fuzz.h"

#include <tessera/saved.h>

enum { LENGTH_AT = 12, NODES_AT = 44, FRAME_BYTES = 28, CHECKSUM_BYTES = 8 };

static void put_number(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Planning looks at the ranks of a node one by one. So a node has 1 to 255 ranks, or as many nodes
 * are listed, and no input takes long. */
static uint64_t limit_nodes(const uint8_t *number)
{
    const uint64_t ranks = number[0] > 0 ? number[0] : 4;
    return number[7] > 127 ? -ranks : ranks;
}

static void seal(uint8_t *bytes, size_t size)
{
    static const uint8_t head[LENGTH_AT] = {'t', 's', 'r', '-', 'p', 'l', 'a', 'n', 2};
    uint64_t checksum = UINT64_C(0xcbf29ce484222325);
    memcpy(bytes, head, sizeof head);
    if (size >= NODES_AT + 8 + CHECKSUM_BYTES)
        put_number(bytes + NODES_AT, limit_nodes(bytes + NODES_AT));
    put_number(bytes + LENGTH_AT, size);
    for (size_t i = 0; i < size - CHECKSUM_BYTES; i++)
        checksum = (checksum ^ bytes[i]) * UINT64_C(0x100000001b3);
    put_number(bytes + size - CHECKSUM_BYTES, checksum);
}

static void try(const uint8_t *bytes, size_t size)
{
    tsr_plan *plan = NULL;
    if (tsr_plan_load(NULL, bytes, size, TSR_RANK_NONE, &plan) != TSR_OK) {
        FUZZ_REQUIRE(!plan);
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
        return;
    }
    uint8_t *again = fuzz_memory(size);
    size_t length = 0;
    FUZZ_REQUIRE(tsr_plan_save(plan, again, size, &length) == TSR_OK);
    FUZZ_REQUIRE(length == size && memcmp(again, bytes, size) == 0);
    free(again);
    tsr_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = fuzz_copy(data, size);
    try(bytes, size);
    if (size >= FRAME_BYTES) {
        seal(bytes, size);
        try(bytes, size);
    }
    free(bytes);
    return 0;
}
