/* Fuzzes saved programs and executables: input is refused with a message, or is a program that
 * saves to the same bytes, and compiles or is refused with a message. Each input is tried as it is,
 * and with lengths and checksums corrected, its own and those of the layouts in it. */
#include "fuzz.h"

#include <tessera/context.h>
#include <tessera/saved_program.h>

enum { HEAD_BYTES = 20, LAYOUTS_AT = 28, LEAST_PLAN_BYTES = 28, CHECKSUM_BYTES = 8 };

/* The most memory that is given at once: programs may ask for constants of any size. */
#define MOST_BYTES ((size_t)16 << 20)

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    (void)user;
    return bytes <= MOST_BYTES && posix_memalign(&memory, alignment, bytes ? bytes : 1) == 0 ? memory : NULL;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    free(memory);
}

static const char *no_variable(void *user, const char *name)
{
    (void)user, (void)name;
    return NULL;
}

static tsr_context *make_context(void)
{
    tsr_context *context;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){allocate, release, NULL};
    options.environment = no_variable;
    options.plan_entries = 10000;
    FUZZ_REQUIRE(tsr_context_create(&options, &context) == TSR_OK);
    return context;
}

static void put_number(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Gives a frame its head, length and checksum. */
static void seal(uint8_t *bytes, size_t size, const char *magic, uint8_t version)
{
    uint64_t checksum = UINT64_C(0xcbf29ce484222325);
    memcpy(bytes, magic, 8);
    memset(bytes + 8, 0, 4);
    bytes[8] = version;
    put_number(bytes + 12, size);
    for (size_t i = 0; i < size - CHECKSUM_BYTES; i++)
        checksum = (checksum ^ bytes[i]) * UINT64_C(0x100000001b3);
    put_number(bytes + size - CHECKSUM_BYTES, checksum);
}

static void seal_all(uint8_t *bytes, size_t size)
{
    uint64_t layouts = 0;
    for (int i = 0; i < 8; i++)
        layouts |= (uint64_t)bytes[HEAD_BYTES + i] << 8 * i;
    if (layouts >= LEAST_PLAN_BYTES && layouts <= size - LAYOUTS_AT - CHECKSUM_BYTES)
        seal(bytes + LAYOUTS_AT, (size_t)layouts, "tsr-plan", 2);
    seal(bytes, size, "tsr-prog", 2);
}

static void try_program(tsr_context *context, const uint8_t *bytes, size_t size)
{
    size_t length = 0;
    tsr_program *program = NULL;
    if (tsr_program_load(context, bytes, size, &program) != TSR_OK) {
        FUZZ_REQUIRE(!program);
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
        return;
    }
    uint8_t *again = fuzz_memory(size);
    FUZZ_REQUIRE(tsr_program_save(program, again, size, &length) == TSR_OK);
    FUZZ_REQUIRE(length == size && memcmp(again, bytes, size) == 0);
    free(again);
    tsr_program_destroy(program);
}

/* The bytes as those of an executable of rank 1. */
static void try_executable(tsr_context *context, const uint8_t *bytes, size_t size)
{
    size_t length = 0;
    tsr_executable *x = NULL;
    const size_t whole = HEAD_BYTES + 8 + size + CHECKSUM_BYTES;
    uint8_t *framed = fuzz_memory(whole), *again = fuzz_memory(whole);
    put_number(framed + HEAD_BYTES, 1);
    memcpy(framed + HEAD_BYTES + 8, bytes, size);
    seal(framed, whole, "tsr-exec", 1);
    if (tsr_executable_load(context, framed, whole, &x) == TSR_OK) {
        FUZZ_REQUIRE(tsr_executable_save(x, again, whole, &length) == TSR_OK);
        FUZZ_REQUIRE(length == whole && memcmp(again, framed, whole) == 0);
    } else {
        FUZZ_REQUIRE(!x);
        FUZZ_REQUIRE(tsr_status_message()[0] != '\0');
    }
    tsr_executable_destroy(x);
    free(again);
    free(framed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tsr_executable *x = NULL;
    uint8_t *bytes = fuzz_copy(data, size);
    tsr_context *context = make_context();
    try_program(context, bytes, size);
    FUZZ_REQUIRE(tsr_executable_load(context, bytes, size, &x) != TSR_OK || x);
    tsr_executable_destroy(x);
    if (size >= LAYOUTS_AT + CHECKSUM_BYTES) {
        seal_all(bytes, size);
        try_program(context, bytes, size);
        try_executable(context, bytes, size);
    }
    tsr_context_destroy(context);
    free(bytes);
    return 0;
}
