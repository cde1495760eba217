/* Reductions, compared byte for byte with a loop over elements: every dtype and op, any layout of
 * every operand. */
#include "device_parts.h"
#include "reference.h"
#include "variants.h"

#include <stdbool.h>

#define MOST 5

typedef struct operand {
    unsigned char *memory, *kept; /* kept: a copy of the memory from before */
    size_t bytes, at;             /* bytes of the memory; position of element 0 in it */
} operand;

/* One reduction, with its operands. `in_place` >= 0: the first destination is that source. */
typedef struct problem {
    tsr_box_reduce reduce;
    operand src[MOST], dst[MOST];
    const void *src_data[MOST];
    void *dst_data[MOST];
    int64_t src_strides[MOST][TSR_MAX_DIMS], dst_strides[MOST][TSR_MAX_DIMS];
    int in_place;
} problem;

/* Values at which arithmetic has special cases, as bits of each floating type: NaNs of both signs
 * with payloads, zeros, infinities, the largest and the smallest normal numbers, subnormal ones. */
static const uint64_t specials64[] = {
    0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0, 0x8000000000000000, 0x7ff0000000000000,
    0xfff0000000000000, 0x7fefffffffffffff, 0x0010000000000000, 1, 0x800fffffffffffff, 0x3ff0000000000000};
static const uint64_t specials32[] = {0x7fc00000, 0xffc00001, 0x7f800001, 0, 0x80000000, 0x7f800000,
                                      0xff800000, 0x7f7fffff, 0x00800000, 1, 0x807fffff, 0x3f800000};
static const uint64_t specials16[] = {0x7e00, 0xfe01, 0x7c01, 0, 0x8000, 0x7c00,
                                      0xfc00, 0x7bff, 0x0400, 1, 0x83ff, 0x3c00};
static const uint64_t specials_bf16[] = {0x7fc0, 0xffc1, 0x7f81, 0, 0x8000, 0x7f80,
                                         0xff80, 0x7f7f, 0x0080, 1, 0x807f, 0x3f80};
static const uint64_t specials8[] = {0x7f, 0xff, 0x7e, 0, 0x80, 0x7c, 0xfc, 0x7b, 0x04, 1, 0x83, 0x3c};

static const uint64_t *specials_of(tsr_dtype dtype, size_t *part)
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    *part = info->kind == TSR_CLASS_COMPLEX ? info->bytes / 2 : info->bytes;
    if (info->kind != TSR_CLASS_FLOAT && info->kind != TSR_CLASS_COMPLEX)
        return NULL;
    return *part == 8          ? specials64
           : *part == 4        ? specials32
           : dtype == TSR_BF16 ? specials_bf16
           : *part == 2        ? specials16
                               : specials8;
}

/* Bits near 1 in f32, so that sums and products round; a quarter of them special. */
static void draw_values(uint64_t *seed, tsr_dtype dtype, unsigned char *memory, size_t bytes)
{
    size_t part;
    const uint64_t *const specials = specials_of(dtype, &part);
    draw_bytes(seed, memory, bytes);
    for (size_t i = 0; dtype == TSR_BOOL && i < bytes; i++)
        memory[i] &= 1;
    for (size_t i = 0; specials && i + part <= bytes; i += part)
        if (draw(seed) % 4 == 0)
            memcpy(memory + i, &specials[draw(seed) % 12], part);
}

static void make_operand(uint64_t *seed, const tsr_box_reduce *r, arrangement how, operand *o, int64_t *strides)
{
    int64_t first;
    const size_t element = tsr_dtype_bytes(r->dtype);
    const int64_t span = arrange(seed, how, r->ndim, r->shape, strides, &first);
    const size_t shift = (size_t)draw_between(seed, 0, 20);
    o->bytes = shift + (size_t)span * element + 16;
    o->at = shift + (size_t)first * element;
    o->memory = malloc(o->bytes);
    o->kept = malloc(o->bytes);
    assert_true(o->memory && o->kept);
    draw_values(seed, r->dtype, o->kept + shift, o->bytes - shift);
    memset(o->kept, 0, shift);
}

static void make_problem(uint64_t *seed, problem *p, arrangement how)
{
    tsr_box_reduce *const r = &p->reduce;
    for (int s = 0; s < r->src_count; s++) {
        const bool written = s == p->in_place;
        make_operand(seed, r, written && how == ARRANGED_WITH_REPEATS ? ARRANGED_ANYHOW : how, &p->src[s],
                     p->src_strides[s]);
        p->src_data[s] = p->src[s].memory + p->src[s].at;
    }
    for (int d = 0; d < r->dst_count; d++) {
        make_operand(seed, r, how == ARRANGED_WITH_REPEATS ? ARRANGED_ANYHOW : how, &p->dst[d], p->dst_strides[d]);
        p->dst_data[d] = p->dst[d].memory + p->dst[d].at;
    }
    if (p->in_place >= 0) {
        memcpy(p->dst_strides[0], p->src_strides[p->in_place], sizeof p->dst_strides[0]);
        p->dst_data[0] = p->src[p->in_place].memory + p->src[p->in_place].at;
    }
    r->src = p->src_data;
    r->dst = p->dst_data;
    r->src_strides = (const int64_t(*)[TSR_MAX_DIMS])p->src_strides;
    r->dst_strides = (const int64_t(*)[TSR_MAX_DIMS])p->dst_strides;
}

static void free_problem(const problem *p)
{
    for (int s = 0; s < p->reduce.src_count; s++) {
        free(p->src[s].memory);
        free(p->src[s].kept);
    }
    for (int d = 0; d < p->reduce.dst_count; d++) {
        free(p->dst[d].memory);
        free(p->dst[d].kept);
    }
}

static void restore(const problem *p)
{
    for (int s = 0; s < p->reduce.src_count; s++)
        memcpy(p->src[s].memory, p->src[s].kept, p->src[s].bytes);
    for (int d = 0; d < p->reduce.dst_count; d++)
        memcpy(p->dst[d].memory, p->dst[d].kept, p->dst[d].bytes);
}

/* What the memory that destination `d` lies in must hold afterwards: the untouched bytes and the
 * results. */
static unsigned char *expect(const problem *p, int d)
{
    const tsr_box_reduce *const r = &p->reduce;
    const operand *const o = d == 0 && p->in_place >= 0 ? &p->src[p->in_place] : &p->dst[d];
    const int64_t element = (int64_t)tsr_dtype_bytes(r->dtype), count = count_of(r->ndim, r->shape);
    unsigned char *const expected = malloc(o->bytes);
    assert_non_null(expected);
    memcpy(expected, o->kept, o->bytes);
    for (int64_t i = 0; i < count; i++) {
        const void *terms[MOST];
        for (int s = 0; s < r->src_count; s++)
            terms[s] =
                p->src[s].kept + (int64_t)p->src[s].at + offset_of(r->ndim, r->shape, r->src_strides[s], i) * element;
        unsigned char *const to =
            expected + (int64_t)o->at + offset_of(r->ndim, r->shape, r->dst_strides[d], i) * element;
        reference_reduce(r->dtype, r->op, r->divisor, terms, r->src_count, to);
    }
    return expected;
}

static void run_problem(uint64_t seed, problem *p, arrangement how)
{
    uint64_t state = seed;
    variant all[3];
    unsigned char *expected[MOST];
    const int variants = list_variants(all);
    make_problem(&state, p, how);
    for (int d = 0; d < p->reduce.dst_count; d++)
        expected[d] = expect(p, d);
    for (int v = 0; v < variants; v++) {
        restore(p);
        assert_int_equal(all[v].table->reduce(NULL, 0, &p->reduce, NULL), TSR_OK);
        for (int d = 0; d < p->reduce.dst_count; d++) {
            const operand *const o = d == 0 && p->in_place >= 0 ? &p->src[p->in_place] : &p->dst[d];
            if (memcmp(o->memory, expected[d], o->bytes) != 0)
                fail_msg("%s: %s of %d %s in %d dims to %d, in place %d, divisor %lld, arrangement %d, destination %d; "
                         "TSR_TEST_SEED=%llu",
                         all[v].name, tsr_reduce_op_name(p->reduce.op), p->reduce.src_count,
                         tsr_dtype_name(p->reduce.dtype), p->reduce.ndim, p->reduce.dst_count, p->in_place,
                         (long long)p->reduce.divisor, how, d, (unsigned long long)seed);
        }
        for (int s = 0; s < p->reduce.src_count; s++)
            if (s != p->in_place)
                assert_memory_equal(p->src[s].memory, p->src[s].kept, p->src[s].bytes);
    }
    for (int d = 0; d < p->reduce.dst_count; d++)
        free(expected[d]);
    free_problem(p);
}

static bool has_op(tsr_dtype dtype, int op)
{
    return (tsr_dtype_get(dtype)->reduce_ops & (1u << op)) != 0;
}

/* Calls `each` for every dtype, each of its ops, and every number of sources. */
static void for_all_reductions(void (*each)(uint64_t seed, problem *p))
{
    const uint64_t seed = seed_of(4);
    for (int dtype = TSR_DTYPE_NONE + 1; dtype < TSR_DTYPE_END; dtype++)
        for (int op = 0; op < TSR_REDUCE_OP_END; op++)
            for (int sources = 1; has_op((tsr_dtype)dtype, op) && sources <= MOST; sources++) {
                problem p = {.reduce = {.dtype = (tsr_dtype)dtype,
                                        .op = (tsr_reduce_op)op,
                                        .divisor = 1,
                                        .src_count = sources,
                                        .dst_count = 1},
                             .in_place = -1};
                if (op == TSR_AVG)
                    p.reduce.divisor = sources == 1 ? 7 : sources;
                each(seed + (uint64_t)sources, &p);
            }
}

static void reduce_a_row(uint64_t seed, problem *p)
{
    p->reduce.ndim = 1;
    p->reduce.shape[0] = 2500;
    run_problem(seed, p, ARRANGED_IN_ORDER);
}

static void every_dtype_op_and_number_of_sources_gives_the_reference_bits(void **state)
{
    (void)state;
    for_all_reductions(reduce_a_row);
}

static void reduce_boxes(uint64_t seed, problem *p)
{
    uint64_t draws = seed * 31 + (uint64_t)p->reduce.dtype;
    for (int how = ARRANGED_IN_ORDER; how <= ARRANGED_WITH_REPEATS; how++) {
        p->reduce.ndim = (int)draw_between(&draws, 0, TSR_MAX_DIMS);
        p->reduce.dst_count = (int)draw_between(&draws, 1, 3);
        p->in_place = (int)draw_between(&draws, -1, p->reduce.src_count - 1);
        for (int d = 0; d < p->reduce.ndim; d++)
            p->reduce.shape[d] = draw_between(&draws, 1, p->reduce.ndim <= 2 ? 40 : p->reduce.ndim <= 4 ? 6 : 2);
        run_problem(seed, p, (arrangement)how);
    }
}

static void operands_may_lie_in_memory_in_any_way(void **state)
{
    (void)state;
    for_all_reductions(reduce_boxes);
}

static void reduce_in_place(uint64_t seed, problem *p)
{
    p->reduce.ndim = 2;
    p->reduce.shape[0] = 3;
    p->reduce.shape[1] = 200;
    p->reduce.dst_count = 2;
    for (p->in_place = 0; p->in_place < p->reduce.src_count; p->in_place++)
        run_problem(seed, p, ARRANGED_WITH_GAPS);
}

static void a_destination_may_be_any_of_the_sources(void **state)
{
    (void)state;
    for_all_reductions(reduce_in_place);
}

static void large_reductions_go_past_the_cache(void **state)
{
    /* Each has results of 9 MiB, in one destination or in three. */
    static const struct {
        tsr_dtype dtype;
        int64_t rows;
        int dsts, in_place;
    } cases[] = {{TSR_F32, 1500, 1, -1}, {TSR_F16, 1500, 1, -1}, {TSR_F32, 500, 3, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t columns = (int64_t)(6000 / tsr_dtype_bytes(cases[i].dtype)) + 5;
        problem p = {.reduce = {.dtype = cases[i].dtype,
                                .divisor = 1,
                                .ndim = 2,
                                .shape = {cases[i].rows, columns},
                                .src_count = 2,
                                .dst_count = cases[i].dsts},
                     .in_place = cases[i].in_place};
        for (int how = ARRANGED_IN_ORDER + (int)i % step_of(2); how <= ARRANGED_WITH_GAPS; how += step_of(2))
            run_problem(i + 1, &p, (arrangement)how);
    }
}

static void empty_boxes_touch_nothing(void **state)
{
    variant all[3];
    const void *const src[1] = {NULL};
    void *const dst[1] = {NULL};
    const int64_t strides[1][TSR_MAX_DIMS] = {{1}};
    const tsr_box_reduce reduce = {.dtype = TSR_F32,
                                   .divisor = 1,
                                   .ndim = 2,
                                   .shape = {3, 0},
                                   .src_count = 1,
                                   .dst_count = 1,
                                   .src = src,
                                   .src_strides = strides,
                                   .dst = dst,
                                   .dst_strides = strides};
    (void)state;
    for (int v = list_variants(all) - 1; v >= 0; v--)
        assert_int_equal(all[v].table->reduce(NULL, 0, &reduce, NULL), TSR_OK);
}

static void ops_that_a_dtype_does_not_have_are_refused(void **state)
{
    variant all[3];
    (void)state;
    for (int v = list_variants(all) - 1; v >= 0; v--)
        for (int dtype = TSR_DTYPE_NONE; dtype <= TSR_DTYPE_END; dtype++)
            for (int op = 0; op <= TSR_REDUCE_OP_END; op++) {
                unsigned char bytes[16] = {0};
                const void *const src[1] = {bytes};
                void *const dst[1] = {bytes};
                const int64_t strides[1][TSR_MAX_DIMS] = {{1}};
                const tsr_box_reduce reduce = {.dtype = (tsr_dtype)dtype,
                                               .op = (tsr_reduce_op)op,
                                               .divisor = 1,
                                               .src_count = 1,
                                               .dst_count = 1,
                                               .src = src,
                                               .src_strides = strides,
                                               .dst = dst,
                                               .dst_strides = strides};
                const bool known =
                    tsr_dtype_get((tsr_dtype)dtype) && op < TSR_REDUCE_OP_END && has_op((tsr_dtype)dtype, op);
                assert_int_equal(all[v].table->reduce(NULL, 0, &reduce, NULL), known ? TSR_OK : TSR_ERROR_UNSUPPORTED);
            }
}

static void reductions_that_are_none_are_refused(void **state)
{
    const tsr_box_reduce good = {
        .dtype = TSR_F32, .divisor = 1, .ndim = 1, .shape = {0}, .src_count = 1, .dst_count = 1};
    tsr_box_reduce bad[] = {good, good, good, good, good, good, good};
    variant all[3];
    (void)state;
    bad[0].ndim = 9;
    bad[1].shape[0] = -1;
    bad[2].src_count = 0;
    bad[3].dst_count = 0;
    bad[4].divisor = 0;
    bad[5].divisor = 2;
    bad[5].op = TSR_MAX;
    bad[6].divisor = 2;
    bad[6].dtype = TSR_I32;
    for (int v = list_variants(all) - 1; v >= 0; v--)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
            assert_int_equal(all[v].table->reduce(NULL, 0, &bad[i], NULL), TSR_ERROR_ARGUMENT);
}

int device_reduce(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_op_and_number_of_sources_gives_the_reference_bits),
        cmocka_unit_test(operands_may_lie_in_memory_in_any_way),
        cmocka_unit_test(a_destination_may_be_any_of_the_sources),
        cmocka_unit_test(large_reductions_go_past_the_cache),
        cmocka_unit_test(empty_boxes_touch_nothing),
        cmocka_unit_test(ops_that_a_dtype_does_not_have_are_refused),
        cmocka_unit_test(reductions_that_are_none_are_refused),
    };
    return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
