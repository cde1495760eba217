/* The device itself: it runs its work as late, and in as odd an order, as events allow, and it
 * finds faults. */
#include "async_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 64 };

/* Two streams of device 0, and memory. */
typedef struct pair {
    async_machine *machine;
    tsr_stream a, b;
    void *from, *to, *event;
} pair;

static const tsr_device_table *table;

static void open_pair(pair *p, async_options options)
{
    table = async_table();
    options.devices = options.devices ? options.devices : 1;
    p->machine = async_create(&options);
    assert_non_null(p->machine);
    assert_int_equal(table->stream_create(p->machine, 0, &p->a), TSR_OK);
    assert_int_equal(table->stream_create(p->machine, 0, &p->b), TSR_OK);
    assert_int_equal(table->alloc(p->machine, 0, BYTES, NULL, &p->from), TSR_OK);
    assert_int_equal(table->alloc(p->machine, 0, BYTES, NULL, &p->to), TSR_OK);
    assert_int_equal(table->event_create(p->machine, 0, &p->event), TSR_OK);
}

static void close_pair(pair *p)
{
    table->event_destroy(p->machine, 0, p->event);
    table->free(p->machine, 0, p->from, BYTES, NULL);
    table->free(p->machine, 0, p->to, BYTES, NULL);
    async_fault(p->machine);
    async_destroy(p->machine);
}

/* From host memory to `from` on stream a, and on to `to` on stream b. */
static void relay(pair *p, unsigned char value, bool ordered)
{
    unsigned char bytes[BYTES];
    memset(bytes, value, sizeof bytes);
    table->copy(p->machine, 0, p->from, bytes, BYTES, TSR_COPY_FROM_HOST, p->a);
    memset(bytes, 0, sizeof bytes);
    if (ordered) {
        table->event_record(p->machine, 0, p->event, p->a);
        table->event_wait(p->machine, 0, p->event, p->b);
    }
    table->copy(p->machine, 0, p->to, p->from, BYTES, TSR_COPY_WITHIN, p->b);
}

static void assert_fault(pair *p, const char *part)
{
    const char *fault = async_fault(p->machine);
    assert_non_null(fault);
    if (!strstr(fault, part))
        fail_msg("\"%s\" does not say \"%s\"", fault, part);
}

static void what_events_order_is_done_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pair p;
        unsigned char got[BYTES];
        open_pair(&p, (async_options){.seed = seed, .lazy = seed % 2 == 1});
        relay(&p, (unsigned char)(seed + 1), true);
        table->copy(p.machine, 0, got, p.to, BYTES, TSR_COPY_TO_HOST, p.b);
        table->stream_synchronize(p.machine, 0, p.b);
        assert_int_equal(got[BYTES - 1], seed + 1);
        assert_null(async_fault(p.machine));
        close_pair(&p);
    }
}

static void a_read_that_nothing_orders_after_a_write_is_a_race(void **state)
{
    (void)state;
    pair p;
    open_pair(&p, (async_options){.seed = 1});
    relay(&p, 1, false);
    assert_fault(&p, "race: copy on stream 2 reads byte");
    close_pair(&p);
}

static void a_write_that_nothing_orders_after_a_read_is_a_race(void **state)
{
    (void)state;
    pair p;
    open_pair(&p, (async_options){.seed = 1});
    relay(&p, 1, true);
    assert_null(async_fault(p.machine));
    relay(&p, 2, true);
    assert_fault(&p, "race: copy on stream 1 writes byte");
    close_pair(&p);
}

static void what_the_host_has_waited_for_orders_everything(void **state)
{
    (void)state;
    pair p;
    open_pair(&p, (async_options){.seed = 1});
    relay(&p, 1, true);
    table->stream_synchronize(p.machine, 0, p.b);
    relay(&p, 2, true);
    assert_null(async_fault(p.machine));
    close_pair(&p);
}

static void a_wait_is_for_the_latest_record_before_it(void **state)
{
    (void)state;
    pair p;
    const unsigned char bytes[BYTES] = {0};
    open_pair(&p, (async_options){.seed = 1});
    table->event_wait(p.machine, 0, p.event, p.b); /* before any record: waits for nothing */
    table->event_record(p.machine, 0, p.event, p.a);
    table->event_wait(p.machine, 0, p.event, p.b);
    table->copy(p.machine, 0, p.from, bytes, BYTES, TSR_COPY_FROM_HOST, p.a);
    table->event_record(p.machine, 0, p.event, p.a); /* too late for the wait */
    table->copy(p.machine, 0, p.to, p.from, BYTES, TSR_COPY_WITHIN, p.b);
    assert_fault(&p, "race");
    close_pair(&p);
}

static void lazy_streams_run_when_they_are_waited_for(void **state)
{
    (void)state;
    pair p;
    unsigned char got[BYTES] = {0};
    open_pair(&p, (async_options){.seed = 1, .lazy = true});
    relay(&p, 7, true);
    table->copy(p.machine, 0, got, p.to, BYTES, TSR_COPY_TO_HOST, p.b);
    assert_int_equal(got[0], 0);
    table->stream_synchronize(p.machine, 0, p.b);
    assert_int_equal(got[0], 7);
    close_pair(&p);
}

static bool only_up(int index, int owner)
{
    return owner >= index;
}

static void memory_that_is_freed_foreign_or_out_of_reach_is_not_touched(void **state)
{
    (void)state;
    pair p;
    void *other = NULL;
    unsigned char host[BYTES] = {0};
    open_pair(&p, (async_options){.devices = 2, .seed = 1, .reaches = only_up});
    table->copy(p.machine, 0, p.to, host, BYTES, TSR_COPY_WITHIN, p.a);
    assert_fault(&p, "no memory of a device");
    table->copy(p.machine, 0, (char *)p.to + 1, p.from, BYTES, TSR_COPY_WITHIN, p.a);
    assert_fault(&p, "no memory of a device");
    table->copy(p.machine, 1, p.to, p.to, BYTES, TSR_COPY_WITHIN, NULL);
    assert_fault(&p, "out of reach");
    table->alloc(p.machine, 0, BYTES, p.a, &other);
    table->free(p.machine, 0, other, BYTES, p.a);
    table->stream_synchronize(p.machine, 0, p.a);
    table->copy(p.machine, 0, p.to, other, BYTES, TSR_COPY_WITHIN, p.a);
    assert_fault(&p, "no memory of a device");
    close_pair(&p);
}

static void captures_wait_for_what_they_record(void **state)
{
    (void)state;
    pair p;
    open_pair(&p, (async_options){.seed = 1});
    table->event_record(p.machine, 0, p.event, p.a);
    async_capture(p.machine, 0, p.b, 5);
    table->event_wait(p.machine, 0, p.event, p.b);
    assert_fault(&p, "recorded outside of it");
    table->stream_synchronize(p.machine, 0, p.b);
    assert_fault(&p, "while capture 5 records it");
    async_capture(p.machine, 0, p.a, 5);
    table->event_record(p.machine, 0, p.event, p.a);
    table->event_wait(p.machine, 0, p.event, p.b);
    assert_null(async_fault(p.machine));
    close_pair(&p);
}

static void calls_fail_when_they_are_told_to(void **state)
{
    (void)state;
    pair p;
    void *event = NULL;
    open_pair(&p, (async_options){.seed = 1});
    async_fail(p.machine, ASYNC_EVENT_CREATE, 2);
    assert_int_equal(table->event_create(p.machine, 0, &event), TSR_OK);
    table->event_destroy(p.machine, 0, event);
    assert_int_equal(table->event_create(p.machine, 0, &event), TSR_ERROR_MEMORY);
    assert_int_equal(table->event_create(p.machine, 0, &event), TSR_OK);
    table->event_destroy(p.machine, 0, event);
    assert_int_equal(async_count(p.machine, ASYNC_EVENT_CREATE), 4);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_events_order_is_done_in_order),
        cmocka_unit_test(a_read_that_nothing_orders_after_a_write_is_a_race),
        cmocka_unit_test(a_write_that_nothing_orders_after_a_read_is_a_race),
        cmocka_unit_test(what_the_host_has_waited_for_orders_everything),
        cmocka_unit_test(a_wait_is_for_the_latest_record_before_it),
        cmocka_unit_test(lazy_streams_run_when_they_are_waited_for),
        cmocka_unit_test(memory_that_is_freed_foreign_or_out_of_reach_is_not_touched),
        cmocka_unit_test(captures_wait_for_what_they_record),
        cmocka_unit_test(calls_fail_when_they_are_told_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
