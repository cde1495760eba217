/* A range of a run of boxes as boxes: exactly its elements, in order, in few pieces. */
#include "redistribute/execute/fragments.h"
#include "redistribute/schedule/messages.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { BOXES = 2, LONGEST = 4 };

/* A run of boxes of up to 4 dims; each element's number is its place in the run. */
typedef struct run {
    tsr_layout layout;
    tsr_item item;
    int64_t numbers[BOXES * 3 * TSR_MAX_DIMS];
    int64_t elements;
} run;

static void make_run(run *r, int ndim, size_t boxes, const int64_t (*shapes)[TSR_MAX_DIMS])
{
    *r = (run){.layout = {.ndim = ndim}};
    r->item = (tsr_item){.src = &r->layout, .boxes = r->numbers, .box_count = boxes};
    for (size_t b = 0; b < boxes; b++) {
        int64_t size = 1;
        for (int d = 0; d < ndim; d++)
            size *= r->numbers[b * 3 * (size_t)ndim + (size_t)d] = shapes[b][d];
        r->elements += size;
    }
}

/* The number within the run of the fragment's element at `at`. */
static int64_t number_of(const run *r, const tsr_fragment *f, const int64_t *at)
{
    int64_t number = 0, before = 0;
    for (size_t box = 0; box < f->box; box++) {
        int64_t size = 1;
        for (int d = 0; d < r->layout.ndim; d++)
            size *= tsr_item_box(&r->item, box)[d];
        before += size;
    }
    for (int d = 0; d < r->layout.ndim; d++) {
        assert_true(f->offset[d] + at[d] < tsr_item_box(&r->item, f->box)[d]);
        number = number * tsr_item_box(&r->item, f->box)[d] + f->offset[d] + at[d];
    }
    return before + number;
}

static int64_t check_fragment(const run *r, const tsr_fragment *f, int64_t next)
{
    int64_t at[TSR_MAX_DIMS] = {0}, strides[TSR_MAX_DIMS], packed = 0;
    const int ndim = r->layout.ndim;
    tsr_fragment_strides(f, ndim, strides);
    assert_true(f->elements > 0);
    for (int64_t i = 0; i < f->elements; i++) {
        int64_t rest = i, place = 0;
        for (int d = ndim - 1; d >= 0; d--) {
            at[d] = rest % f->shape[d];
            rest /= f->shape[d];
            place += at[d] * strides[d];
        }
        assert_int_equal(rest, 0);
        assert_int_equal(place, packed++);
        if (number_of(r, f, at) != next++)
            fail_msg("element %d of the fragment is not next: %s", (int)i, test_case_text());
    }
    return next;
}

static void check_range(const run *r, int64_t begin, int64_t end)
{
    tsr_fragments fragments = tsr_fragments_begin(&r->item, 0, begin, end);
    tsr_fragment f;
    int64_t next = begin;
    int pieces[BOXES] = {0};
    while (tsr_fragments_next(&fragments, &f)) {
        next = check_fragment(r, &f, next);
        pieces[f.box]++;
    }
    if (next != end)
        fail_msg("it ends at %d: %s", (int)next, test_case_text());
    const int most = r->layout.ndim > 0 ? 2 * r->layout.ndim - 1 : 1;
    for (int b = 0; b < BOXES; b++)
        if (pieces[b] > most)
            fail_msg("%d pieces of one box: %s", pieces[b], test_case_text());
    assert_false(tsr_fragments_next(&fragments, &f));
}

static void check_all_ranges(const run *r, const char *what)
{
    for (int64_t begin = 0; begin <= r->elements; begin++)
        for (int64_t end = begin; end <= r->elements; end++) {
            test_case("elements [%d, %d) of %s", (int)begin, (int)end, what);
            check_range(r, begin, end);
        }
}

static void set_shape(int64_t *shape, int ndim, int number)
{
    for (int d = 0; d < ndim; d++, number /= LONGEST)
        shape[d] = 1 + number % LONGEST;
}

static void every_range_of_every_small_box_is_its_elements_in_order(void **state)
{
    (void)state;
    char what[64];
    for (int ndim = 0; ndim <= 3; ndim++) {
        for (int number = 0; number < test_power(LONGEST, ndim); number++) {
            int64_t shapes[BOXES][TSR_MAX_DIMS] = {{0}};
            run r;
            set_shape(shapes[0], ndim, number);
            make_run(&r, ndim, 1, (const int64_t(*)[TSR_MAX_DIMS])shapes);
            snprintf(what, sizeof what, "box number %d of %d dims", number, ndim);
            check_all_ranges(&r, what);
        }
    }
    int64_t shapes[BOXES][TSR_MAX_DIMS] = {{3, 2, 3, 2}};
    run r;
    make_run(&r, 4, 1, (const int64_t(*)[TSR_MAX_DIMS])shapes);
    check_all_ranges(&r, "3x2x3x2");
}

static void every_range_of_two_boxes_goes_from_one_to_the_other(void **state)
{
    (void)state;
    char what[64];
    for (int number = 0; number < test_power(LONGEST, 4); number++) {
        int64_t shapes[BOXES][TSR_MAX_DIMS] = {{0}};
        run r;
        set_shape(shapes[0], 2, number / 16);
        set_shape(shapes[1], 2, number % 16);
        make_run(&r, 2, 2, (const int64_t(*)[TSR_MAX_DIMS])shapes);
        snprintf(what, sizeof what, "pair number %d of boxes of 2 dims", number);
        check_all_ranges(&r, what);
    }
}

/* Ranges of rounds follow each other without a gap, none is more than the rounded-up share, also
 * where products are beyond 64 bits. */
static void rounds_share_out_all_elements_evenly(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 7, 64, 1000, INT64_C(1) << 31, (INT64_C(1) << 60) + 12345};
    static const int64_t rounds[] = {1, 2, 3, 7, 1000, INT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t k = 0; k < sizeof(rounds) / sizeof rounds[0]; k++) {
            const int64_t share = counts[i] / rounds[k] + (counts[i] % rounds[k] != 0);
            int64_t end = 0;
            for (int64_t s = 0; s < rounds[k]; s++) {
                /* Of very many rounds, checks some at the start and some at the end. */
                if (s == 1000 && rounds[k] > 2000) {
                    s = rounds[k] - 1000;
                    end = tsr_mail_range(counts[i], s, rounds[k]).begin;
                }
                const tsr_extent range = tsr_mail_range(counts[i], s, rounds[k]);
                assert_int_equal(range.begin, end);
                assert_true(range.end >= range.begin && range.end - range.begin <= share);
                end = range.end;
            }
            assert_int_equal(end, counts[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_of_every_small_box_is_its_elements_in_order),
        cmocka_unit_test(every_range_of_two_boxes_goes_from_one_to_the_other),
        cmocka_unit_test(rounds_share_out_all_elements_evenly),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
