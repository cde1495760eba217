/* Copies of boxes, compared with a loop over elements: every byte of the destination, gaps
 * included. */
#include "device_parts.h"
#include "variants.h"

typedef struct case_memory {
    unsigned char *src, *dst, *expected;
    size_t src_bytes, dst_bytes;
} case_memory;

static void copy_naively(const tsr_box_copy *copy)
{
    const int64_t count = count_of(copy->ndim, copy->shape);
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)copy->dst +
                   offset_of(copy->ndim, copy->shape, copy->dst_strides, i) * (int64_t)copy->element_bytes,
               (const char *)copy->src +
                   offset_of(copy->ndim, copy->shape, copy->src_strides, i) * (int64_t)copy->element_bytes,
               copy->element_bytes);
}

/* Makes buffers for the box, with room before and behind it, at any alignment and filled at random,
 * and points the box into them. */
static case_memory make_memory(uint64_t *seed, tsr_box_copy *copy, arrangement src, arrangement dst)
{
    int64_t src_first, dst_first;
    const int64_t src_span = arrange(seed, src, copy->ndim, copy->shape, copy->src_strides, &src_first);
    const int64_t dst_span = arrange(seed, dst, copy->ndim, copy->shape, copy->dst_strides, &dst_first);
    const size_t element = copy->element_bytes, src_shift = (size_t)draw_between(seed, 0, 70),
                 dst_shift = (size_t)draw_between(seed, 0, 70);
    case_memory m = {.src_bytes = src_shift + (size_t)src_span * element,
                     .dst_bytes = dst_shift + (size_t)dst_span * element + 70};
    m.src = malloc(m.src_bytes);
    m.dst = malloc(m.dst_bytes);
    m.expected = malloc(m.dst_bytes);
    assert_true(m.src && m.dst && m.expected);
    draw_bytes(seed, m.src, m.src_bytes);
    memset(m.expected, 0xa5, m.dst_bytes);
    copy->src = m.src + src_shift + (size_t)src_first * element;
    copy->dst = m.expected + dst_shift + (size_t)dst_first * element;
    copy_naively(copy);
    copy->dst = m.dst + dst_shift + (size_t)dst_first * element;
    return m;
}

static void free_memory(const case_memory *m)
{
    free(m->src);
    free(m->dst);
    free(m->expected);
}

static void check_box(uint64_t seed, tsr_box_copy *copy, arrangement src, arrangement dst)
{
    uint64_t state = seed;
    variant all[3];
    const int count = list_variants(all);
    const case_memory m = make_memory(&state, copy, src, dst);
    for (int v = 0; v < count; v++) {
        memset(m.dst, 0xa5, m.dst_bytes);
        assert_int_equal(all[v].table->copy_boxes(NULL, 0, copy, 1, NULL), TSR_OK);
        if (memcmp(m.dst, m.expected, m.dst_bytes) != 0)
            fail_msg("%s: %d dims of %zu bytes differ; TSR_TEST_SEED=%llu", all[v].name, copy->ndim,
                     copy->element_bytes, (unsigned long long)seed);
    }
    free_memory(&m);
}

static void random_boxes_are_copied_byte_for_byte(void **state)
{
    uint64_t seed = seed_of(1);
    (void)state;
    for (int i = 0; i < 4000; i += step_of(4)) {
        const uint64_t begin = seed;
        tsr_box_copy copy = {.element_bytes = (size_t)1 << draw_between(&seed, 0, 4),
                             .ndim = (int)draw_between(&seed, 0, TSR_MAX_DIMS)};
        const int64_t most = copy.ndim <= 2 ? 70 : copy.ndim <= 4 ? 9 : 3;
        for (int d = 0; d < copy.ndim; d++)
            copy.shape[d] = draw(&seed) % 40 == 0 ? 0 : draw_between(&seed, 1, most);
        const arrangement src = (arrangement)draw_between(&seed, ARRANGED_IN_ORDER, ARRANGED_WITH_REPEATS);
        check_box(begin, &copy, src, (arrangement)draw_between(&seed, ARRANGED_IN_ORDER, ARRANGED_ANYHOW));
    }
}

static void rows_of_every_length_are_copied(void **state)
{
    (void)state;
    for (int64_t bytes = 1; bytes <= 200; bytes++)
        for (int64_t rows = 1; rows <= 3; rows++) {
            tsr_box_copy copy = {.element_bytes = 1, .ndim = 2, .shape = {rows, bytes}};
            check_box((uint64_t)bytes, &copy, ARRANGED_WITH_GAPS, ARRANGED_WITH_GAPS);
        }
}

static void large_boxes_are_copied_past_the_cache(void **state)
{
    /* 16 MiB and more each: one piece; rows of 16,380 and of 1,771 bytes; repeated rows; a
     * transposition. */
    static const struct {
        size_t element;
        int64_t shape[2];
        arrangement src, dst;
    } cases[] = {
        {1, {1, (16 << 20) + 77}, ARRANGED_IN_ORDER, ARRANGED_IN_ORDER},
        {4, {1100, 4095}, ARRANGED_WITH_GAPS, ARRANGED_IN_ORDER},
        {1, {10000, 1771}, ARRANGED_WITH_GAPS, ARRANGED_WITH_GAPS},
        {8, {2048, 1031}, ARRANGED_WITH_REPEATS, ARRANGED_WITH_GAPS},
        {4, {2049, 2053}, ARRANGED_ANYHOW, ARRANGED_ANYHOW},
        {2, {4001, 2222}, ARRANGED_IN_ORDER, ARRANGED_ANYHOW},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t seed = 1; seed <= 4; seed += (uint64_t)step_of(4)) {
            tsr_box_copy copy = {
                .element_bytes = cases[i].element, .ndim = 2, .shape = {cases[i].shape[0], cases[i].shape[1]}};
            check_box(seed, &copy, cases[i].src, cases[i].dst);
        }
}

static void several_boxes_are_copied_in_one_call(void **state)
{
    variant all[3];
    const int variants = list_variants(all);
    uint64_t seed = seed_of(5);
    (void)state;
    for (int v = 0; v < variants; v++) {
        tsr_box_copy copies[7];
        case_memory memories[7];
        for (int i = 0; i < 7; i++) {
            copies[i] = (tsr_box_copy){
                .element_bytes = 4, .ndim = 2, .shape = {draw_between(&seed, 1, 300), draw_between(&seed, 1, 9000)}};
            memories[i] = make_memory(&seed, &copies[i], ARRANGED_WITH_GAPS, ARRANGED_WITH_GAPS);
            memset(memories[i].dst, 0xa5, memories[i].dst_bytes);
        }
        assert_int_equal(all[v].table->copy_boxes(NULL, 0, copies, 7, NULL), TSR_OK);
        for (int i = 0; i < 7; i++) {
            assert_memory_equal(memories[i].dst, memories[i].expected, memories[i].dst_bytes);
            free_memory(&memories[i]);
        }
    }
}

static void plain_copies_take_any_size_and_alignment(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 15, 16, 63, 64, 65, 4097, ((size_t)8 << 20) + 5};
    variant all[3];
    uint64_t seed = seed_of(6);
    (void)state;
    for (int v = list_variants(all) - 1; v >= 0; v--)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            unsigned char *const src = malloc(sizes[i] + 3), *const dst = calloc(1, sizes[i] + 64);
            assert_true(src && dst);
            draw_bytes(&seed, src, sizes[i] + 3);
            assert_int_equal(all[v].table->copy(NULL, 0, dst + 7, src + 3, sizes[i], TSR_COPY_WITHIN, NULL), TSR_OK);
            assert_memory_equal(dst + 7, src + 3, sizes[i]);
            for (size_t k = 0; k < 57; k++)
                assert_int_equal(k < 7 ? dst[k] : dst[sizes[i] + k], 0);
            free(src);
            free(dst);
        }
}

static void boxes_that_are_none_are_refused(void **state)
{
    unsigned char byte = 0;
    const tsr_box_copy good = {.dst = &byte, .src = &byte, .element_bytes = 1, .ndim = 1, .shape = {0}};
    tsr_box_copy bad[] = {good, good, good, good, good};
    variant all[3];
    (void)state;
    bad[0].ndim = 9;
    bad[1].ndim = -1;
    bad[2].element_bytes = 0;
    bad[3].element_bytes = 3;
    bad[4].shape[0] = -1;
    for (int v = list_variants(all) - 1; v >= 0; v--) {
        assert_int_equal(all[v].table->copy_boxes(NULL, 0, &good, 1, NULL), TSR_OK);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
            assert_int_equal(all[v].table->copy_boxes(NULL, 0, &bad[i], 1, NULL), TSR_ERROR_ARGUMENT);
    }
}

int device_copy(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_boxes_are_copied_byte_for_byte),
        cmocka_unit_test(rows_of_every_length_are_copied),
        cmocka_unit_test(large_boxes_are_copied_past_the_cache),
        cmocka_unit_test(several_boxes_are_copied_in_one_call),
        cmocka_unit_test(plain_copies_take_any_size_and_alignment),
        cmocka_unit_test(boxes_that_are_none_are_refused),
    };
    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
