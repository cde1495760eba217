/* Programs when memory, a kernel or an argument fails on one rank: the rank gets its own error, its
 * peers hear of it, nobody waits, nothing leaks, and the next call works. */
#include "counted_memory.h"
#include "layers.h"
#include "samples.h"
#include "ways.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The rank that fails, where there are several. */
enum { FAILING = 1, MOST = 20000 };

static tsr_context *make_context(const sample *s, counted_memory *memory)
{
    tsr_context *context;
    tsr_context_options options = sample_options(s);
    options.allocator = counted_allocator(memory);
    options.environment = no_environment;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    return context;
}

static void run_on(const sample *s, way how, tsr_rank_main *main, void *arg)
{
    counted_memory memory = {0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.timeout_ms = 5000;
    threads.context = make_context(s, &memory);
    const tsr_status status = way_run(how, s->ranks, main, arg, &threads);
    if (status != TSR_OK)
        fail_msg("%s on %s by %s: %s: %s", s->name, s->mesh, way_names[how], tsr_status_name(status),
                 tsr_status_message());
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
}

static void run_on_ranks(const sample *s, tsr_rank_main *main, void *arg)
{
    for (int how = 0; how < WAYS; how++)
        run_on(s, (way)how, main, arg);
}

/* Records and compiles the sample for rank 0 over an abstract mesh. */
static tsr_status record_and_compile(const sample *s, const tsr_mesh *mesh)
{
    tsr_program *p;
    tsr_executable *x = NULL;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    options.rank = 0;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    s->record(p, mesh);
    const tsr_status status = tsr_compile(p, &options, &x);
    assert_true((status == TSR_OK) == (x != NULL));
    tsr_executable_destroy(x);
    tsr_program_destroy(p);
    return status;
}

/* The n-th allocation fails, for n = 1, 2, .. until there are not so many. A recorder that got no
 * layout gives NULL on. */
static void recording_and_compiling_survive_every_failing_allocation(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++) {
        counted_memory memory = {0};
        tsr_mesh *mesh;
        bool through = false;
        size_t n = 1;
        tsr_context *const context = make_context(s, &memory);
        assert_int_equal(tsr_mesh_parse(NULL, context, s->mesh, &mesh), TSR_OK);
        assert_int_equal(record_and_compile(s, mesh), TSR_OK);
        const size_t live = memory.live_blocks;
        for (; !through && n < MOST; n++) {
            counted_fail_here(n, false);
            const tsr_status status = record_and_compile(s, mesh);
            through = counted_fail_here(0, false) != 0;
            if (status != TSR_OK && status != TSR_ERROR_MEMORY &&
                !(status == TSR_ERROR_ARGUMENT && strstr(tsr_status_message(), "is NULL")) &&
                !strstr(tsr_status_message(), "value -1"))
                fail_msg("%s, allocation %zu: %s: %s", s->name, n, tsr_status_name(status), tsr_status_message());
            assert_true(!through || status == TSR_OK);
            assert_int_equal(memory.live_blocks, live);
        }
        assert_true(through && n > 20);
        tsr_mesh_destroy(mesh);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

/* A sample on this rank. */
typedef struct scene {
    const sample *s;
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_program *program;
    tsr_executable *x;
    tsr_dtensor *bound[8];
    sample_written *wanted, *got;
} scene;

static tsr_status set_scene(const sample *s, tsr_comm *comm, scene *out)
{
    static _Thread_local sample_written wanted, got;
    *out = (scene){.s = s, .comm = comm, .wanted = &wanted, .got = &got};
    TSR_TRY(tsr_mesh_parse(comm, NULL, s->mesh, &out->mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(out->mesh), &out->program));
    s->record(out->program, out->mesh);
    TSR_TRY(tsr_compile(out->program, NULL, &out->x));
    return sample_bind(out->program, out->x, out->bound);
}

static void clear(scene *c)
{
    sample_unbind(c->bound);
    tsr_executable_destroy(c->x);
    tsr_program_destroy(c->program);
    tsr_mesh_destroy(c->mesh);
}

/* True on the rank that fails. */
static bool is_failing(const scene *c)
{
    return tsr_comm_rank(c->comm) == FAILING;
}

/* Counts the ranks on which a call failed; collective. */
static tsr_status count_failed(const scene *c, tsr_status status, int32_t *count)
{
    const int32_t mine = status != TSR_OK;
    return tsr_comm_all_reduce(c->comm, &mine, count, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL);
}

/* A run that must work, with the values that `wanted` has. */
static tsr_status run_again(const scene *c, const char *after)
{
    const tsr_status status = sample_run(c->s, c->x, c->comm, c->bound, c->got);
    if (status != TSR_OK) {
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        return tsr_status_set(TSR_ERROR_INTERNAL, "the run after %s: %s: %.600s", after, tsr_status_name(status),
                              kept.text);
    }
    EXPECT(c->got->count == c->wanted->count && memcmp(c->got->bytes, c->wanted->bytes, c->got->count) == 0,
           "the run after %s gives other bits", after);
    return TSR_OK;
}

/* Prepares; on rank FAILING the n-th allocation fails. All ranks fail, or none. */
static tsr_status prepare_failing(const scene *c, size_t n, bool goes_on, bool *through)
{
    tsr_kept_sentence kept = {.text = ""};
    int32_t failed, hit, any;
    counted_fail_here(is_failing(c) ? n : 0, goes_on);
    const tsr_status status = tsr_executable_prepare(c->x, c->comm);
    hit = counted_fail_here(0, false) == 0 && is_failing(c);
    if (status != TSR_OK)
        tsr_status_keep(&kept);
    TSR_TRY(count_failed(c, status, &failed));
    TSR_TRY(tsr_comm_all_reduce(c->comm, &hit, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
    *through = !any;
    EXPECT(!failed || failed == tsr_comm_size(c->comm), "allocation %zu: %d ranks failed, this one with %s: %.500s", n,
           (int)failed, tsr_status_name(status), kept.text);
    EXPECT(!failed || any, "%s: %.800s", tsr_status_name(status), kept.text);
    EXPECT(status == TSR_OK ||
               (is_failing(c) ? status == TSR_ERROR_MEMORY : status == TSR_ERROR_PEER && strstr(kept.text, "rank 1")),
           "allocation %zu: %s: %.700s", n, tsr_status_name(status), kept.text);
    return TSR_OK;
}

static tsr_status drill_prepare(tsr_comm *comm, void *arg)
{
    scene c;
    bool through = false;
    TSR_TRY(set_scene(arg, comm, &c));
    TSR_TRY(tsr_executable_prepare(c.x, comm));
    TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
    TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted)); /* states differ before the first */
    clear(&c);
    for (size_t n = 1; n < MOST && !through; n += 1 + n / 16) {
        TSR_TRY(set_scene(arg, comm, &c));
        TSR_TRY(prepare_failing(&c, n, n % 2 == 0, &through));
        TSR_TRY(tsr_executable_prepare(c.x, comm));
        TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.got));
        TSR_TRY(run_again(&c, "a failed preparation"));
        clear(&c);
    }
    EXPECT(through, "it does not get through");
    return TSR_OK;
}

static void preparing_fails_on_all_ranks_or_on_none(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (s->ranks > 1)
            run_on_ranks(s, drill_prepare, (void *)s);
}

/* Sets both lengths; the n-th allocation of rank FAILING fails. A rank that did not fail by itself
 * hears of it where ranks met. Afterwards all ranks have the lengths. */
static tsr_status drill_lengths(tsr_comm *comm, void *arg)
{
    scene c;
    bool through = false;
    const sample *const s = arg;
    for (size_t n = 1; n < MOST && !through; n++) {
        int32_t hit, any;
        TSR_TRY(set_scene(s, comm, &c));
        TSR_TRY(tsr_executable_prepare(c.x, comm));
        counted_fail_here(is_failing(&c) ? n : 0, n % 2 == 0);
        const tsr_status status = tsr_executable_set_length(c.x, "tokens", s->tokens);
        hit = counted_fail_here(0, false) == 0 && is_failing(&c);
        EXPECT(status == TSR_OK ||
                   (is_failing(&c) ? status == TSR_ERROR_MEMORY
                                   : status == TSR_ERROR_PEER && strstr(tsr_status_message(), "rank 1")),
               "allocation %zu: %s: %.700s", n, tsr_status_name(status), tsr_status_message());
        TSR_TRY(tsr_comm_all_reduce(comm, &hit, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        through = !any;
        TSR_TRY(sample_run(s, c.x, comm, c.bound, n == 1 ? c.wanted : c.got));
        TSR_TRY(sample_run(s, c.x, comm, c.bound, n == 1 ? c.wanted : c.got));
        TSR_TRY(run_again(&c, "a length that was not set"));
        clear(&c);
    }
    EXPECT(through, "it does not get through");
    return TSR_OK;
}

static void a_length_is_set_or_all_stays_as_it_was(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (s->tokens)
            run_on_ranks(s, drill_lengths, (void *)s);
}

/* Lengths are refused before an executable is prepared. */
static tsr_status lengths_before_preparing(tsr_comm *comm, void *arg)
{
    scene c;
    TSR_TRY(set_scene(arg, comm, &c));
    EXPECT(tsr_executable_set_length(c.x, "tokens", 1) == TSR_ERROR_STATE, "a length of what is not prepared");
    EXPECT(strstr(tsr_status_message(), "not prepared"), "%s", tsr_status_message());
    clear(&c);
    return TSR_OK;
}

static void lengths_want_preparing(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (s->tokens)
            run_on_ranks(s, lengths_before_preparing, (void *)s);
}

/* Compares what this rank got with what it should: `own` on rank FAILING, whose sentence has
 * `words`, else PEER with them and that rank's number, or TSR_OK where `may_pass`. */
static tsr_status expect_failure(const scene *c, tsr_status status, tsr_status own, const char *words, bool may_pass)
{
    if (!is_failing(c) && may_pass && status == TSR_OK)
        return TSR_OK;
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    EXPECT(status == (is_failing(c) ? own : TSR_ERROR_PEER), "%s: %.600s; %s was expected", tsr_status_name(status),
           status == TSR_OK ? "" : kept.text, is_failing(c) ? tsr_status_name(own) : "peer");
    EXPECT(strstr(kept.text, words) && (is_failing(c) || strstr(kept.text, "rank 1 failed: ")), "%.900s", kept.text);
    return TSR_OK;
}

/* Each call of the program's own kernel fails in turn. Peers hear of it, unless no meeting follows.
 */
static tsr_status drill_kernels(tsr_comm *comm, void *arg)
{
    scene c;
    bool through = false;
    int heard = 0;
    TSR_TRY(set_scene(arg, comm, &c));
    TSR_TRY(tsr_executable_prepare(c.x, comm));
    TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
    TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
    for (int n = 1; n < 100 && !through; n++) {
        int32_t failed;
        samples_fail_here(is_failing(&c) ? n : 0);
        tsr_status status = sample_run(c.s, c.x, comm, c.bound, c.got);
        const bool hit = samples_fail_here(0) == 0 && is_failing(&c);
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        TSR_TRY(count_failed(&c, status, &failed));
        if (failed) {
            (void)tsr_status_restore(&kept, status);
            TSR_TRY(expect_failure(&c, status, hit ? TSR_ERROR_IO : TSR_OK, "the disk is gone", true));
            heard += failed == tsr_comm_size(comm);
        }
        through = !failed;
        TSR_TRY(run_again(&c, "a kernel failed"));
    }
    /* Calls that are before a meeting of all. */
    static const struct {
        const char *name;
        int count;
    } calls[] = {{"kernels", 3}, {"early", 7}, {"rows", 2}, {"alone", 1}};
    int wanted = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        wanted = strcmp(c.s->name, calls[i].name) == 0 ? calls[i].count : wanted;
    EXPECT(through && heard >= wanted, "all ranks heard of %d failures", heard);
    clear(&c);
    return TSR_OK;
}

static void peers_hear_of_kernels_that_fail(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (s->ranks > 1)
            run_on_ranks(s, drill_kernels, (void *)s);
}

/* The n-th allocation of a run fails: runs allocate nothing, but engines may at first. */
static tsr_status drill_runs(tsr_comm *comm, void *arg)
{
    scene c;
    bool through = false;
    TSR_TRY(set_scene(arg, comm, &c));
    TSR_TRY(tsr_executable_prepare(c.x, comm));
    TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
    TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
    clear(&c);
    for (size_t n = 1; n < 100 && !through; n++) {
        int32_t hit, any;
        TSR_TRY(set_scene(arg, comm, &c));
        TSR_TRY(tsr_executable_prepare(c.x, comm));
        if (c.s->tokens) {
            TSR_TRY(tsr_executable_set_length(c.x, "tokens", c.s->tokens));
            TSR_TRY(tsr_executable_set_length(c.x, "total", c.s->total));
        }
        counted_fail_here(is_failing(&c) ? n : 0, false);
        const tsr_status status = sample_run(c.s, c.x, comm, c.bound, c.got);
        hit = counted_fail_here(0, false) == 0 && is_failing(&c);
        EXPECT(status == TSR_OK || (is_failing(&c) ? status == TSR_ERROR_MEMORY : status == TSR_ERROR_PEER),
               "allocation %zu: %s: %.700s", n, tsr_status_name(status), tsr_status_message());
        TSR_TRY(tsr_comm_all_reduce(comm, &hit, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        through = !any;
        TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.got));
        TSR_TRY(run_again(&c, "memory failed"));
        clear(&c);
    }
    EXPECT(through, "it does not get through");
    return TSR_OK;
}

static void runs_survive_every_failing_allocation(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (s->ranks > 1)
            run_on_ranks(s, drill_runs, (void *)s);
}

/* What rank FAILING gives wrongly. */
typedef enum wrong { NO_INPUTS, NO_OUTPUTS, SMALL_WORKSPACE, OTHER_SHAPE, OTHER_DTYPE, NO_DATA, WRONGS } wrong;

static tsr_status run_wrong(const scene *c, wrong what)
{
    float x[24] = {0}, y[24];
    const int64_t rows = 4 / tsr_comm_size(c->comm), shape[] = {rows, 6};
    _Alignas(64) char workspace[65536];
    const bool fails = is_failing(c);
    tsr_tensor in = tsr_tensor_contiguous(x, TSR_F32, 2, shape);
    tsr_tensor out[2] = {tsr_tensor_contiguous(y, TSR_F32, 2, shape), {.ndim = 0}};
    if (tsr_executable_output_count(c->x) == 2) {
        const int64_t part[] = {4, 6 / tsr_comm_size(c->comm)};
        out[0] = tsr_tensor_contiguous(x, TSR_F32, 0, NULL);
        out[1] = tsr_tensor_contiguous(y, TSR_F32, 2, part);
    }
    if (fails && what == OTHER_SHAPE)
        in.shape[0]++;
    if (fails && what == OTHER_DTYPE)
        in.dtype = TSR_I32;
    if (fails && what == NO_DATA)
        in.data = NULL;
    const size_t wants = tsr_executable_workspace_bytes(c->x);
    EXPECT(wants <= sizeof workspace, "%zu bytes of workspace", wants);
    if (fails && what == SMALL_WORKSPACE && !wants)
        in.ndim = 1;
    return tsr_executable_run(c->x, c->comm, fails && what == NO_INPUTS ? NULL : &in,
                              fails && what == NO_OUTPUTS ? NULL : out, workspace,
                              fails && what == SMALL_WORKSPACE && wants ? wants - 1 : wants, NULL);
}

static tsr_status drill_arguments(tsr_comm *comm, void *arg)
{
    scene c;
    TSR_TRY(set_scene(arg, comm, &c));
    TSR_TRY(tsr_executable_prepare(c.x, comm));
    for (int first = 0; first < 2; first++) {
        for (int what = 0; what < WRONGS; what++) {
            TSR_TRY(expect_failure(&c, run_wrong(&c, (wrong)what), TSR_ERROR_ARGUMENT, "tsr_executable_run: ", false));
            if (first == 1)
                TSR_TRY(run_again(&c, "a wrong argument"));
        }
        /* Once more after a run, when steps are linked. */
        TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
        TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
    }
    clear(&c);
    return TSR_OK;
}

static void peers_hear_of_wrong_arguments(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (s->ranks == 2 && (strcmp(s->name, "kernels") == 0 || strcmp(s->name, "alone") == 0))
            run_on_ranks(s, drill_arguments, (void *)s);
}

/* One rank has no executable, another part, or another program. */
static tsr_status prepare_apart(tsr_comm *comm, void *arg)
{
    scene c;
    tsr_executable *other;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    TSR_TRY(set_scene(arg, comm, &c));
    TSR_TRY(expect_failure(&c, tsr_executable_prepare(is_failing(&c) ? NULL : c.x, comm), TSR_ERROR_ARGUMENT,
                           "tsr_executable_prepare: executable is NULL", false));
    options.rank = 0;
    TSR_TRY(tsr_compile(c.program, &options, &other));
    TSR_TRY(expect_failure(&c, tsr_executable_prepare(is_failing(&c) ? other : c.x, comm), TSR_ERROR_STATE,
                           "the executable is the part of rank 0, but this is rank 1", false));
    tsr_executable_destroy(other);
    if (is_failing(&c)) {
        const tsr_value x = tsr_constant(c.program, 3, tsr_value_layout(c.program, 0));
        tsr_output(c.program, "more", x, NULL);
    }
    TSR_TRY(tsr_compile(c.program, NULL, &other));
    const tsr_status status = tsr_executable_prepare(other, comm);
    EXPECT(status == TSR_ERROR_PEER && strstr(tsr_status_message(), "ranks have different programs"), "%s: %.500s",
           tsr_status_name(status), tsr_status_message());
    tsr_executable_destroy(other);
    TSR_TRY(tsr_executable_prepare(c.x, comm));
    TSR_TRY(sample_run(c.s, c.x, comm, c.bound, c.wanted));
    clear(&c);
    return TSR_OK;
}

static void ranks_that_differ_do_not_prepare(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++)
        if (s->ranks > 1 && s->policy == TSR_POLICY_FORBID && !s->tokens)
            run_on_ranks(s, prepare_apart, (void *)s);
}

/* How rank FAILING names its length, its maximum, and whether its input has it. */
typedef struct length_use {
    const char *name;
    int64_t maximum;
    bool used;
} length_use;

static tsr_status record_length(const length_use *use, const tsr_mesh *mesh, tsr_executable **out)
{
    tsr_program *p;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const int64_t length = tsr_length(p, use->name, use->maximum), eight = 8;
    tsr_output(p, "y", tsr_op_neg(p, tsr_input(p, "x", mesh, TSR_F32, 1, use->used ? &length : &eight, NULL)), NULL);
    const tsr_status status = tsr_compile(p, NULL, out);
    tsr_program_destroy(p);
    return status;
}

static tsr_status prepare_lengths(tsr_comm *comm, void *arg)
{
    const length_use usual = {"tokens", 8, true}, unused = {"tokens", 8, false};
    const length_use pairs[][2] = {
        {{"tokens", 8, true}, {"words", 8, true}}, {usual, unused}, {unused, {"tokens", 9, false}}, {usual, usual}};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        tsr_executable *x;
        TSR_TRY(record_length(&pairs[i][tsr_comm_rank(comm) == FAILING], mesh, &x));
        const tsr_status status = tsr_executable_prepare(x, comm);
        tsr_executable_destroy(x);
        EXPECT(status == (i < 3 ? TSR_ERROR_PEER : TSR_OK) &&
                   (status == TSR_OK || strstr(tsr_status_message(), "ranks have different programs")),
               "pair %zu: %s: %.500s", i, tsr_status_name(status), tsr_status_message());
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void ranks_with_other_lengths_do_not_prepare(void **state)
{
    (void)state;
    const sample s = {.name = "lengths", .mesh = "2", .ranks = 2};
    run_on_ranks(&s, prepare_lengths, NULL);
}

/* Gradients do not read a state over which a store wrote. */
static void gradients_refuse_states_that_were_stored(void **state)
{
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_value d;
    const char *sentence;
    (void)state;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, context, "1", &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "R", 1, (const int64_t[]){3}, TSR_F32, &layout), TSR_OK);
    for (int early = 0; early < 2; early++) {
        assert_int_equal(tsr_program_create(context, &p), TSR_OK);
        const tsr_value s = tsr_state(p, "s", layout),
                        x = tsr_input(p, "x", mesh, TSR_F32, 1, (const int64_t[]){3}, NULL);
        const tsr_value y = tsr_program_apply(p, "mul", 0, NULL, (const tsr_value[]){x, s}, NULL);
        const tsr_value loss = tsr_program_apply(p, "sum", 0, NULL, &y, NULL);
        if (early)
            tsr_gradients(p, loss, 1, &x, &d);
        tsr_op_store(p, s, x, TSR_NONE);
        if (!early)
            tsr_gradients(p, loss, 1, &x, &d);
        assert_int_equal(tsr_program_status(p, &sentence), early ? TSR_OK : TSR_ERROR_UNSUPPORTED);
        if (!early)
            assert_string_equal(sentence, "tsr_gradients: op 0, mul: the gradient reads state \"s\" as it was before a "
                                          "store; record the store after tsr_gradients()");
        tsr_program_destroy(p);
    }
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
}

/* Attributes are copied with their names: a gradient finds them by name. */
static void names_of_attributes_are_the_ops_own(void **state)
{
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_value d;
    char name[] = "dim", text[] = "end";
    (void)state;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, context, "1", &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){3, 4}, NULL);
    const tsr_attribute attributes[] = {tsr_attribute_int(name, 1), tsr_attribute_int(text, 2)};
    const tsr_value y = tsr_program_apply(p, "slice", 2, attributes, &x, NULL);
    strcpy(name, "xxx");
    strcpy(text, "xxx");
    const tsr_value loss = tsr_program_apply(p, "sum", 0, NULL, &y, NULL);
    tsr_gradients(p, loss, 1, &x, &d);
    assert_int_equal(tsr_program_status(p, NULL), TSR_OK);
    assert_int_equal(tsr_layout_shape(tsr_value_layout(p, d))[1], 4);
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recording_and_compiling_survive_every_failing_allocation),
        cmocka_unit_test(preparing_fails_on_all_ranks_or_on_none),
        cmocka_unit_test(a_length_is_set_or_all_stays_as_it_was),
        cmocka_unit_test(lengths_want_preparing),
        cmocka_unit_test(peers_hear_of_kernels_that_fail),
        cmocka_unit_test(runs_survive_every_failing_allocation),
        cmocka_unit_test(peers_hear_of_wrong_arguments),
        cmocka_unit_test(ranks_that_differ_do_not_prepare),
        cmocka_unit_test(ranks_with_other_lengths_do_not_prepare),
        cmocka_unit_test(gradients_refuse_states_that_were_stored),
        cmocka_unit_test(names_of_attributes_are_the_ops_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
