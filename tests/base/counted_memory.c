#include "counted_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* In front of every block: what release is checked against. */
typedef struct front {
    size_t bytes, alignment;
} front;

static size_t front_bytes(size_t alignment)
{
    return alignment > sizeof(front) ? alignment : sizeof(front);
}

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    counted_memory *memory = user;
    if (++memory->allocations == memory->fail_at)
        return NULL;
    assert_true(alignment >= sizeof(void *) && (alignment & (alignment - 1)) == 0);
    void *block;
    if (posix_memalign(&block, alignment, front_bytes(alignment) + bytes) != 0)
        return NULL;
    char *given = (char *)block + front_bytes(alignment);
    ((front *)(void *)given)[-1] = (front){bytes, alignment};
    memory->live_blocks++;
    memory->live_bytes += bytes;
    return given;
}

static void release(void *user, void *given, size_t bytes)
{
    counted_memory *memory = user;
    assert_non_null(given);
    const front kept = ((front *)given)[-1];
    assert_int_equal(kept.bytes, bytes);
    memory->live_blocks--;
    memory->live_bytes -= bytes;
    free((char *)given - front_bytes(kept.alignment));
}

const char *no_environment(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

tsr_context_options counted_options(counted_memory *memory)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){allocate, release, memory};
    options.environment = no_environment;
    return options;
}

tsr_context *counted_context(counted_memory *memory)
{
    const tsr_context_options options = counted_options(memory);
    tsr_context *context = NULL;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    return context;
}

void assert_nothing_leaked(const counted_memory *memory)
{
    assert_int_equal(memory->live_blocks, 0);
    assert_int_equal(memory->live_bytes, 0);
}
