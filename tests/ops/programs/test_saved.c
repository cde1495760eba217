/* Programs and executables as bytes: what was saved does the same when it is loaded, and is saved
 * as the same bytes; other bytes are refused. */
#include "counted_memory.h"
#include "layers.h"
#include "samples.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Bytes that were saved; owned. */
typedef struct bytes {
    unsigned char *at;
    size_t count;
} bytes;

static tsr_status save_program(const tsr_program *program, bytes *out)
{
    size_t again;
    unsigned char part[5];
    TSR_TRY(tsr_program_save(program, NULL, 0, &out->count));
    out->at = malloc(out->count);
    TSR_TRY(tsr_program_save(program, out->at, out->count, &again));
    EXPECT(again == out->count, "%zu bytes, then %zu", out->count, again);
    TSR_TRY(tsr_program_save(program, part, sizeof part, &again));
    EXPECT(again == out->count && memcmp(part, out->at, sizeof part) == 0, "a part has other bytes");
    return TSR_OK;
}

static tsr_status save_executable(const tsr_executable *x, bytes *out)
{
    size_t again;
    TSR_TRY(tsr_executable_save(x, NULL, 0, &out->count));
    out->at = malloc(out->count);
    TSR_TRY(tsr_executable_save(x, out->at, out->count, &again));
    EXPECT(again == out->count, "%zu bytes, then %zu", out->count, again);
    return TSR_OK;
}

/* Compares, and frees `b`. */
static tsr_status expect_same_bytes(const char *what, const bytes *a, bytes *b)
{
    const bool is_same = a->count == b->count && memcmp(a->at, b->at, a->count) == 0;
    free(b->at);
    EXPECT(is_same, "%s: other bytes, %zu and %zu", what, a->count, b->count);
    return TSR_OK;
}

static bool are_same_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static tsr_status expect_same_steps(const tsr_executable *a, const tsr_executable *b)
{
    EXPECT(tsr_executable_step_count(a) == tsr_executable_step_count(b), "%zu steps, and %zu",
           tsr_executable_step_count(a), tsr_executable_step_count(b));
    EXPECT(tsr_executable_workspace_bytes(a) == tsr_executable_workspace_bytes(b), "another workspace");
    for (size_t i = 0; i < tsr_executable_step_count(a); i++) {
        tsr_executable_step x, y;
        TSR_TRY(tsr_executable_step_at(a, i, &x));
        TSR_TRY(tsr_executable_step_at(b, i, &y));
        EXPECT(strcmp(x.op, y.op) == 0 && are_same_texts(x.cause, y.cause) && x.is_view == y.is_view &&
                   x.bytes_received == y.bytes_received && x.bytes_touched == y.bytes_touched && x.group == y.group &&
                   x.flops == y.flops && memcmp(x.operands, y.operands, sizeof x.operands) == 0 &&
                   memcmp(x.results, y.results, sizeof x.results) == 0,
               "step %zu is %s and %s, for %s and %s", i, x.op, y.op, x.cause ? x.cause : "itself",
               y.cause ? y.cause : "itself");
        for (int j = 0; j < TSR_OP_MOST_RESULTS; j++)
            EXPECT(!x.result_layouts[j] || tsr_layout_equal(x.result_layouts[j], y.result_layouts[j]),
                   "step %zu has another layout", i);
    }
    return TSR_OK;
}

/* Prepares an executable and runs it twice. */
static tsr_status run(const sample *s, const tsr_program *program, tsr_executable *x, tsr_comm *comm,
                      sample_written *out)
{
    tsr_dtensor *bound[8];
    tsr_status status = sample_bind(program, x, bound);
    if (status == TSR_OK)
        status = tsr_executable_prepare(x, comm);
    for (int i = 0; i < 2 && status == TSR_OK; i++)
        status = sample_run(s, x, comm, bound, out);
    sample_unbind(bound);
    return status;
}

/* Runs an executable that was loaded, and compares it with the one that was saved. */
static tsr_status compare(const sample *s, const tsr_program *program, const tsr_executable *saved, tsr_executable *x,
                          tsr_comm *comm, const sample_written *wanted)
{
    static _Thread_local sample_written got;
    TSR_TRY(run(s, program, x, comm, &got));
    TSR_TRY(expect_same_steps(saved, x));
    EXPECT(got.count == wanted->count && memcmp(got.bytes, wanted->bytes, got.count) == 0, "other bits");
    return TSR_OK;
}

/* The same bytes on every rank. */
static tsr_status expect_same_on_ranks(tsr_comm *comm, const bytes *own)
{
    int64_t sum = (int64_t)own->count, all[2];
    for (size_t i = 0; i < own->count; i++)
        sum = (sum * 31 + own->at[i]) % 1000000007;
    const int64_t both[] = {sum, -sum};
    TSR_TRY(tsr_comm_all_reduce(comm, both, all, 2, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    EXPECT(all[0] == -all[1], "ranks save other bytes");
    return TSR_OK;
}

static tsr_status trip_program(const sample *s, tsr_context *context, const tsr_program *program,
                               const tsr_executable *x, tsr_comm *comm, const sample_written *wanted)
{
    bytes saved, again;
    tsr_program *loaded;
    tsr_executable *y;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    options.rank = tsr_comm_rank(comm);
    TSR_TRY(save_program(program, &saved));
    TSR_TRY(expect_same_on_ranks(comm, &saved));
    TSR_TRY(tsr_program_load(context, saved.at, saved.count, &loaded));
    TSR_TRY(save_program(loaded, &again));
    TSR_TRY(expect_same_bytes("program", &saved, &again));
    free(saved.at);
    for (tsr_value v = 0; tsr_value_layout(program, v); v++)
        EXPECT(tsr_value_varying(program, v) == tsr_value_varying(loaded, v) &&
                   are_same_texts(tsr_value_name(program, v), tsr_value_name(loaded, v)),
               "value %d varies otherwise or has another name", v);
    TSR_TRY(tsr_compile(loaded, &options, &y));
    tsr_program_destroy(loaded);
    const tsr_status status = compare(s, program, x, y, comm, wanted);
    tsr_executable_destroy(y);
    return status;
}

static tsr_status trip_executable(const sample *s, tsr_context *context, const tsr_program *program,
                                  const tsr_executable *x, tsr_comm *comm, const sample_written *wanted)
{
    bytes saved, again;
    tsr_executable *y;
    TSR_TRY(save_executable(x, &saved));
    TSR_TRY(tsr_executable_load(context, saved.at, saved.count, &y));
    TSR_TRY(save_executable(y, &again));
    TSR_TRY(expect_same_bytes("executable", &saved, &again));
    free(saved.at);
    const tsr_status status = compare(s, program, x, y, comm, wanted);
    tsr_executable_destroy(y);
    return status;
}

/* Both trips, into a context that forbids what the policy put in. */
static tsr_status trip(const sample *s, tsr_context *context, tsr_comm *comm)
{
    static _Thread_local sample_written wanted;
    tsr_mesh *mesh;
    tsr_program *program;
    tsr_executable *x;
    TSR_TRY(tsr_mesh_parse(comm, NULL, s->mesh, &mesh));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &program));
    s->record(program, mesh);
    tsr_status status = tsr_compile(program, NULL, &x);
    if (status == TSR_OK) {
        status = run(s, program, x, comm, &wanted);
        if (status == TSR_OK)
            status = trip_program(s, context, program, x, comm, &wanted);
        if (status == TSR_OK)
            status = trip_executable(s, context, program, x, comm, &wanted);
        tsr_executable_destroy(x);
    }
    tsr_program_destroy(program);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status trip_on_rank(tsr_comm *comm, void *arg)
{
    const sample *const s = arg;
    tsr_context *context;
    sample other = *s;
    other.policy = TSR_POLICY_FORBID;
    const tsr_context_options options = sample_options(&other);
    TSR_TRY(tsr_context_create(&options, &context));
    const tsr_status status = trip(s, context, comm);
    tsr_context_destroy(context);
    return status;
}

static void what_is_loaded_runs_as_what_was_saved(void **state)
{
    (void)state;
    for (const sample *s = samples; s->name; s++) {
        counted_memory memory = {0};
        tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
        tsr_context_options options = sample_options(s);
        options.allocator = counted_allocator(&memory);
        assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
        const tsr_status status = tsr_threads_run(s->ranks, trip_on_rank, (void *)s, &threads);
        if (status != TSR_OK)
            fail_msg("%s on %s: %s: %s", s->name, s->mesh, tsr_status_name(status), tsr_status_message());
        tsr_context_destroy(threads.context);
        assert_nothing_leaked(&memory);
    }
}

/* A small program over an abstract mesh: with a length, a key, a state, ops with attributes, a
 * move, a gradient's values and outputs. */
static tsr_program *record_small(tsr_context *context)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_value d;
    assert_int_equal(tsr_mesh_parse(NULL, context, "tp=2", &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    const int64_t n = tsr_length(p, "n", 4), shape[] = {4, 6};
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){n, 6}, "S(1)");
    assert_int_equal(tsr_layout_parse(mesh, "S(1)", 2, shape, TSR_F32, &layout), TSR_OK);
    const tsr_value s = tsr_state(p, "s", layout), zero = tsr_input(p, "at", mesh, TSR_I64, 0, NULL, NULL);
    tsr_layout_destroy(layout);
    const tsr_attribute dims = tsr_attribute_ints("dim", 1, (const int64_t[]){0});
    const tsr_value part = tsr_program_apply(p, "sum", 1, &dims, &x, NULL);
    tsr_value loss = tsr_program_apply(p, "sum", 0, NULL, &part, NULL);
    loss = tsr_program_apply(p, "all_reduce", 0, NULL, &loss, NULL);
    tsr_gradients(p, loss, 1, &x, &d);
    tsr_op_store(p, s, x, zero);
    tsr_output(p, "d", d, NULL);
    tsr_output(p, "loss", loss, NULL);
    const tsr_random_key key = tsr_run_key(p, "k", TSR_RANDOM_PHILOX), own = tsr_random_key_fold_in(key, 7);
    tsr_output(p, "kept", tsr_op_dropout(p, x, 0.25, &own), NULL);
    assert_int_equal(tsr_program_status(p, NULL), TSR_OK);
    tsr_mesh_destroy(mesh);
    return p;
}

/* The format cannot change unnoticed: the small program's bytes are kept. */
static void the_format_is_kept(void **state)
{
    char line[256];
    bytes saved;
    size_t at = 0;
    tsr_context *context;
    (void)state;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    tsr_program *const p = record_small(context);
    assert_int_equal(save_program(p, &saved), TSR_OK);
    FILE *const file = fopen(GOLDEN_DIR "/saved_program.hex", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        unsigned byte;
        int used = 0;
        for (const char *from = line; sscanf(from, " %2x%n", &byte, &used) == 1; from += used) {
            assert_true(at < saved.count);
            assert_int_equal(saved.at[at++], byte);
        }
    }
    fclose(file);
    assert_int_equal(at, saved.count);
    free(saved.at);
    tsr_program_destroy(p);
    tsr_context_destroy(context);
}

/* Loads bytes, as a program and its parts on both ranks: refused with a sentence, or a program that
 * is saved as the same bytes. */
static tsr_status try_bytes(tsr_context *context, counted_memory *memory, const unsigned char *at, size_t count)
{
    tsr_program *p = NULL;
    unsigned char *const copy = malloc(count ? count : 1);
    memcpy(copy, at, count);
    const size_t before = memory->bytes;
    const tsr_status status = tsr_program_load(context, copy, count, &p);
    if (status != TSR_OK) {
        assert_null(p);
        assert_true(strncmp(tsr_status_message(), "tsr_program_load: ", 18) == 0);
        assert_true(status == TSR_ERROR_ARGUMENT || status == TSR_ERROR_UNSUPPORTED);
    } else {
        bytes again;
        tsr_executable *x;
        tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
        assert_int_equal(save_program(p, &again), TSR_OK);
        assert_true(again.count == count && memcmp(again.at, copy, count) == 0);
        free(again.at);
        for (options.rank = 0; options.rank < 2; options.rank++)
            if (tsr_compile(p, &options, &x) == TSR_OK)
                tsr_executable_destroy(x);
        tsr_program_destroy(p);
    }
    assert_true(memory->bytes - before < 4 << 20);
    free(copy);
    return status;
}

static void seal(unsigned char *at, size_t count)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 8; i++)
        at[12 + i] = (unsigned char)((uint64_t)count >> 8 * i);
    for (size_t i = 0; i < count - 8; i++)
        sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < 8; i++)
        at[count - 8 + (size_t)i] = (unsigned char)(sum >> 8 * i);
}

/* Every prefix, and every byte with some bits flipped, as they are and with length and checksum
 * corrected. */
static void other_bytes_are_refused_or_are_programs(void **state)
{
    counted_memory memory = {0};
    bytes saved;
    int loaded = 0;
    tsr_context *const context = counted_context(&memory);
    tsr_program *const p = record_small(context);
    (void)state;
    assert_int_equal(save_program(p, &saved), TSR_OK);
    tsr_program_destroy(p);
    assert_int_equal(try_bytes(context, &memory, saved.at, saved.count), TSR_OK);
    unsigned char *const copy = malloc(saved.count);
    for (size_t count = 0; count < saved.count; count++) {
        assert_int_not_equal(try_bytes(context, &memory, saved.at, count), TSR_OK);
        memcpy(copy, saved.at, count);
        if (count >= 28) {
            seal(copy, count);
            assert_int_not_equal(try_bytes(context, &memory, copy, count), TSR_OK);
        }
    }
    static const unsigned char flips[] = {1, 2, 4, 0x80, 0xff};
    for (size_t i = 0; i < saved.count; i++) {
        for (size_t j = 0; j < sizeof flips; j++) {
            memcpy(copy, saved.at, saved.count);
            copy[i] ^= flips[j];
            assert_int_not_equal(try_bytes(context, &memory, copy, saved.count), TSR_OK);
            seal(copy, saved.count);
            loaded += try_bytes(context, &memory, copy, saved.count) == TSR_OK;
        }
    }
    assert_true(loaded > 0); /* letters of names, maxima of lengths */
    free(copy);
    free(saved.at);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

/* Every allocation of saving and loading fails in turn. */
static void loading_survives_every_failing_allocation(void **state)
{
    counted_memory memory = {0};
    bytes saved;
    tsr_context *const context = counted_context(&memory);
    tsr_program *p = record_small(context);
    (void)state;
    assert_int_equal(save_program(p, &saved), TSR_OK);
    size_t count;
    for (size_t n = 1, through = 0; !through; n++) {
        counted_fail_here(n, false);
        const tsr_status status = tsr_program_save(p, NULL, 0, &count);
        through = counted_fail_here(0, false) != 0;
        assert_int_equal(status, through ? TSR_OK : TSR_ERROR_MEMORY);
    }
    tsr_program_destroy(p);
    for (size_t n = 1, through = 0; !through; n++) {
        tsr_program *q = NULL;
        counted_fail_here(n, false);
        const tsr_status status = tsr_program_load(context, saved.at, saved.count, &q);
        through = counted_fail_here(0, false) != 0;
        assert_int_equal(status, through ? TSR_OK : TSR_ERROR_MEMORY);
        assert_true(through == (q != NULL));
        tsr_program_destroy(q);
    }
    free(saved.at);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

/* A context without the program's own row, and one whose row has another rule. */
static tsr_status check_same(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

static tsr_status no_kernel(const tsr_kernel_call *call)
{
    (void)call;
    return TSR_OK;
}

static void ops_are_found_by_name(void **state)
{
    static const tsr_op whole = {.size = sizeof(tsr_op),
                                 .name = "sample.twice",
                                 .rule = "n m -> m n",
                                 .operands = {"x"},
                                 .results = {"out"},
                                 .check = check_same,
                                 .host = no_kernel};
    const tsr_op *const rows[] = {&whole};
    tsr_context *with, *without, *other;
    tsr_mesh *mesh;
    tsr_program *p, *loaded = NULL;
    bytes saved;
    (void)state;
    tsr_context_options options = sample_options(&samples[0]);
    assert_int_equal(tsr_context_create(&options, &with), TSR_OK);
    options.ops = rows;
    assert_int_equal(tsr_context_create(&options, &other), TSR_OK);
    assert_int_equal(tsr_context_create(NULL, &without), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, with, "2", &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(with, &p), TSR_OK);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, (const int64_t[]){4, 4}, "S(0)");
    tsr_output(p, "y", tsr_program_apply(p, "sample.twice", 0, NULL, &x, NULL), NULL);
    assert_int_equal(save_program(p, &saved), TSR_OK);
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    assert_int_equal(tsr_program_load(without, saved.at, saved.count, &loaded), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "tsr_program_load: entry 1: "));
    assert_non_null(strstr(tsr_status_message(), "sample.twice"));
    assert_int_equal(tsr_program_load(other, saved.at, saved.count, &loaded), TSR_ERROR_UNSUPPORTED);
    assert_string_equal(tsr_status_message(),
                        "tsr_program_load: entry 1: the value is \"S(1)\" by this library's rules, but was saved as "
                        "\"S(0)\", or in another shape or dtype: the program was saved by another version; record it "
                        "again");
    assert_int_equal(tsr_program_load(with, saved.at, saved.count, &loaded), TSR_OK);
    tsr_program_destroy(loaded);
    free(saved.at);
    tsr_context_destroy(with);
    tsr_context_destroy(without);
    tsr_context_destroy(other);
}

static void arguments_and_frames(void **state)
{
    static const char other[] = "tsr-planxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    tsr_context *context;
    tsr_program *p, *q;
    tsr_executable *x;
    size_t count;
    unsigned char bytes_of[512];
    (void)state;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_program_load(context, NULL, 0, &q), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "tsr_program_load: bytes is NULL");
    assert_int_equal(tsr_executable_load(NULL, other, 1, &x), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_program_load(context, other, sizeof other, &q), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "tsr_program_load: the 37 bytes are not a saved program: they do not "
                                              "begin with \"tsr-prog\"");
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    assert_int_equal(tsr_program_save(p, NULL, 1, &count), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_program_save(NULL, NULL, 0, &count), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_executable_save(NULL, NULL, 0, &count), TSR_ERROR_ARGUMENT);
    /* A program of nothing. */
    assert_int_equal(tsr_program_save(p, bytes_of, sizeof bytes_of, &count), TSR_OK);
    assert_true(count <= sizeof bytes_of);
    assert_int_equal(tsr_program_load(context, bytes_of, count, &q), TSR_OK);
    tsr_program_destroy(q);
    bytes_of[8] = 1;
    assert_int_equal(tsr_program_load(context, bytes_of, count, &q), TSR_ERROR_UNSUPPORTED);
    assert_string_equal(tsr_status_message(),
                        "tsr_program_load: the program was saved in format 1, but this library reads format 2");
    /* The program's own error. */
    (void)tsr_length(p, "n", 0);
    assert_int_equal(tsr_program_save(p, bytes_of, sizeof bytes_of, &count), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "tsr_length: "));
    tsr_program_destroy(p);
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_loaded_runs_as_what_was_saved),
        cmocka_unit_test(the_format_is_kept),
        cmocka_unit_test(other_bytes_are_refused_or_are_programs),
        cmocka_unit_test(loading_survives_every_failing_allocation),
        cmocka_unit_test(ops_are_found_by_name),
        cmocka_unit_test(arguments_and_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
