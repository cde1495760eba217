/* Every way of every set of kernels writes the bytes that a plain loop writes, and no others. */
#include "device/host/choose.h"
#include "variants.h"

#include <tessera/context.h>

#define BEYOND 192 /* bytes before and after a destination that must stay as they are */

typedef struct memory {
    unsigned char *whole, *at;
    size_t bytes;
} memory;

static memory make_memory(size_t bytes, size_t misaligned)
{
    memory m = {.bytes = bytes};
    /* Without misalignment the memory begins at a cache line, as some ways need. */
    m.whole = aligned_alloc(64, (bytes + 2 * BEYOND + 64 + 63) & ~(size_t)63);
    assert_non_null(m.whole);
    m.at = m.whole + BEYOND + misaligned;
    return m;
}

static void fill_all(memory *m, uint64_t *state)
{
    draw_bytes(state, m->whole, m->bytes + 2 * BEYOND + 64);
}

/* Makes choices like those of a rank, but for calls of any size. */
static tsr_kernel_choices *choices_of(const char *kernels)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    tsr_kernel_choices *choices;
    options.kernels = kernels;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_int_equal(tsr_kernel_choices_create(context, &choices), TSR_OK);
    tsr_context_destroy(context);
    choices->large = 1;
    return choices;
}

/* Rows of `run` bytes in a plane, with strides of both sides. */
typedef struct rows_case {
    int64_t outer, inner, run, dst_gap, src_gap;
    size_t dst_misaligned, src_misaligned;
} rows_case;

static tsr_box_copy box_of(const rows_case *c, void *dst, const void *src)
{
    const int64_t dst_row = c->run + c->dst_gap, src_row = c->run + c->src_gap;
    return (tsr_box_copy){.dst = dst,
                          .src = src,
                          .element_bytes = 1,
                          .ndim = 3,
                          .shape = {c->outer, c->inner, c->run},
                          .dst_strides = {c->inner * dst_row + c->dst_gap, dst_row, 1},
                          .src_strides = {c->inner * src_row + c->src_gap, src_row, 1}};
}

static int64_t span_of(const tsr_box_copy *box, const int64_t *strides)
{
    int64_t span = 1;
    for (int d = 0; d < box->ndim; d++)
        span += (box->shape[d] - 1) * strides[d];
    return span;
}

static void copy_plainly(const tsr_box_copy *box)
{
    for (int64_t i = 0; i < box->shape[0]; i++)
        for (int64_t j = 0; j < box->shape[1]; j++)
            for (int64_t k = 0; k < box->shape[2]; k++)
                ((unsigned char *)box->dst)[i * box->dst_strides[0] + j * box->dst_strides[1] + k] =
                    ((const unsigned char *)box->src)[i * box->src_strides[0] + j * box->src_strides[1] + k];
}

static void check_copy(const rows_case *c, uint64_t seed)
{
    uint64_t state = seed;
    variant variants[3];
    tsr_box_copy box = box_of(c, NULL, NULL);
    const size_t bytes = (size_t)span_of(&box, box.dst_strides);
    memory src = make_memory((size_t)span_of(&box, box.src_strides), c->src_misaligned),
           dst = make_memory(bytes, c->dst_misaligned), expected = make_memory(bytes, c->dst_misaligned);
    const int count = list_variants(variants);
    fill_all(&src, &state);
    fill_all(&dst, &state);
    memcpy(expected.whole, dst.whole, bytes + 2 * BEYOND + 64);
    unsigned char *const before = malloc(bytes + 2 * BEYOND + 64);
    assert_non_null(before);
    memcpy(before, dst.whole, bytes + 2 * BEYOND + 64);
    box = box_of(c, expected.at, src.at);
    copy_plainly(&box);
    for (size_t way = 0; tsr_kernel_way_get(way); way++) {
        tsr_kernel_choices *const choices = choices_of(tsr_kernel_way_get(way));
        for (int v = 0; v < count; v++) {
            memcpy(dst.whole, before, bytes + 2 * BEYOND + 64);
            box = box_of(c, dst.at, src.at);
            assert_int_equal(variants[v].table->copy_boxes(choices, 0, &box, 1, NULL), TSR_OK);
            if (memcmp(dst.whole, expected.whole, bytes + 2 * BEYOND + 64) != 0)
                fail_msg("%s, %s: %lld x %lld rows of %lld bytes, gaps %lld and %lld, misaligned by %zu and %zu",
                         variants[v].name, tsr_kernel_way_get(way), (long long)c->outer, (long long)c->inner,
                         (long long)c->run, (long long)c->dst_gap, (long long)c->src_gap, c->dst_misaligned,
                         c->src_misaligned);
        }
        tsr_kernel_choices_destroy(choices);
    }
    free(before);
    free(src.whole);
    free(dst.whole);
    free(expected.whole);
}

static void every_way_copies_the_same_bytes(void **state)
{
    static const int64_t runs[] = {1,    64,   255,  256,  257,  319,   320,   1000,
                                   1023, 1024, 4095, 4096, 4160, 16384, 16385, 20000};
    static const int64_t inners[] = {1, 3, 4, 5, 9};
    const int step = step_of(3);
    int at = 0;
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++)
        for (size_t i = 0; i < sizeof inners / sizeof *inners; i++)
            for (int64_t gap = 0; gap < 3; gap++, at++) {
                if (at % step != 0)
                    continue;
                const rows_case c = {.outer = 1 + at % 3 * 2,
                                     .inner = inners[i],
                                     .run = runs[r],
                                     .dst_gap = gap * 64,
                                     .src_gap = gap * 37,
                                     .dst_misaligned = (size_t)(at * 7 % 64),
                                     .src_misaligned = (size_t)(at * 5 % 64)};
                check_copy(&c, seed_of(1) + (uint64_t)at);
            }
}

/* A long row is copied in pieces, each of which may go another way. */
static void long_rows_are_copied_whole(void **state)
{
    static const int64_t runs[] = {1 << 20, (1 << 20) - 1, (1 << 21) + 4097};
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++)
        for (int64_t inner = 1; inner < 3; inner++) {
            const rows_case c = {.outer = 1,
                                 .inner = inner,
                                 .run = runs[r],
                                 .dst_gap = inner - 1,
                                 .src_gap = 3 * (inner - 1),
                                 .dst_misaligned = 3};
            check_copy(&c, seed_of(2));
        }
}

/* A clock by which each way is the best in its turn, so that one call goes many ways. */
static uint64_t odd_clock(void *user)
{
    uint64_t *const state = user;
    return *state += 1 + draw(state) % 1000;
}

static void choosing_copies_the_same_bytes(void **state)
{
    tsr_kernel_choices *const choices = choices_of("measured");
    uint64_t clock = seed_of(3), random = seed_of(4);
    variant variants[3];
    const int count = list_variants(variants);
    const size_t bytes = (size_t)24 << 20;
    unsigned char *const src = malloc(2 * bytes), *const dst = malloc(bytes);
    (void)state;
    assert_non_null(src);
    assert_non_null(dst);
    draw_bytes(&random, src, 2 * bytes);
    choices->now = odd_clock;
    choices->user = &clock;
    for (int v = 0; v < count; v++)
        for (int64_t run = 4096; run <= 1 << 20; run *= 16) {
            const int64_t rows = (int64_t)bytes / run;
            const tsr_box_copy box = {.dst = dst,
                                      .src = src,
                                      .element_bytes = 1,
                                      .ndim = 2,
                                      .shape = {rows, run},
                                      .dst_strides = {run, 1},
                                      .src_strides = {2 * run, 1}};
            memset(dst, 0, bytes);
            assert_int_equal(variants[v].table->copy_boxes(choices, 0, &box, 1, NULL), TSR_OK);
            for (int64_t row = 0; row < rows; row++)
                assert_memory_equal(dst + row * run, src + 2 * row * run, (size_t)run);
        }
    free(src);
    free(dst);
    tsr_kernel_choices_destroy(choices);
}

typedef struct sums_case {
    tsr_dtype dtype;
    tsr_reduce_op op;
    int64_t rows, columns, gap;
    int sources, destinations;
    size_t misaligned;
} sums_case;

#define MOST 5

/* Reduces in one way. */
static void reduce_in(const sums_case *c, const tsr_device_table *table, tsr_kernel_choices *choices, void *const *src,
                      void *const *dst)
{
    int64_t strides[MOST][TSR_MAX_DIMS];
    for (int i = 0; i < MOST; i++) {
        strides[i][0] = c->columns + c->gap;
        strides[i][1] = 1;
    }
    const tsr_box_reduce reduce = {.dtype = c->dtype,
                                   .op = c->op,
                                   .divisor = c->op == TSR_AVG ? c->sources : 1,
                                   .ndim = 2,
                                   .shape = {c->rows, c->columns},
                                   .src_count = c->sources,
                                   .dst_count = c->destinations,
                                   .src = (const void *const *)src,
                                   .src_strides = (const int64_t(*)[TSR_MAX_DIMS])strides,
                                   .dst = dst,
                                   .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])strides};
    assert_int_equal(table->reduce(choices, 0, &reduce, NULL), TSR_OK);
}

/* Compares every way with a call without choices, which tests of reductions compare with a plain
 * loop. */
static void check_sums(const sums_case *c, uint64_t seed)
{
    uint64_t state = seed;
    variant variants[3];
    memory src[MOST], dst[MOST], expected[MOST];
    void *from[MOST], *to[MOST], *right[MOST];
    const size_t bytes = (size_t)(c->rows * (c->columns + c->gap)) * tsr_dtype_bytes(c->dtype);
    const int count = list_variants(variants);
    for (int i = 0; i < MOST; i++) {
        src[i] = make_memory(bytes, c->misaligned);
        dst[i] = make_memory(bytes, c->misaligned);
        expected[i] = make_memory(bytes, c->misaligned);
        fill_all(&src[i], &state);
        memset(dst[i].whole, 0x11, bytes + 2 * BEYOND + 64);
        memset(expected[i].whole, 0x11, bytes + 2 * BEYOND + 64);
        from[i] = src[i].at;
        to[i] = dst[i].at;
        right[i] = expected[i].at;
    }
    reduce_in(c, variants[0].table, NULL, from, right);
    for (size_t way = 0; tsr_kernel_way_get(way); way++) {
        tsr_kernel_choices *const choices = choices_of(tsr_kernel_way_get(way));
        for (int v = 0; v < count; v++) {
            for (int i = 0; i < c->destinations; i++)
                memset(dst[i].whole, 0x11, bytes + 2 * BEYOND + 64);
            reduce_in(c, variants[v].table, choices, from, to);
            for (int i = 0; i < c->destinations; i++)
                if (memcmp(dst[i].whole, expected[i].whole, bytes + 2 * BEYOND + 64) != 0)
                    fail_msg("%s, %s: %s %s of %d, %lld x %lld, gap %lld, misaligned by %zu", variants[v].name,
                             tsr_kernel_way_get(way), tsr_reduce_op_name(c->op), tsr_dtype_name(c->dtype), c->sources,
                             (long long)c->rows, (long long)c->columns, (long long)c->gap, c->misaligned);
        }
        tsr_kernel_choices_destroy(choices);
    }
    for (int i = 0; i < MOST; i++) {
        free(src[i].whole);
        free(dst[i].whole);
        free(expected[i].whole);
    }
}

static void every_way_reduces_to_the_same_bytes(void **state)
{
    static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16, TSR_F8E4M3,
                                       TSR_I8,  TSR_I32, TSR_U16, TSR_C64,  TSR_C128};
    static const int64_t columns[] = {1, 100, 4096, 8192, 20000};
    const int step = step_of(3);
    int at = 0;
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
            for (int sources = 1; sources <= MOST; sources += 2 - sources % 2, at++) {
                if (at % step != 0)
                    continue;
                const sums_case c = {
                    .dtype = dtypes[d],
                    .op = at % 3 == 0 && tsr_dtype_bytes(dtypes[d]) > 1 && dtypes[d] < TSR_I64 ? TSR_AVG : TSR_SUM,
                    .rows = 1 + at % 3,
                    .columns = columns[n],
                    .gap = at % 2 * 3,
                    .sources = sources,
                    .destinations = 1 + at % 2,
                    .misaligned = (size_t)(at * 8 % 64)};
                check_sums(&c, seed_of(5) + (uint64_t)at);
            }
}

/* Rows of which whole lines go to memory as they are reduced, for every dtype and op. */
static void every_way_streams_every_reduction(void **state)
{
    const int step = step_of(5);
    int at = 0;
    (void)state;
    for (tsr_dtype dtype = TSR_DTYPE_NONE + 1; dtype < TSR_DTYPE_END; dtype++)
        for (tsr_reduce_op op = 0; op < TSR_REDUCE_OP_END; op++)
            for (int sources = 2; sources <= MOST; sources += 2 - sources % 2) {
                if ((tsr_dtype_get(dtype)->reduce_ops & 1u << op) == 0 || at++ % step != 0)
                    continue;
                const sums_case c = {.dtype = dtype,
                                     .op = op,
                                     .rows = 2,
                                     .columns = (int64_t)((20u << 10) / tsr_dtype_bytes(dtype)),
                                     .sources = sources,
                                     .destinations = 1 + at % 3,
                                     .gap = at % 2 * (int64_t)(192 / tsr_dtype_bytes(dtype))};
                check_sums(&c, seed_of(6) + (uint64_t)at);
            }
}

/* The sum of all sources goes to the first source, and to the last. */
static void check_in_place(const variant *v, const char *way, int sources)
{
    const int64_t columns = 12 << 10;
    tsr_kernel_choices *const choices = choices_of(way);
    memory of[MOST];
    void *from[MOST], *to[MOST] = {NULL};
    for (int s = 0; s < MOST; s++) {
        of[s] = make_memory((size_t)columns * 4, 0);
        from[s] = of[s].at;
        for (uint32_t i = 0; i < columns; i++)
            ((uint32_t *)from[s])[i] = i * (uint32_t)(s + 1);
    }
    to[0] = from[0];
    to[1] = from[sources - 1];
    const sums_case c = {
        .dtype = TSR_U32, .op = TSR_SUM, .rows = 1, .columns = columns, .sources = sources, .destinations = 2};
    reduce_in(&c, v->table, choices, from, to);
    for (uint32_t i = 0; i < columns; i++)
        for (int d = 0; d < 2; d++)
            if (((uint32_t *)to[d])[i] != i * (uint32_t)(sources * (sources + 1) / 2))
                fail_msg("%s, %s, %d sources: element %u of destination %d is %u", v->name, way, sources, i, d,
                         ((uint32_t *)to[d])[i]);
    for (int s = 0; s < MOST; s++)
        free(of[s].whole);
    tsr_kernel_choices_destroy(choices);
}

static void streamed_sums_may_be_in_place(void **state)
{
    variant variants[3];
    const int count = list_variants(variants);
    (void)state;
    for (size_t way = 0; tsr_kernel_way_get(way); way++)
        for (int v = 0; v < count; v++)
            for (int sources = 2; sources <= MOST; sources++)
                check_in_place(&variants[v], tsr_kernel_way_get(way), sources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_copies_the_same_bytes),   cmocka_unit_test(long_rows_are_copied_whole),
        cmocka_unit_test(choosing_copies_the_same_bytes),    cmocka_unit_test(every_way_reduces_to_the_same_bytes),
        cmocka_unit_test(every_way_streams_every_reduction), cmocka_unit_test(streamed_sums_may_be_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
