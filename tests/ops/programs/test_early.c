/* Moves that start before their place among the steps: they are open while kernels run, and change
 * no bit of what a run writes. */
#include "counted_memory.h"
#include "message_engine.h"
#include "samples.h"
#include "ways.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 4, LOOKS = 32 };

/* What a rank's calls of "early.look" saw: for each a digit, the number of exchanges in flight. */
typedef struct seen {
    char open[LOOKS];
    size_t count;
} seen;

static _Thread_local message_engine_tally tally;
static _Thread_local seen sight;

static tsr_status check_look(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

/* out = x + 1 */
static tsr_status run_look(const tsr_kernel_call *call)
{
    int64_t count;
    TSR_TRY(tsr_tensor_count(&call->inputs[0], &count));
    for (int64_t i = 0; i < count; i++)
        ((float *)call->outputs[0].data)[i] = ((const float *)call->inputs[0].data)[i] + 1;
    if (sight.count + 1 < LOOKS)
        sight.open[sight.count++] = (char)('0' + tally.open);
    return TSR_OK;
}

static const tsr_op look = {.size = sizeof(tsr_op),
                            .name = "early.look",
                            .rule = "n ... -> n ...",
                            .operands = {"x"},
                            .results = {"out"},
                            .check = check_look,
                            .host = run_look};

static const tsr_op *const rows[] = {&look};

static tsr_value look_at(tsr_program *p, tsr_value x)
{
    return tsr_program_apply(p, "early.look", 0, NULL, &x, NULL);
}

static tsr_value input(tsr_program *p, const tsr_mesh *mesh, const char *name)
{
    return tsr_input(p, name, mesh, TSR_F32, 2, (const int64_t[]){4, 8}, "S(0)");
}

/* A move of an input is open until a kernel reads it. */
static void record_input(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x"), turned = tsr_op_redistribute(p, x, "S(1)");
    tsr_output(p, "y", look_at(p, look_at(p, x)), NULL);
    tsr_output(p, "z", look_at(p, turned), NULL);
}

/* Moves that share an exchange are open when the last operand is made. */
static void record_batch(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x"), y = look_at(p, x);
    const tsr_value a = tsr_op_redistribute(p, x, "S(1)"), b = tsr_op_redistribute(p, y, "S(1)");
    tsr_output(p, "y", look_at(p, y), NULL);
    tsr_output(p, "a", look_at(p, a), NULL);
    tsr_output(p, "b", look_at(p, b), NULL);
}

/* Only an output awaits the move. */
static void record_last(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = look_at(p, input(p, mesh, "x"));
    tsr_output(p, "sum", tsr_op_all_reduce(p, tsr_op_sum(p, x, 0, NULL, 0), 0), NULL);
    tsr_output(p, "y", look_at(p, look_at(p, x)), NULL);
}

/* At most one move is open, and none while ranks meet in softmax. */
static void record_meetings(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x"), y = input(p, mesh, "y");
    const tsr_value a = look_at(p, look_at(p, tsr_op_redistribute(p, x, "S(1)")));
    const tsr_value b = look_at(p, tsr_op_add(p, a, tsr_op_redistribute(p, y, "S(1)")));
    const tsr_value c = look_at(p, tsr_op_softmax(p, b, 1));
    tsr_output(p, "turned", tsr_op_redistribute(p, c, "S(0)"), NULL);
    tsr_output(p, "more", look_at(p, c), NULL);
}

/* A state moves before a store writes over it, and moves again after the store. */
static void record_store(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x");
    const tsr_value state = tsr_state(p, "state", tsr_value_layout(p, x));
    const tsr_value old = tsr_op_redistribute(p, state, "S(1)"), y = look_at(p, look_at(p, tsr_op_add(p, x, state)));
    tsr_op_store(p, state, y, TSR_NONE);
    const tsr_value now = tsr_op_redistribute(p, state, "S(1)");
    tsr_output(p, "y", look_at(p, y), NULL);
    tsr_output(p, "out", look_at(p, tsr_op_add(p, old, now)), NULL);
}

/* A move within ranks needs the communicator, too. */
static void record_local(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x"), turned = tsr_op_redistribute(p, x, "S(1)");
    const tsr_value all = tsr_input(p, "all", mesh, TSR_F32, 2, (const int64_t[]){4, 8}, "R");
    const tsr_value y = look_at(p, x), part = tsr_op_redistribute(p, all, "S(0)");
    tsr_output(p, "y", look_at(p, tsr_op_add(p, y, part)), NULL);
    tsr_output(p, "z", look_at(p, turned), NULL);
}

/* Moves of parameters, as where weights are cut and gathered: while the second may be open, so may
 * the third, and each has a kernel. A view reads nothing. */
static void record_layers(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value x = tsr_op_redistribute(p, input(p, mesh, "x"), "S(1)");
    for (int i = 0; i < 3; i++) {
        char name[] = "w0";
        name[1] = (char)('0' + i);
        const tsr_value w = tsr_op_vary(p, tsr_op_redistribute(p, input(p, mesh, name), "S(1)"));
        x = tsr_op_add(p, look_at(p, look_at(p, x)), w);
    }
    tsr_output(p, "out", look_at(p, x), NULL);
}

/* The engine's own all-gather waits for peers, so it is made in its place. */
static void record_gather(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x"), all = tsr_op_redistribute(p, x, "R");
    tsr_output(p, "y", look_at(p, look_at(p, x)), NULL);
    tsr_output(p, "z", look_at(p, all), NULL);
}

/* A program, and what its calls of "early.look" see. */
typedef struct shown {
    sample s;
    const char *open;
} shown;

static const shown programs[] = {
    {{"input", "2", 2, TSR_POLICY_FORBID, record_input, 0, 0}, "110"},
    {{"input", "4", 4, TSR_POLICY_FORBID, record_input, 0, 0}, "110"},
    {{"batch", "2", 2, TSR_POLICY_FORBID, record_batch, 0, 0}, "0100"},
    {{"last", "2", 2, TSR_POLICY_FORBID, record_last, 0, 0}, "011"},
    {{"last", "4", 4, TSR_POLICY_FORBID, record_last, 0, 0}, "011"},
    {{"meetings", "2", 2, TSR_POLICY_FORBID, record_meetings, 0, 0}, "11001"},
    {{"store", "2", 2, TSR_POLICY_FORBID, record_store, 0, 0}, "1110"},
    {{"local", "2", 2, TSR_POLICY_FORBID, record_local, 0, 0}, "010"},
    {{"layers", "2", 2, TSR_POLICY_FORBID, record_layers, 0, 0}, "1111110"},
    {{"gather", "2", 2, TSR_POLICY_FORBID, record_gather, 0, 0}, "000"},
};

enum { PROGRAMS = sizeof programs / sizeof programs[0] };

/* What each rank wrote by reading peers' memory, with which other engines are compared. */
static sample_written wanted[MOST_RANKS];

static tsr_status run_wanted(tsr_comm *comm, void *arg)
{
    return sample_run_all(arg, comm, &wanted[tsr_comm_rank(comm)]);
}

static tsr_status expect_wanted(const tsr_comm *comm, const sample_written *got)
{
    const sample_written *const one = &wanted[tsr_comm_rank(comm)];
    EXPECT(got->count == one->count && memcmp(got->bytes, one->bytes, one->count) == 0, "other bits");
    return TSR_OK;
}

static tsr_status run_compared(tsr_comm *comm, void *arg)
{
    static _Thread_local sample_written got;
    TSR_TRY(sample_run_all(arg, comm, &got));
    return expect_wanted(comm, &got);
}

static tsr_context *make_context(const sample *s, const tsr_op *const *ops, counted_memory *memory)
{
    tsr_context *context;
    tsr_context_options options = sample_options(s);
    options.ops = ops;
    options.allocator = counted_allocator(memory);
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    return context;
}

static void run_on_ranks(const sample *s, const tsr_op *const *ops, way how, tsr_rank_main *main, const void *arg)
{
    counted_memory memory = {0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.timeout_ms = 5000;
    threads.context = make_context(s, ops, &memory);
    const tsr_status status = way_run(how, s->ranks, main, (void *)arg, &threads);
    if (status != TSR_OK)
        fail_msg("%s on %s by %s: %s: %s", s->name, s->mesh, way_names[how], tsr_status_name(status),
                 tsr_status_message());
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
}

static void samples_give_the_same_bits(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++) {
        run_on_ranks(s, sample_rows, WAY_DIRECT, run_wanted, s);
        for (int how = 0; how < WAYS; how++)
            run_on_ranks(s, sample_rows, (way)how, run_compared, s);
    }
}

/* Programs that are drawn: pointwise ops, whose groups are tiled, with vary, views, moves, sums of
 * terms that were made before, meetings inside ops, and stores among them. */
enum { SIDE = 66, DRAWS = 60, MOST_DRAWN = 48, DRAWN_OUTPUTS = 3 };

/* Of the program that is drawn next. */
static uint64_t seed;

static const char *const layouts[] = {"S(0)", "S(1)", "R"};

typedef struct drawing {
    tsr_program *p;
    uint64_t random;
    tsr_value values[MOST_DRAWN];
    int count;
    tsr_value terms; /* of a product, which are not added up yet; TSR_NONE: none */
} drawing;

static int draw(drawing *d, int limit)
{
    d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((d->random >> 33) % (uint64_t)limit);
}

static void add_value(drawing *d, tsr_value value)
{
    d->values[d->count++] = value;
}

/* A value of a layout, late ones more often; `like` NULL: of any. */
static tsr_value draw_value(drawing *d, const tsr_layout *like)
{
    tsr_value found = TSR_NONE;
    for (int i = 0; i < d->count; i++) {
        const bool fits = !like || tsr_layout_equal(tsr_value_layout(d->p, d->values[i]), like);
        if (fits && (found == TSR_NONE || draw(d, 3) == 0))
            found = d->values[i];
    }
    return found;
}

/* Makes terms of products of values from -1 to 1, or adds them up; the value is then the sum. */
static tsr_value draw_terms(drawing *d, tsr_value value)
{
    if (d->terms == TSR_NONE) {
        const tsr_value small = tsr_op_tanh(d->p, value);
        d->terms =
            tsr_op_matmul(d->p, tsr_op_redistribute(d->p, small, "S(1)"), tsr_op_redistribute(d->p, small, "S(0)"));
        return value;
    }
    value = tsr_op_redistribute(d->p, d->terms, layouts[draw(d, 3)]);
    d->terms = TSR_NONE;
    return value;
}

static tsr_value draw_op(drawing *d)
{
    static const char *const ops[] = {"neg", "square", "tanh", "abs", "sigmoid", "add", "sub", "mul", "maximum"};
    const tsr_value x = draw_value(d, NULL), both[] = {x, draw_value(d, tsr_value_layout(d->p, x))};
    const int op = draw(d, 9);
    switch (draw(d, 11)) {
    case 0:
        return tsr_op_vary(d->p, x);
    case 1:
        return tsr_op_transpose(d->p, x, 0, 1);
    case 2:
        return draw(d, 4) ? tsr_op_cast(d->p, tsr_op_cast(d->p, x, TSR_BF16), TSR_F32) : tsr_op_softmax(d->p, x, 1);
    case 3:
    case 4:
        return tsr_op_redistribute(d->p, x, layouts[draw(d, 3)]);
    case 5:
        return draw_terms(d, x);
    default:
        return tsr_program_apply(d->p, ops[op], 0, NULL, op < 5 ? &x : both, NULL);
    }
}

/* True if an op makes the value at `at`, and it does not come again: equal calls give one value. */
static bool is_last_of_result(const drawing *d, int at, int given)
{
    bool found = true;
    for (int i = 0; i < d->count; i++)
        found = found && (d->values[i] != d->values[at] || (i >= given && i <= at));
    return found;
}

/* Gives the last value, and some others that ops make, as outputs. */
static void draw_outputs(drawing *d, int given)
{
    char name[] = "y0";
    for (int i = d->count - 1; i >= given && name[1] < '0' + DRAWN_OUTPUTS; i--) {
        if (!is_last_of_result(d, i, given) || (i < d->count - 1 && draw(d, 4)))
            continue;
        tsr_output(d->p, name, d->values[i], NULL);
        name[1]++;
    }
}

/* Records a program; `keeps`: with a state, in place of an input. */
static void record_any(tsr_program *p, const tsr_mesh *mesh, bool keeps)
{
    static const int64_t shape[] = {SIDE, SIDE};
    drawing d = {.p = p, .random = 977 * seed, .terms = TSR_NONE};
    add_value(&d, tsr_input(p, "x", mesh, TSR_F32, 2, shape, "S(0)"));
    add_value(&d, tsr_input(p, "y", mesh, TSR_F32, 2, shape, "S(1)"));
    const tsr_layout *const layout = tsr_value_layout(p, d.values[0]);
    const tsr_value state =
        keeps ? tsr_state(p, "state", layout) : tsr_input(p, "state", mesh, TSR_F32, 2, shape, "S(0)");
    add_value(&d, state);
    const int given = d.count, steps = 6 + draw(&d, MOST_DRAWN - given - 6);
    if (keeps)
        tsr_op_store(p, state, tsr_op_neg(p, d.values[0]), TSR_NONE);
    for (int i = 0; i < steps; i++) {
        add_value(&d, draw_op(&d));
        if (!keeps || draw(&d, 12))
            continue;
        const tsr_value more = draw_value(&d, layout);
        tsr_op_store(p, state, draw(&d, 2) ? tsr_op_abs(p, more) : tsr_op_add(p, state, more), TSR_NONE);
    }
    draw_outputs(&d, given);
}

static void record_drawn(tsr_program *p, const tsr_mesh *mesh)
{
    record_any(p, mesh, true);
}

static void record_stateless(tsr_program *p, const tsr_mesh *mesh)
{
    record_any(p, mesh, false);
}

static uint64_t count_draws(void)
{
    return getenv("TSR_TEST_THIN") ? DRAWS / 10 : DRAWS;
}

static void drawn_programs_give_the_same_bits(void **state)
{
    static const sample s = {"drawn", "2", 2, TSR_POLICY_FORBID, record_drawn, 0, 0};
    (void)state;
    for (seed = 1; seed <= count_draws(); seed++) {
        run_on_ranks(&s, sample_rows, WAY_DIRECT, run_wanted, &s);
        for (int how = 0; how < WAYS; how++)
            run_on_ranks(&s, sample_rows, (way)how, run_compared, &s);
    }
}

/* The last run saw what it should. */
static tsr_status expect_sight(const shown *one)
{
    const size_t count = strlen(one->open);
    sight.open[sight.count] = '\0';
    EXPECT(sight.count >= count && strcmp(sight.open + sight.count - count, one->open) == 0,
           "kernels see %s exchanges in flight, not %s", sight.open, one->open);
    return TSR_OK;
}

/* Runs a program over engines whose calls are watched. */
static tsr_status run_watched(tsr_comm *carrier, void *arg)
{
    const shown *const one = arg;
    static const message_engine_kind kinds[] = {MESSAGE_ENGINE_PLAIN, MESSAGE_ENGINE_LENT, MESSAGE_ENGINE_UNCHECKED};
    static _Thread_local sample_written got;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        tsr_comm *comm;
        TSR_TRY(message_engine_create_own(carrier, NULL, &tally, kinds[i], &comm));
        sight.count = 0;
        TSR_TRY(sample_run_all(&one->s, comm, &got));
        TSR_TRY(expect_wanted(comm, &got));
        TSR_TRY(expect_sight(one));
        tsr_comm_destroy(comm);
    }
    return TSR_OK;
}

static void moves_are_open_while_kernels_run(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        run_on_ranks(&programs[i].s, rows, WAY_DIRECT, run_wanted, &programs[i].s);
        run_on_ranks(&programs[i].s, rows, WAY_DIRECT, run_watched, &programs[i]);
    }
}

/* Prepares on a communicator and runs; collective. */
static tsr_status prepare_and_run(const shown *one, const sample_scene *c, tsr_comm *comm, bool overlaps)
{
    static _Thread_local sample_written got;
    TSR_TRY(tsr_executable_prepare(c->x, comm));
    sight.count = 0;
    TSR_TRY(sample_run(&one->s, c->x, comm, c->bound, &got));
    TSR_TRY(expect_wanted(comm, &got));
    for (size_t i = 0; i < tsr_executable_step_count(c->x); i++) {
        tsr_executable_step step;
        TSR_TRY(tsr_executable_step_at(c->x, i, &step));
        EXPECT(step.first <= i && i < step.last, "step %zu is at work from %zu to %zu", i, step.first, step.last);
        EXPECT(overlaps || step.shares || (step.first == i && step.last == i + 1), "step %zu is open", i);
    }
    return overlaps ? expect_sight(one) : TSR_OK;
}

/* One executable over an abstract mesh: by memory, by messages, and by memory again. */
static tsr_status change_engines(tsr_comm *comm, void *arg)
{
    const shown *const one = arg;
    sample_scene c;
    tsr_comm *messages;
    TSR_TRY(message_engine_create_own(comm, NULL, &tally, MESSAGE_ENGINE_PLAIN, &messages));
    TSR_TRY(sample_open(&one->s, NULL, tsr_comm_context(comm), tsr_comm_rank(comm), &c));
    const size_t before = tsr_executable_workspace_bytes(c.x);
    for (int i = 0; i < 2; i++) {
        TSR_TRY(prepare_and_run(one, &c, comm, false));
        EXPECT(i > 0 || tsr_executable_workspace_bytes(c.x) == before, "the workspace grows without overlap");
        TSR_TRY(prepare_and_run(one, &c, messages, true));
        /* Rooms are packed well, not best: of any program it may be less. */
        EXPECT(!*one->open || tsr_executable_workspace_bytes(c.x) >= before, "the workspace with overlap is less");
    }
    sample_close(&c);
    tsr_comm_destroy(messages);
    return TSR_OK;
}

/* On one rank the n-th allocation of a preparation fails, for n = 1, 2, .. until there are not so
 * many; the next preparation works. */
static tsr_status fail_to_prepare(tsr_comm *comm, void *arg)
{
    const shown *const one = arg;
    const bool is_failing = tsr_comm_rank(comm) == 1;
    int32_t any = 1;
    tsr_comm *messages;
    TSR_TRY(message_engine_create_own(comm, NULL, &tally, MESSAGE_ENGINE_PLAIN, &messages));
    for (size_t n = 1; any; n++) {
        sample_scene c;
        TSR_TRY(sample_open(&one->s, NULL, tsr_comm_context(comm), tsr_comm_rank(comm), &c));
        counted_fail_here(is_failing ? n : 0, false);
        const tsr_status status = tsr_executable_prepare(c.x, messages);
        const int32_t hit = counted_fail_here(0, false) == 0 && is_failing;
        EXPECT(status == TSR_OK || status == (is_failing ? TSR_ERROR_MEMORY : TSR_ERROR_PEER), "allocation %zu: %s", n,
               tsr_status_name(status));
        TSR_TRY(tsr_comm_all_reduce(comm, &hit, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        TSR_TRY(prepare_and_run(one, &c, messages, true));
        sample_close(&c);
    }
    tsr_comm_destroy(messages);
    return TSR_OK;
}

static void executables_go_from_engine_to_engine(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        if (programs[i].s.record == record_store)
            continue; /* its state has a mesh over one communicator */
        run_on_ranks(&programs[i].s, rows, WAY_DIRECT, run_wanted, &programs[i].s);
        run_on_ranks(&programs[i].s, rows, WAY_DIRECT, change_engines, &programs[i]);
        run_on_ranks(&programs[i].s, rows, WAY_DIRECT, fail_to_prepare, &programs[i]);
    }
}

/* Memory that is assigned for one engine and then for another one. */
static void drawn_programs_go_from_engine_to_engine(void **state)
{
    static const shown drawn = {{"drawn", "2", 2, TSR_POLICY_FORBID, record_stateless, 0, 0}, ""};
    (void)state;
    for (seed = 1; seed <= count_draws(); seed++) {
        run_on_ranks(&drawn.s, rows, WAY_DIRECT, run_wanted, &drawn.s);
        run_on_ranks(&drawn.s, rows, WAY_DIRECT, change_engines, &drawn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_give_the_same_bits),
        cmocka_unit_test(drawn_programs_give_the_same_bits),
        cmocka_unit_test(moves_are_open_while_kernels_run),
        cmocka_unit_test(executables_go_from_engine_to_engine),
        cmocka_unit_test(drawn_programs_go_from_engine_to_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
