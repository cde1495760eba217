/* Tokens that go to experts and come back, over every engine and many meshes: all rows, sums and
 * gradients are those of plain lists and of the dense formula, whose small integers are exact. */
#include "comm_suite.h"
#include "counted_memory.h"
#include "experts_oracle.h"

#include <tessera/mesh.h>

#include <math.h>
#include <stdlib.h>

enum { WIDTH = 21, GAP = 3, ROUNDS = 3, GUARD = 0x5a, ROWS_BYTES = EXPERTS_ROWS * (WIDTH + GAP) * 8 };

static const experts_site sites[] = {
    {1, "1", "S(0)", "e", 3},
    {1, "1", "R", "r", 4},
    {2, "2", "S(0)", "e", 8},
    {2, "2", "S(0;sizes=0,5)", "e", 5},
    {2, "2", "R", "r", 3},
    {2, "2", "S(1)", "t", 3},
    {2, "2", "S(0;interleave=2)", "e", 8},
    {3, "3", "S(0;sizes=4,1,2)", "e", 7},
    {3, "3", "S(0)", "e", 2},
    {3, "3@[2,0,1]", "S(0;balanced)", "e", 5},
    {4, "2x2", "R,S(0)", "re", 6},
    {4, "2x2", "S(0),S(1)", "et", 5},
    {4, "2x2", "S(1),S(0)", "te", 4},
    {4, "2x2@[3,1,0,2]", "S(0),S(1)", "et", 4},
    {4, "2x2", "S(0),S(0)", "ee", 7},
    {4, "4", "S(0)", "e", 3},
    {4, "4", "S(0)", "e", 0},
    {6, "3x2", "S(0;sizes=1,0,4),S(1)", "et", 5},
    {6, "2x3", "R,S(0)", "re", 4},
    {8, "2x2x2", "R,S(0),S(1)", "ret", 5},
    {8, "8", "S(0;interleave=1)", "e", 12},
};
enum { SITES = sizeof sites / sizeof *sites };

/* What the ranks of a run play. */
typedef struct play_case {
    const experts_site *site;
    tsr_dtype dtype, ids, weights;
    int64_t slots;
    tsr_experts_options options;
    int64_t room; /* see experts_round */
    bool gaps;    /* between rows */
    bool shared;  /* rows are in memory of tsr_comm_alloc() */
} play_case;

/* One rank's memory. */
typedef struct stage {
    const play_case *c;
    experts_round r;
    int rank;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_experts_plan *plan;
    int64_t tokens, stride;
    unsigned char x[EXPERTS_TOKENS * (WIDTH + GAP) * 8], out[EXPERTS_TOKENS * (WIDTH + GAP) * 8];
    unsigned char weights[EXPERTS_TOKENS * EXPERTS_SLOTS * 8], dweights[EXPERTS_TOKENS * EXPERTS_SLOTS * 8];
    unsigned char own_rows[2][ROWS_BYTES], *rows, *drows;
    unsigned char ids[EXPERTS_TOKENS * EXPERTS_SLOTS * 8];
    int64_t sizes[EXPERTS_MOST];
    /* by the oracle */
    experts_row list[EXPERTS_ROWS];
    int64_t count, listed[EXPERTS_MOST], experts, needed;
    bool keeps[EXPERTS_TOKENS][EXPERTS_SLOTS];
} stage;

/* The bits of a number of 0 or more; bf16 rounds to nearest even, others have it exactly. */
static void put(tsr_dtype dtype, void *at, double value)
{
    const float single = (float)value;
    uint32_t bits;
    int exponent;
    memcpy(&bits, &single, sizeof bits);
    const double fraction = frexp(value, &exponent);
    const uint16_t upper = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16),
                   half = value == 0 ? 0 : (uint16_t)((exponent + 14) << 10 | (int)((2 * fraction - 1) * 1024));
    if (dtype == TSR_F64)
        memcpy(at, &value, sizeof value);
    else if (dtype == TSR_F32)
        memcpy(at, &single, sizeof single);
    else
        memcpy(at, dtype == TSR_BF16 ? &upper : &half, sizeof upper);
}

static double get(tsr_dtype dtype, const void *at)
{
    double value = 0;
    float single = 0;
    uint16_t code = 0;
    if (dtype == TSR_F64)
        memcpy(&value, at, sizeof value);
    else if (dtype == TSR_F32)
        memcpy(&single, at, sizeof single);
    else
        memcpy(&code, at, sizeof code);
    if (dtype == TSR_BF16) {
        const uint32_t bits = (uint32_t)code << 16;
        memcpy(&single, &bits, sizeof single);
    }
    if (dtype == TSR_F16)
        single = code == 0 ? 0 : (float)ldexp(1 + (code & 1023) / 1024.0, (code >> 10) - 15);
    return dtype == TSR_F64 ? value : single;
}

static unsigned char *element(const stage *s, const unsigned char *memory, int64_t row, int64_t column)
{
    return (unsigned char *)memory + (size_t)(row * s->stride + column) * tsr_dtype_bytes(s->c->dtype);
}

/* A tensor of rows of the plan's dtype. */
static tsr_tensor rows_at(const stage *s, const void *memory, int64_t rows)
{
    const int64_t shape[] = {rows, WIDTH};
    tsr_tensor t = tsr_tensor_contiguous((void *)memory, s->c->dtype, 2, shape);
    t.strides[0] = s->stride;
    return t;
}

/* A tensor of (tokens, slots); with gaps, its slots lie apart. */
static tsr_tensor slots_at(const stage *s, const void *memory, tsr_dtype dtype)
{
    const int64_t shape[] = {s->tokens, s->c->slots};
    tsr_tensor t = tsr_tensor_contiguous((void *)memory, dtype, 2, shape);
    if (s->c->gaps) {
        t.strides[0] = 1;
        t.strides[1] = EXPERTS_TOKENS;
    }
    return t;
}

static unsigned char *slot_of(const tsr_tensor *t, int64_t token, int64_t slot)
{
    return (unsigned char *)t->data +
           (size_t)(token * t->strides[0] + slot * t->strides[1]) * tsr_dtype_bytes(t->dtype);
}

/* Sets what this rank brings in a round, and what it must get. */
static void begin_round(stage *s, int round)
{
    s->r.round = round;
    s->tokens = experts_tokens(&s->r, s->rank);
    memset(s->rows, GUARD, ROWS_BYTES);
    memset(s->drows, GUARD, ROWS_BYTES);
    memset(s->out, GUARD, sizeof s->out);
    const tsr_tensor ids = slots_at(s, s->ids, s->c->ids), weights = slots_at(s, s->weights, s->c->weights);
    for (int64_t token = 0; token < s->tokens; token++) {
        for (int64_t column = 0; column < WIDTH; column++)
            put(s->c->dtype, element(s, s->x, token, column), experts_x(&s->r, s->rank, token, column));
        for (int64_t slot = 0; slot < s->c->slots; slot++) {
            const int64_t id = experts_id(&s->r, s->rank, token, slot);
            const int32_t narrow = (int32_t)id;
            memcpy(slot_of(&ids, token, slot), ids.dtype == TSR_I64 ? (const void *)&id : &narrow,
                   tsr_dtype_bytes(ids.dtype));
            put(weights.dtype, slot_of(&weights, token, slot), experts_weight(&s->r, s->rank, token, slot));
            s->keeps[token][slot] = id >= 0 && experts_keeps(&s->r, s->rank, token, slot);
        }
    }
    s->count = experts_list(&s->r, s->rank, s->list, s->listed, &s->experts, &s->needed);
}

static tsr_status check_guard(const stage *s, const unsigned char *memory, int64_t rows)
{
    for (size_t at = (size_t)(rows * s->stride) * tsr_dtype_bytes(s->c->dtype); at < ROWS_BYTES; at++)
        CHECK(memory[at] == GUARD);
    return TSR_OK;
}

static tsr_status dispatch(stage *s)
{
    const tsr_tensor x = rows_at(s, s->x, s->tokens), ids = slots_at(s, s->ids, s->c->ids),
                     rows = rows_at(s, s->rows, experts_room(&s->r, s->rank)),
                     sizes = tsr_tensor_contiguous(s->sizes, TSR_I64, 1, &s->experts);
    CHECK(tsr_experts_plan_count(s->plan) == s->experts);
    TSR_TRY(tsr_experts_dispatch(s->plan, &x, &ids, &rows, &sizes));
    CHECK(tsr_experts_plan_needed(s->plan) == s->needed);
    CHECK(memcmp(s->sizes, s->listed, (size_t)s->experts * sizeof *s->sizes) == 0);
    int64_t dropped = 0;
    for (int64_t token = 0; token < s->tokens; token++)
        for (int64_t slot = 0; slot < s->c->slots; slot++)
            dropped += experts_id(&s->r, s->rank, token, slot) >= 0 && !s->keeps[token][slot];
    CHECK(tsr_experts_plan_dropped(s->plan) == dropped);
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t column = 0; column < WIDTH; column++)
            CHECK(get(s->c->dtype, element(s, s->rows, i, column)) ==
                  experts_x(&s->r, s->list[i].rank, s->list[i].token, column));
    return check_guard(s, s->rows, s->count);
}

/* This rank's part of its experts: rows times a number. */
static void run_experts(stage *s, unsigned char *rows)
{
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t column = 0; column < WIDTH; column++) {
            unsigned char *const at = element(s, rows, i, column);
            put(s->c->dtype, at,
                get(s->c->dtype, at) * experts_factor(s->list[i].expert, experts_part(&s->r, s->rank)));
        }
}

/* What all parts of a slot's expert multiply by; 0 without a row. */
static double dense_factor(const stage *s, int64_t token, int64_t slot)
{
    double factor = 0;
    for (int64_t part = 0; part < experts_parts(&s->r) && s->keeps[token][slot]; part++)
        factor += experts_factor(experts_id(&s->r, s->rank, token, slot), part);
    return factor;
}

static tsr_status check_combined(const stage *s, bool weighted)
{
    for (int64_t token = 0; token < s->tokens; token++)
        for (int64_t column = 0; column < WIDTH; column++) {
            double sum = 0;
            for (int64_t slot = 0; slot < s->c->slots; slot++)
                sum += (weighted ? experts_weight(&s->r, s->rank, token, slot) : 1) * dense_factor(s, token, slot);
            CHECK(get(s->c->dtype, element(s, s->out, token, column)) ==
                  sum * experts_x(&s->r, s->rank, token, column));
        }
    return TSR_OK;
}

static tsr_status combine(stage *s)
{
    const tsr_tensor out = rows_at(s, s->out, s->tokens), weights = slots_at(s, s->weights, s->c->weights),
                     rows = rows_at(s, s->rows, s->count);
    run_experts(s, s->rows);
    TSR_TRY(tsr_experts_combine(s->plan, &rows, NULL, &out));
    TSR_TRY(check_combined(s, false));
    TSR_TRY(tsr_experts_combine(s->plan, &rows, &weights, &out));
    return check_combined(s, true);
}

/* The gradients of a combine whose `dout` is x. */
static tsr_status combine_backward(stage *s)
{
    const tsr_tensor x = rows_at(s, s->x, s->tokens), weights = slots_at(s, s->weights, s->c->weights),
                     dweights = slots_at(s, s->dweights, s->c->weights), rows = rows_at(s, s->rows, s->count),
                     drows = rows_at(s, s->drows, experts_room(&s->r, s->rank));
    TSR_TRY(tsr_experts_combine_backward(s->plan, &x, NULL, NULL, &drows, NULL));
    for (int64_t i = 0; i < s->count; i++)
        CHECK(get(s->c->dtype, element(s, s->drows, i, 1)) == experts_x(&s->r, s->list[i].rank, s->list[i].token, 1));
    TSR_TRY(tsr_experts_combine_backward(s->plan, &x, &weights, &rows, &drows, &dweights));
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t column = 0; column < WIDTH; column++)
            CHECK(get(s->c->dtype, element(s, s->drows, i, column)) ==
                  experts_weight(&s->r, s->list[i].rank, s->list[i].token, s->list[i].slot) *
                      experts_x(&s->r, s->list[i].rank, s->list[i].token, column));
    for (int64_t token = 0; token < s->tokens; token++)
        for (int64_t slot = 0; slot < s->c->slots; slot++) {
            unsigned char wanted[8];
            double product = 0;
            for (int64_t column = 0; column < WIDTH; column++)
                product += pow(experts_x(&s->r, s->rank, token, column), 2) * dense_factor(s, token, slot);
            put(dweights.dtype, wanted, product);
            CHECK(memcmp(slot_of(&dweights, token, slot), wanted, tsr_dtype_bytes(dweights.dtype)) == 0);
        }
    return check_guard(s, s->drows, s->count);
}

static tsr_status dispatch_backward(stage *s)
{
    const tsr_tensor drows = rows_at(s, s->drows, s->count), dx = rows_at(s, s->out, s->tokens);
    run_experts(s, s->drows);
    TSR_TRY(tsr_experts_dispatch_backward(s->plan, &drows, &dx));
    return check_combined(s, true);
}

static tsr_status play_round(stage *s, int round)
{
    begin_round(s, round);
    TSR_TRY(dispatch(s));
    TSR_TRY(combine(s));
    TSR_TRY(combine_backward(s));
    return dispatch_backward(s);
}

static tsr_status play(stage *s, tsr_comm *comm)
{
    const play_case *const c = s->c;
    const int64_t shape[] = {c->site->experts, 4};
    s->rank = tsr_comm_rank(comm);
    s->stride = WIDTH + (c->gaps ? GAP : 0);
    TSR_TRY(tsr_mesh_parse(comm, NULL, c->site->mesh, &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, c->site->placements, 2, shape, TSR_F32, &s->layout));
    s->r = (experts_round){.site = c->site,
                           .layout = s->layout,
                           .slots = c->slots,
                           .capacity = c->options.expert_capacity,
                           .room = c->room};
    s->rows = s->own_rows[0];
    s->drows = s->own_rows[1];
    if (c->shared) {
        void *memory;
        TSR_TRY(tsr_comm_alloc(comm, 2 * ROWS_BYTES, &memory));
        s->rows = memory;
        s->drows = s->rows + ROWS_BYTES;
    }
    TSR_TRY(tsr_experts_plan_create(s->layout, EXPERTS_TOKENS, c->slots, WIDTH, c->dtype, &c->options, &s->plan));
    for (int round = 0; round < ROUNDS; round++)
        TSR_TRY(play_round(s, round));
    const size_t asked = counted_asked_here();
    for (int round = 0; round < ROUNDS; round++)
        TSR_TRY(play_round(s, round));
    CHECK(suite_engine->apart || counted_asked_here() == asked);
    return TSR_OK;
}

static tsr_status play_on_rank(tsr_comm *comm, void *arg)
{
    stage *const s = calloc(1, sizeof *s);
    CHECK(s);
    s->c = arg;
    const tsr_status status = play(s, comm);
    if (s->c->shared && s->drows)
        tsr_comm_free(comm, s->rows, 2 * ROWS_BYTES);
    tsr_experts_plan_destroy(s->plan);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
    free(s);
    return status;
}

static void run_case(play_case c)
{
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context;
    suite_run_with(c.site->ranks, play_on_rank, &c, &options);
    tsr_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}

static const tsr_experts_options fails = TSR_EXPERTS_OPTIONS_INIT;

static void every_mesh_gives_the_dense_formula(void **state)
{
    (void)state;
    for (int i = 0; i < SITES; i++) {
        run_case((play_case){&sites[i], TSR_F32, TSR_I64, TSR_F32, 2, fails, -1, false, false});
        run_case((play_case){&sites[i], TSR_F32, TSR_I32, TSR_F32, 3, fails, -1, true, true});
    }
}

static void every_dtype_gives_the_dense_formula(void **state)
{
    static const tsr_dtype dtypes[][2] = {
        {TSR_F64, TSR_F64}, {TSR_F64, TSR_F32}, {TSR_BF16, TSR_F32}, {TSR_BF16, TSR_BF16}, {TSR_F16, TSR_F32}};
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int i = 0; i < SITES; i++)
            if (sites[i].ranks == 3 || sites[i].ranks == 6)
                run_case((play_case){&sites[i], dtypes[d][0], TSR_I64, dtypes[d][1], 2, fails, -1, d % 2 == 0, d == 2});
}

static void rows_beyond_the_room_or_the_capacity_are_dropped(void **state)
{
    (void)state;
    for (int i = 0; i < SITES; i++) {
        tsr_experts_options drops = TSR_EXPERTS_OPTIONS_INIT;
        drops.overflow = TSR_EXPERTS_DROP;
        drops.expert_capacity = i % 3 ? 3 : 0;
        run_case(
            (play_case){&sites[i], TSR_F32, TSR_I64, TSR_F32, 3, drops, i % 3 == 1 ? -1 : 4 - i % 3, false, false});
    }
}

/* One token of each rank, which goes to the expert of the other rank of its slice; those of dp 0
 * make another call, for which the others do not wait. */
static tsr_status play_on_slices(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL, *slice = NULL;
    tsr_layout *layout = NULL;
    tsr_experts_plan *plan = NULL;
    const int rank = tsr_comm_rank(comm);
    const int64_t shape[] = {2}, one[] = {1, 1};
    int64_t id = 1 - rank % 2, size = 0;
    float x = (float)rank, row = -1, out = -1;
    const tsr_tensor tokens = tsr_tensor_contiguous(&x, TSR_F32, 2, one),
                     ids = tsr_tensor_contiguous(&id, TSR_I64, 2, one),
                     rows = tsr_tensor_contiguous(&row, TSR_F32, 2, one),
                     sizes = tsr_tensor_contiguous(&size, TSR_I64, 1, one),
                     result = tsr_tensor_contiguous(&out, TSR_F32, 2, one);
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "dp=2,ep=2", &mesh));
    TSR_TRY(tsr_mesh_slice(mesh, "ep", &slice));
    TSR_TRY(tsr_layout_parse(slice, "S(0)", 1, shape, TSR_F32, &layout));
    TSR_TRY(tsr_experts_plan_create(layout, 1, 1, 1, TSR_F32, NULL, &plan));
    for (int call = rank / 2; call < 2; call++) {
        TSR_TRY(tsr_experts_dispatch(plan, &tokens, &ids, &rows, &sizes));
        CHECK(size == 1 && row == (float)(rank ^ 1));
        row *= 10;
        TSR_TRY(tsr_experts_combine(plan, &rows, NULL, &result));
        CHECK(out == 10 * (float)rank);
    }
    tsr_experts_plan_destroy(plan);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(slice);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void slices_have_experts_of_their_own(void **state)
{
    (void)state;
    suite_run(4, play_on_slices, NULL);
}

/* A dtype, and the codes of 0, 1 and 2, and of three times these. */
typedef struct large_case {
    tsr_dtype dtype;
    uint32_t once[3], thrice[3];
} large_case;

enum { LARGE_TOKENS = 2100, LARGE_ROW = 4100 };

/* Both ranks send all tokens to both experts, with weights of 1 and 2: they come back thrice. Rows
 * are so many that they are written past the cache, and begin within a line of it. */
static tsr_status play_large(tsr_comm *comm, void *arg)
{
    const large_case *const c = arg;
    const size_t bytes = tsr_dtype_bytes(c->dtype);
    const int64_t width = LARGE_ROW / (int64_t)bytes, count = LARGE_TOKENS * width, experts[] = {2}, one = 1;
    const int64_t shape[] = {LARGE_TOKENS, width}, room[] = {2 * LARGE_TOKENS, width}, slots[] = {LARGE_TOKENS, 2};
    unsigned char *const memory = calloc((size_t)(4 * count + 1), bytes), *const x = memory + bytes,
                         *const out = x + (size_t)count * bytes, *const rows = out + (size_t)count * bytes;
    unsigned char once[LARGE_ROW + 8], thrice[LARGE_ROW + 8]; /* rows begin with the first, second or third code */
    int64_t pair[] = {0, 1}, size = 0;
    float shares[] = {1, 2};
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_experts_plan *plan;
    CHECK(memory);
    for (int64_t i = 0; i < width + 2; i++) {
        memcpy(once + (size_t)i * bytes, &c->once[i % 3], bytes);
        memcpy(thrice + (size_t)i * bytes, &c->thrice[i % 3], bytes);
    }
    for (int64_t token = 0; token < LARGE_TOKENS; token++)
        memcpy(x + (size_t)(token * width) * bytes, once + (size_t)(token % 3) * bytes, (size_t)width * bytes);
    const tsr_tensor tokens = tsr_tensor_contiguous(x, c->dtype, 2, shape),
                     result = tsr_tensor_contiguous(out, c->dtype, 2, shape),
                     landing = tsr_tensor_contiguous(rows, c->dtype, 2, room),
                     sizes = tsr_tensor_contiguous(&size, TSR_I64, 1, &one);
    tsr_tensor ids = tsr_tensor_contiguous(pair, TSR_I64, 2, slots),
               weights = tsr_tensor_contiguous(shares, TSR_F32, 2, slots);
    ids.strides[0] = weights.strides[0] = 0; /* all tokens have the same */
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 1, experts, TSR_F32, &layout));
    TSR_TRY(tsr_experts_plan_create(layout, LARGE_TOKENS, 2, width, c->dtype, NULL, &plan));
    TSR_TRY(tsr_experts_dispatch(plan, &tokens, &ids, &landing, &sizes));
    CHECK(size == 2 * LARGE_TOKENS);
    TSR_TRY(tsr_experts_combine(plan, &landing, &weights, &result));
    for (int64_t token = 0; token < LARGE_TOKENS; token++)
        CHECK(memcmp(out + (size_t)(token * width) * bytes, thrice + (size_t)(token % 3) * bytes,
                     (size_t)width * bytes) == 0);
    tsr_experts_plan_destroy(plan);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    free(memory);
    return TSR_OK;
}

static void large_calls_give_what_small_ones_do(void **state)
{
    static large_case cases[] = {{TSR_F32, {0, 0x3f800000, 0x40000000}, {0, 0x40400000, 0x40c00000}},
                                 {TSR_F8E4M3, {0, 0x38, 0x40}, {0, 0x44, 0x4c}},
                                 {TSR_F8E5M2, {0, 0x3c, 0x40}, {0, 0x42, 0x46}}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        suite_run(2, play_large, &cases[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mesh_gives_the_dense_formula),
        cmocka_unit_test(every_dtype_gives_the_dense_formula),
        cmocka_unit_test(rows_beyond_the_room_or_the_capacity_are_dropped),
        cmocka_unit_test(slices_have_experts_of_their_own),
        cmocka_unit_test(large_calls_give_what_small_ones_do),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
