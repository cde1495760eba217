#include "counted_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The header of every block, against which a release is checked. */
typedef struct front {
    size_t bytes, alignment;
} front;

static size_t front_bytes(size_t alignment)
{
    return alignment > sizeof(front) ? alignment : sizeof(front);
}

/* The calling thread's allocations so far, and how many are left before one fails. */
static _Thread_local size_t asked, left;
static _Thread_local bool goes_on_failing, fails_all;

static bool fails_here(void)
{
    asked++;
    if (left == 0 || --left > 0)
        return fails_all;
    fails_all = goes_on_failing;
    return true;
}

size_t counted_fail_here(size_t nth, bool goes_on)
{
    const size_t before = left;
    left = nth;
    goes_on_failing = goes_on;
    fails_all = false;
    return before;
}

size_t counted_asked_here(void)
{
    return asked;
}

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    counted_memory *memory = user;
    const size_t number = atomic_fetch_add(&memory->allocations, 1) + 1;
    if (fails_here() || number == memory->fail_at)
        return NULL;
    atomic_fetch_add(&memory->bytes, bytes);
    assert_true(alignment >= sizeof(void *) && (alignment & (alignment - 1)) == 0);
    void *block;
    if (posix_memalign(&block, alignment, front_bytes(alignment) + bytes) != 0)
        return NULL;
    char *given = (char *)block + front_bytes(alignment);
    ((front *)(void *)given)[-1] = (front){bytes, alignment};
    atomic_fetch_add(&memory->live_blocks, 1);
    atomic_fetch_add(&memory->live_bytes, bytes);
    return given;
}

static void release(void *user, void *given, size_t bytes)
{
    counted_memory *memory = user;
    assert_non_null(given);
    const front kept = ((front *)given)[-1];
    assert_int_equal(kept.bytes, bytes);
    atomic_fetch_sub(&memory->live_blocks, 1);
    atomic_fetch_sub(&memory->live_bytes, bytes);
    free((char *)given - front_bytes(kept.alignment));
}

const char *no_environment(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

tsr_allocator counted_allocator(counted_memory *memory)
{
    return (tsr_allocator){allocate, release, memory};
}

tsr_context_options counted_options(counted_memory *memory)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = counted_allocator(memory);
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
