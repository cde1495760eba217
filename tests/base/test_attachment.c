/* Objects that libraries on top of this one keep with a context. */
#include "counted_memory.h"

#include <tessera/sys/attachment.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { THREADS = 4 };

static atomic_int made, destroyed;
static int last_destroyed;

static tsr_status make_block(tsr_context *context, void **out)
{
    made++;
    return tsr_allocate(context, 64, out);
}

static void destroy_block(tsr_context *context, void *block)
{
    destroyed++;
    last_destroyed = 1;
    tsr_release(context, block);
}

static void destroy_other(tsr_context *context, void *block)
{
    destroyed++;
    last_destroyed = 2;
    tsr_release(context, block);
}

static const tsr_attachment_kind block = {make_block, destroy_block}, other = {make_block, destroy_other};

static void start(void)
{
    made = destroyed = last_destroyed = 0;
}

static void an_attachment_is_made_once_and_goes_with_the_context(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    void *first, *again, *second;
    start();
    assert_int_equal(tsr_context_attachment(context, &block, &first), TSR_OK);
    assert_int_equal(tsr_context_attachment(context, &other, &second), TSR_OK);
    assert_int_equal(tsr_context_attachment(context, &block, &again), TSR_OK);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, second);
    assert_int_equal(made, 2);
    tsr_context_destroy(context);
    assert_int_equal(destroyed, 2);
    assert_int_equal(last_destroyed, 1);
    assert_nothing_leaked(&memory);
}

static atomic_int failures;

static tsr_status fail_twice(tsr_context *context, void **out)
{
    return failures++ < 2 ? tsr_status_set(TSR_ERROR_DEVICE, "attempt %d failed", (int)failures)
                          : make_block(context, out);
}

static const tsr_attachment_kind difficult = {fail_twice, destroy_block};

static void what_fails_is_tried_again(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    void *out;
    start();
    failures = 0;
    assert_int_equal(tsr_context_attachment(context, &difficult, &out), TSR_ERROR_DEVICE);
    assert_string_equal(tsr_status_message(), "attempt 1 failed");
    assert_int_equal(tsr_context_attachment(context, &difficult, &out), TSR_ERROR_DEVICE);
    assert_int_equal(tsr_context_attachment(context, &difficult, &out), TSR_OK);
    tsr_context_destroy(context);
    assert_int_equal(destroyed, 1);
    assert_nothing_leaked(&memory);
}

static void *ask(void *context)
{
    void *out = NULL;
    return tsr_context_attachment(context, &block, &out) == TSR_OK ? out : NULL;
}

static void threads_that_ask_at_once_get_the_same(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    pthread_t threads[THREADS];
    void *got[THREADS];
    start();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, context), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], &got[i]);
    for (int i = 0; i < THREADS; i++)
        assert_ptr_equal(got[i], got[0]);
    assert_non_null(got[0]);
    assert_int_equal(made, 1);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attachment_is_made_once_and_goes_with_the_context),
        cmocka_unit_test(what_fails_is_tried_again),
        cmocka_unit_test(threads_that_ask_at_once_get_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
