/* Calls of experts in which ranks are at fault, or lack room: all get an error that says what is
 * wrong, nothing is written, and the next call succeeds. */
#include "comm_suite.h"
#include "counted_memory.h"

#include <tessera/experts.h>
#include <tessera/mesh.h>
#include <tessera/sys/device.h>

enum { RANKS = 3, ODD = 1, EXPERTS = 7, WIDTH = 3, TOKENS = 4, SLOTS = 2, ROOM = 24 };

typedef struct stage {
    int rank;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_experts_plan *plan;
    int64_t count, id[TOKENS * SLOTS], sizes[EXPERTS + 1];
    float x[TOKENS * WIDTH], out[TOKENS * WIDTH], weights[TOKENS * SLOTS], dweights[TOKENS * SLOTS];
    float rows[ROOM * WIDTH], drows[ROOM * WIDTH];
    /* views of them */
    tsr_tensor tokens, ids, result, weight, dweight, row, drow, size;
} stage;

/* Each rank's token t chooses experts t and t + 1 + rank. */
static void set_operands(stage *s)
{
    const int64_t tokens[] = {TOKENS, WIDTH}, slots[] = {TOKENS, SLOTS}, rows[] = {ROOM, WIDTH};
    for (int i = 0; i < TOKENS * SLOTS; i++) {
        s->id[i] = (i / SLOTS + i % SLOTS * (1 + s->rank)) % EXPERTS;
        s->weights[i] = 1;
        s->dweights[i] = -1;
    }
    for (int i = 0; i < TOKENS * WIDTH; i++) {
        s->x[i] = 1;
        s->out[i] = -1;
    }
    for (int i = 0; i < ROOM * WIDTH; i++)
        s->rows[i] = s->drows[i] = -1;
    for (int i = 0; i <= EXPERTS; i++)
        s->sizes[i] = -1;
    s->count = tsr_experts_plan_count(s->plan);
    s->tokens = tsr_tensor_contiguous(s->x, TSR_F32, 2, tokens);
    s->result = tsr_tensor_contiguous(s->out, TSR_F32, 2, tokens);
    s->ids = tsr_tensor_contiguous(s->id, TSR_I64, 2, slots);
    s->weight = tsr_tensor_contiguous(s->weights, TSR_F32, 2, slots);
    s->dweight = tsr_tensor_contiguous(s->dweights, TSR_F32, 2, slots);
    s->row = tsr_tensor_contiguous(s->rows, TSR_F32, 2, rows);
    s->drow = tsr_tensor_contiguous(s->drows, TSR_F32, 2, rows);
    s->size = tsr_tensor_contiguous(s->sizes, TSR_I64, 1, &s->count);
}

static tsr_status raise_stage(stage *s, tsr_comm *comm, const char *placements, const tsr_experts_options *options)
{
    const int64_t shape[] = {EXPERTS, 6};
    *s = (stage){.rank = tsr_comm_rank(comm)};
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, placements, 2, shape, TSR_F32, &s->layout));
    TSR_TRY(tsr_experts_plan_create(s->layout, TOKENS, SLOTS, WIDTH, TSR_F32, options, &s->plan));
    set_operands(s);
    return TSR_OK;
}

static void strike_stage(stage *s)
{
    tsr_experts_plan_destroy(s->plan);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
}

static tsr_status dispatch(stage *s)
{
    return tsr_experts_dispatch(s->plan, &s->tokens, &s->ids, &s->row, &s->size);
}

static tsr_status check_untouched(const stage *s)
{
    for (int i = 0; i < TOKENS * WIDTH; i++)
        CHECK(s->out[i] == -1);
    for (int i = 0; i < TOKENS * SLOTS; i++)
        CHECK(s->dweights[i] == -1);
    for (int i = 0; i < ROOM * WIDTH; i++)
        CHECK(s->rows[i] == -1 && s->drows[i] == -1);
    for (int i = 0; i <= EXPERTS; i++)
        CHECK(s->sizes[i] == -1);
    return TSR_OK;
}

/* What rank ODD does wrong, and the words of its error. */
typedef struct mistake {
    void (*make)(stage *s);
    tsr_status status;
    const char *words;
} mistake;

static void too_large(stage *s)
{
    s->id[2 * SLOTS + 1] = EXPERTS;
}

static void too_small(stage *s)
{
    s->id[0] = -2;
}

static void ids_of_floats(stage *s)
{
    s->ids.dtype = TSR_F32;
}

static void ids_of_one_slot(stage *s)
{
    s->ids.shape[1] = 1;
}

static void fewer_ids(stage *s)
{
    s->ids.shape[0] = 3;
}

static void without_ids(stage *s)
{
    s->ids.data = NULL;
}

static void other_dtype(stage *s)
{
    s->tokens.dtype = TSR_I32;
}

static void other_width(stage *s)
{
    s->row.shape[1] = 2;
}

static void more_tokens(stage *s)
{
    s->tokens.shape[0] = TOKENS + 1;
}

static void with_gaps(stage *s)
{
    s->row.strides[1] = 2;
}

static void in_one_place(stage *s)
{
    s->row.strides[0] = 0;
}

static void of_other_experts(stage *s)
{
    s->size.shape[0]++;
}

static void over_tokens(stage *s)
{
    s->row.data = s->x;
    s->row.shape[0] = TOKENS;
}

static const mistake mistakes[] = {
    {too_large, TSR_ERROR_ARGUMENT, "ids of rank 1 at token 2, slot 1 is 7: there are 7 experts, counted from 0"},
    {too_small, TSR_ERROR_ARGUMENT, "ids of rank 1 at token 0, slot 0 is -2: there are 7 experts"},
    {ids_of_floats, TSR_ERROR_ARGUMENT, "ids is of f32, not of i32 or i64"},
    {ids_of_one_slot, TSR_ERROR_ARGUMENT, "ids has shape 4x1, not 4x2"},
    {fewer_ids, TSR_ERROR_ARGUMENT, "ids has shape 3x2, not 4x2"},
    {without_ids, TSR_ERROR_ARGUMENT, "ids has no data, but 8 elements"},
    {other_dtype, TSR_ERROR_ARGUMENT, "x is of i32, not of f32"},
    {other_width, TSR_ERROR_ARGUMENT, "rows has shape 24x2, not 24x3"},
    {more_tokens, TSR_ERROR_ARGUMENT, "x has 5 tokens, but the plan is for 4"},
    {with_gaps, TSR_ERROR_UNSUPPORTED, "rows has gaps within its rows"},
    {in_one_place, TSR_ERROR_ARGUMENT, "rows is written, but its elements share memory"},
    {of_other_experts, TSR_ERROR_ARGUMENT, "sizes has shape "},
    {over_tokens, TSR_ERROR_ARGUMENT, "rows overlaps x"},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

/* The error of this rank's call, in which rank ODD is at fault. */
static tsr_status check_error(const stage *s, tsr_status status, tsr_status own, const char *words)
{
    if (s->rank != ODD)
        CHECK_ERROR(status, TSR_ERROR_PEER, "rank 1 failed: ");
    CHECK_ERROR(status, s->rank == ODD ? own : TSR_ERROR_PEER, words);
    return TSR_OK;
}

/* Calls that follow a dispatch which failed. */
static tsr_status follow_nothing(stage *s)
{
    const char *const words = "the plan has no dispatch to follow";
    CHECK_ERROR(tsr_experts_combine(s->plan, &s->row, &s->weight, &s->result), TSR_ERROR_STATE, words);
    CHECK_ERROR(tsr_experts_combine_backward(s->plan, &s->tokens, NULL, NULL, &s->drow, NULL), TSR_ERROR_STATE, words);
    CHECK_ERROR(tsr_experts_dispatch_backward(s->plan, &s->drow, &s->result), TSR_ERROR_STATE, words);
    return TSR_OK;
}

/* Faults of the calls that follow a dispatch. */
static tsr_status follow_wrongly(stage *s)
{
    tsr_tensor few = s->row, three = s->result, other = s->weight;
    const bool odd = s->rank == ODD;
    few.shape[0] = tsr_experts_plan_needed(s->plan) - 1;
    three.shape[0] = 3;
    other.dtype = TSR_BF16;
    TSR_TRY(check_error(s, tsr_experts_combine(s->plan, odd ? &few : &s->row, &s->weight, &s->result),
                        TSR_ERROR_ARGUMENT, "came to this rank"));
    TSR_TRY(check_error(s, tsr_experts_combine(s->plan, &s->row, &s->weight, odd ? &three : &s->result),
                        TSR_ERROR_ARGUMENT, "out has shape 3x3, not 4x3"));
    TSR_TRY(check_error(s, tsr_experts_combine(s->plan, &s->row, odd ? &other : &s->weight, &s->result),
                        TSR_ERROR_ARGUMENT, "weights is of bf16, not of f32"));
    TSR_TRY(check_error(s, tsr_experts_combine(s->plan, odd ? NULL : &s->row, NULL, &s->result), TSR_ERROR_ARGUMENT,
                        "rows is NULL"));
    TSR_TRY(check_error(
        s, tsr_experts_combine_backward(s->plan, &s->tokens, &s->weight, odd ? NULL : &s->row, &s->drow, &s->dweight),
        TSR_ERROR_ARGUMENT, "rows is NULL"));
    TSR_TRY(check_error(
        s,
        tsr_experts_combine_backward(s->plan, &s->tokens, &s->weight, &s->row, odd ? &s->row : &s->drow, &s->dweight),
        TSR_ERROR_ARGUMENT, "overlaps"));
    TSR_TRY(check_error(s, tsr_experts_dispatch_backward(s->plan, &s->drow, odd ? NULL : &s->result),
                        TSR_ERROR_ARGUMENT, "dx is NULL"));
    CHECK_ERROR(tsr_experts_combine_backward(s->plan, &s->tokens, NULL, &s->row, &s->drow, odd ? NULL : &s->dweight),
                TSR_ERROR_ARGUMENT, "rank 0 calls tsr_experts_combine_backward with gradients of weights");
    return TSR_OK;
}

static tsr_status make_mistakes(tsr_comm *comm, void *arg)
{
    stage s;
    TSR_TRY(raise_stage(&s, comm, arg, NULL));
    TSR_TRY(follow_nothing(&s));
    for (int i = 0; i < MISTAKES; i++) {
        set_operands(&s);
        if (s.rank == ODD)
            mistakes[i].make(&s);
        TSR_TRY(check_error(&s, dispatch(&s), mistakes[i].status, mistakes[i].words));
        for (int k = 0; k < TOKENS * WIDTH; k++)
            CHECK(s.x[k] == 1);
        TSR_TRY(check_untouched(&s));
    }
    set_operands(&s);
    TSR_TRY(check_error(&s, tsr_experts_dispatch(s.plan, &s.tokens, s.rank == ODD ? NULL : &s.ids, &s.row, &s.size),
                        TSR_ERROR_ARGUMENT, "ids is NULL"));
    TSR_TRY(follow_nothing(&s));
    TSR_TRY(check_untouched(&s));
    TSR_TRY(dispatch(&s));
    TSR_TRY(follow_wrongly(&s));
    TSR_TRY(tsr_experts_combine(s.plan, &s.row, &s.weight, &s.result));
    CHECK(s.out[0] > 0);
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void a_mistake_is_told_to_all_and_nothing_is_written(void **state)
{
    (void)state;
    suite_run(RANKS, make_mistakes, "S(0)");
    suite_run(RANKS, make_mistakes, "S(1)");
    suite_run(RANKS, make_mistakes, "R");
}

/* Too little room on ranks 1 and 2: experts 3 to 5 and 6 are theirs. */
static tsr_status lack_room(tsr_comm *comm, void *arg)
{
    stage s;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, "S(0)", NULL));
    TSR_TRY(dispatch(&s));
    const int64_t needed = tsr_experts_plan_needed(s.plan);
    set_operands(&s);
    if (s.rank > 0)
        s.row.shape[0] = needed - 1;
    CHECK_ERROR(dispatch(&s), TSR_ERROR_MEMORY, "rows come to rank 1, but its rows have room for ");
    CHECK_ERROR(dispatch(&s), TSR_ERROR_MEMORY, "; 1 more rank lacks room");
    CHECK(tsr_experts_plan_needed(s.plan) == needed);
    TSR_TRY(check_untouched(&s));
    TSR_TRY(follow_nothing(&s));
    s.row.shape[0] = needed;
    TSR_TRY(dispatch(&s));
    TSR_TRY(tsr_experts_combine(s.plan, &s.row, NULL, &s.result));
    for (int i = 0; i < TOKENS * WIDTH; i++)
        CHECK(s.out[i] == SLOTS);
    strike_stage(&s);
    return suite_check_usable(comm);
}

/* Expert 3 is chosen by token 3 of all ranks, and by another token of each. */
static tsr_status exceed_capacity(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_experts_options options = TSR_EXPERTS_OPTIONS_INIT;
    (void)arg;
    options.expert_capacity = 5;
    TSR_TRY(raise_stage(&s, comm, "S(0)", &options));
    CHECK_ERROR(dispatch(&s), TSR_ERROR_MEMORY, "expert 3 gets 6 rows: options.expert_capacity is 5");
    TSR_TRY(check_untouched(&s));
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void too_little_room_is_told_to_all_and_nothing_is_written(void **state)
{
    (void)state;
    suite_run(RANKS, lack_room, NULL);
    suite_run(RANKS, exceed_capacity, NULL);
}

static tsr_status refuse_plan(const tsr_layout *layout, int64_t tokens, int64_t slots, int64_t width, tsr_dtype dtype,
                              const tsr_experts_options *options, tsr_status status, const char *words)
{
    tsr_experts_plan *plan = NULL;
    CHECK_ERROR(tsr_experts_plan_create(layout, tokens, slots, width, dtype, options, &plan), status, words);
    CHECK(!plan);
    return TSR_OK;
}

static tsr_status refuse_layouts(tsr_comm *comm, tsr_mesh *mesh)
{
    tsr_layout *partial, *scalar, *abstract;
    tsr_mesh *nowhere;
    const int64_t shape[] = {EXPERTS}, three = 3;
    (void)comm;
    TSR_TRY(tsr_layout_parse(mesh, "P", 1, shape, TSR_F32, &partial));
    TSR_TRY(tsr_layout_parse(mesh, "R", 0, NULL, TSR_F32, &scalar));
    TSR_TRY(tsr_mesh_create_abstract(NULL, 1, &three, NULL, NULL, &nowhere));
    TSR_TRY(tsr_layout_parse(nowhere, "S(0)", 1, shape, TSR_F32, &abstract));
    TSR_TRY(refuse_plan(partial, 1, 1, 1, TSR_F32, NULL, TSR_ERROR_UNSUPPORTED, "mesh dim 0 holds terms, not experts"));
    TSR_TRY(refuse_plan(scalar, 1, 1, 1, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "experts is of a scalar"));
    TSR_TRY(refuse_plan(abstract, 1, 1, 1, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "tsr_experts_plan_create"));
    TSR_TRY(refuse_plan(NULL, 1, 1, 1, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "experts is NULL"));
    tsr_layout_destroy(abstract);
    tsr_mesh_destroy(nowhere);
    tsr_layout_destroy(scalar);
    tsr_layout_destroy(partial);
    return TSR_OK;
}

static tsr_status refuse_plans(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_experts_options options = TSR_EXPERTS_OPTIONS_INIT;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, "S(0)", NULL));
    TSR_TRY(refuse_layouts(comm, s.mesh));
    TSR_TRY(refuse_plan(s.layout, -1, 1, 1, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "tokens is -1"));
    TSR_TRY(refuse_plan(s.layout, 1, 0, 1, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "slots 0"));
    TSR_TRY(refuse_plan(s.layout, 1, 1, 0, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "width 0"));
    TSR_TRY(refuse_plan(s.layout, 1, 1, 1, TSR_I32, NULL, TSR_ERROR_UNSUPPORTED, "dtype is i32"));
    TSR_TRY(refuse_plan(s.layout, INT64_MAX / 2, 4, 1, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "more than 2^63 - 1"));
    options.expert_capacity = -1;
    TSR_TRY(refuse_plan(s.layout, 1, 1, 1, TSR_F32, &options, TSR_ERROR_ARGUMENT, "expert_capacity is -1"));
    options = (tsr_experts_options)TSR_EXPERTS_OPTIONS_INIT;
    options.overflow = TSR_EXPERTS_OVERFLOW_END;
    TSR_TRY(refuse_plan(s.layout, 1, 1, 1, TSR_F32, &options, TSR_ERROR_ARGUMENT, "options.overflow is 2"));
    const int64_t width = s.rank == ODD ? 4 : 3;
    TSR_TRY(refuse_plan(s.layout, 1, 1, width, TSR_F32, NULL, TSR_ERROR_ARGUMENT, "rank 1"));
    CHECK_ERROR(tsr_experts_plan_create(s.layout, 1, 1, 1, TSR_F32, NULL, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    CHECK_ERROR(tsr_experts_dispatch(NULL, NULL, NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "plan is NULL");
    CHECK_ERROR(tsr_experts_combine(NULL, NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "plan is NULL");
    CHECK(tsr_experts_plan_count(NULL) == 0 && tsr_experts_plan_needed(NULL) == 0 &&
          tsr_experts_plan_dropped(NULL) == 0);
    tsr_experts_plan_destroy(NULL);
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void plans_that_cannot_be_are_refused_by_name(void **state)
{
    (void)state;
    suite_run(RANKS, refuse_plans, NULL);
}

static tsr_status refuse_devices(tsr_comm *comm, void *arg)
{
    stage s;
    void *self;
    tsr_device_driver *driver;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    (void)arg;
    table.name = "elsewhere";
    TSR_TRY(tsr_device_driver_create(&table, self, &driver));
    TSR_TRY(raise_stage(&s, comm, "S(0)", NULL));
    s.row.device = (tsr_device){driver, 0};
    CHECK_ERROR(dispatch(&s), TSR_ERROR_UNSUPPORTED, "rows is on device elsewhere:0");
    strike_stage(&s);
    tsr_device_driver_destroy(driver);
    return suite_check_usable(comm);
}

static void tensors_on_devices_are_refused_by_name(void **state)
{
    (void)state;
    suite_run(RANKS, refuse_devices, NULL);
}

/* Ranks outside the mesh make the calls, and bring nothing. */
static tsr_status play_outside(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {2, 6};
    stage s = {.rank = tsr_comm_rank(comm)};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@1", &s.mesh));
    TSR_TRY(tsr_layout_parse(s.mesh, "S(0)", 2, shape, TSR_F32, &s.layout));
    TSR_TRY(tsr_experts_plan_create(s.layout, TOKENS, SLOTS, WIDTH, TSR_F32, NULL, &s.plan));
    set_operands(&s);
    for (int i = 0; i < TOKENS * SLOTS; i++)
        s.id[i] = i % 2;
    const bool inside = s.rank > 0;
    CHECK(s.count == inside);
    TSR_TRY(inside ? dispatch(&s) : tsr_experts_dispatch(s.plan, NULL, NULL, NULL, NULL));
    CHECK(s.sizes[0] == (inside ? 2 * TOKENS : -1));
    TSR_TRY(inside ? tsr_experts_combine(s.plan, &s.row, NULL, &s.result)
                   : tsr_experts_combine(s.plan, NULL, NULL, NULL));
    for (int i = 0; i < TOKENS * WIDTH; i++)
        CHECK(s.out[i] == (inside ? 2 : -1));
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void ranks_outside_the_mesh_bring_nothing(void **state)
{
    (void)state;
    suite_run(RANKS, play_outside, NULL);
}

/* One call of the plan, by number; TSR_OK behind the last. */
static tsr_status call(stage *s, int which)
{
    switch (which) {
    case 0:
        return dispatch(s);
    case 1:
        return tsr_experts_combine(s->plan, &s->row, &s->weight, &s->result);
    case 2:
        return tsr_experts_combine_backward(s->plan, &s->tokens, &s->weight, &s->row, &s->drow, &s->dweight);
    default:
        return tsr_experts_dispatch_backward(s->plan, &s->drow, &s->result);
    }
}

/* Rank ODD's n-th allocation fails in creating a plan and its calls, for each n until all
 * succeed. */
static tsr_status run_short(tsr_comm *comm, void *arg)
{
    stage s;
    bool done = false;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, "S(0)", NULL));
    for (size_t nth = 1; !done; nth++) {
        tsr_experts_plan_destroy(s.plan);
        s.plan = NULL;
        if (s.rank == ODD)
            counted_fail_here(nth, false);
        tsr_status status = tsr_experts_plan_create(s.layout, TOKENS, SLOTS, WIDTH, TSR_F32, NULL, &s.plan);
        const bool made = status == TSR_OK;
        if (made)
            set_operands(&s);
        for (int which = 0; which < 4 && status == TSR_OK; which++)
            status = call(&s, which);
        done = status == TSR_OK;
        if (s.rank == ODD)
            counted_fail_here(0, false);
        if (!done)
            CHECK_ERROR(status, s.rank == ODD ? TSR_ERROR_MEMORY : TSR_ERROR_PEER, "memory");
        CHECK(nth < 100);
    }
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void a_rank_without_memory_is_named(void **state)
{
    (void)state;
    NEEDS_ONE_PROCESS();
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context;
    suite_run_with(RANKS, run_short, NULL, &options);
    tsr_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}

/* Three slots of bf16 whose sum is rounded once: 256 + 1 + 1, where 257 is no bf16. */
static tsr_status sum_once(tsr_comm *comm, void *arg)
{
    stage s = {.rank = tsr_comm_rank(comm)};
    const int64_t shape[] = {3}, one[] = {1, 1}, three[] = {1, 3}, many[] = {9, 1};
    uint16_t x = 0x3f80, out = 0, rows[9];
    float weights[] = {256, 1, 1};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &s.mesh));
    TSR_TRY(tsr_layout_parse(s.mesh, "S(0)", 1, shape, TSR_F32, &s.layout));
    TSR_TRY(tsr_experts_plan_create(s.layout, 1, 3, 1, TSR_BF16, NULL, &s.plan));
    int64_t ids[] = {0, 1, 2}, count = 1;
    const tsr_tensor t = tsr_tensor_contiguous(&x, TSR_BF16, 2, one), o = tsr_tensor_contiguous(&out, TSR_BF16, 2, one),
                     i = tsr_tensor_contiguous(ids, TSR_I64, 2, three),
                     r = tsr_tensor_contiguous(rows, TSR_BF16, 2, many),
                     w = tsr_tensor_contiguous(weights, TSR_F32, 2, three),
                     n = tsr_tensor_contiguous(&count, TSR_I64, 1, one);
    TSR_TRY(tsr_experts_dispatch(s.plan, &t, &i, &r, &n));
    CHECK(count == 3);
    TSR_TRY(tsr_experts_combine(s.plan, &r, &w, &o));
    CHECK(out == 0x4381); /* 258 */
    strike_stage(&s);
    return TSR_OK;
}

static void narrow_sums_are_rounded_once(void **state)
{
    (void)state;
    suite_run(RANKS, sum_once, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_told_to_all_and_nothing_is_written),
        cmocka_unit_test(too_little_room_is_told_to_all_and_nothing_is_written),
        cmocka_unit_test(plans_that_cannot_be_are_refused_by_name),
        cmocka_unit_test(tensors_on_devices_are_refused_by_name),
        cmocka_unit_test(ranks_outside_the_mesh_bring_nothing),
        cmocka_unit_test(a_rank_without_memory_is_named),
        cmocka_unit_test(narrow_sums_are_rounded_once),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
