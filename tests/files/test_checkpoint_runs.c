/* Tensors that ranks have in short runs: a save writes them in few large pieces, each byte once, in
 * any layout and also while training goes on; a load reads them in few, and only what ranks own but
 * for gaps of less than a page. Ranks read at the same time. */
#include "checkpoint_support.h"
#include "comm_suite.h"
#include "counted_memory.h"

#include <tessera/checkpoint.h>
#include <tessera/values.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* What the library does to files. */
static atomic_llong written, write_calls, got_bytes, read_calls;

/* The number of ranks that are to be in pread() at the same time; 0: they need not. */
static int meeting;
static atomic_int inside;

/* Each stands in for the C library's function of its name, in the libraries too. */
#define REAL(name) __extension__((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* Waits for the other ranks, ten seconds at most. */
static void meet(void)
{
    const struct timespec moment = {0, 1000000};
    atomic_fetch_add(&inside, 1);
    for (int i = 0; i < 10000 && inside < meeting; i++)
        nanosleep(&moment, NULL);
}

#pragma GCC visibility push(default)

/* Brings nothing to the disk: the system outlives the test. */
int fsync(int file)
{
    (void)file;
    return 0;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
    const ssize_t put = REAL(pwrite)(file, bytes, count, at);
    atomic_fetch_add(&write_calls, 1);
    atomic_fetch_add(&written, put);
    return put;
}

ssize_t pread(int file, void *bytes, size_t count, off_t at)
{
    if (inside < meeting && count >= (size_t)64 * 1024)
        meet();
    const ssize_t got = REAL(pread)(file, bytes, count, at);
    atomic_fetch_add(&read_calls, 1);
    atomic_fetch_add(&got_bytes, got);
    return got;
}

#pragma GCC visibility pop

/* A tensor, and what saving and loading it takes. */
typedef struct run_case {
    const char *mesh, *placements;
    int ranks, ndim;
    int64_t shape[3];
    tsr_dtype dtype, stored;
    long long writes; /* runs that ranks write */
    long long reads;  /* calls by which they read, at most */
    long long over;   /* bytes that they read beside their own, at most */
} run_case;

enum { PAGE = 4096, PIECE = 256 * 1024, HEADERS = 4 };

static const run_case cases[] = {
    {"2", "S(1)", 2, 2, {401, 403}, TSR_F32, TSR_F32, 2, 8, 401 * 403 * 4},
    {"3", "S(1)", 3, 2, {401, 403}, TSR_F32, TSR_F32, 4, 12, 2 * 401 * 403 * 4},
    {"3", "S(1;sizes=1,400,2)", 3, 2, {401, 403}, TSR_F32, TSR_BF16, 4, 12, 2 * 401 * 403 * 2},
    {"2", "S(1;interleave=20)", 2, 2, {401, 403}, TSR_F64, TSR_F64, 4, 30, 401 * 403 * 8},
    {"2", "S(0;interleave=100)", 2, 2, {401, 403}, TSR_F32, TSR_F32, 4, 200, 401 * 403 * 4},
    {"a=2,b=2", "S(0),S(1)", 4, 2, {401, 403}, TSR_F32, TSR_F32, 4, 16, 401 * 403 * 4},
    {"a=2,b=2", "S(1),S(0;sizes=300,101)", 4, 2, {401, 403}, TSR_F32, TSR_F32, 4, 16, 401 * 403 * 4},
    {"a=2,b=2", "S(0;blocks=200,200,1),S(1)", 4, 2, {401, 403}, TSR_F32, TSR_F32, 4, 24, 401 * 403 * 4},
    {"a=2,b=2", "R,S(1)", 4, 2, {401, 403}, TSR_I32, TSR_I32, 4, 16, 2 * 401 * 403 * 4},
    {"a=2,b=2", "S(2),R", 4, 3, {1, 401, 403}, TSR_F32, TSR_F32, 4, 16, 2 * 401 * 403 * 4},
    {"a=2,b=2", "S(2),S(1)", 4, 3, {3, 150, 403}, TSR_F32, TSR_F32, 4, 24, 3 * 150 * 403 * 4},
    {"3", "R", 3, 2, {401, 403}, TSR_F32, TSR_F32, 4, 6, 0},
    {"2@1", "S(1)", 4, 2, {401, 403}, TSR_F32, TSR_F32, 4, 8, 401 * 403 * 4},
    {"2", "S(1)", 2, 2, {5000, 1024}, TSR_F32, TSR_F32, 6, 180, 5000 * 1024 * 4}, /* in three parts */
};

static int64_t count_of(const run_case *c)
{
    return c->shape[0] * c->shape[1] * (c->ndim > 2 ? c->shape[2] : 1);
}

/* Whole numbers that bf16 has, too, told from their neighbours. */
static int value_at(int64_t i)
{
    return (int)((i * 7 + i / 251) % 113);
}

static void put(tsr_dtype dtype, void *data, int64_t i, int value)
{
    if (dtype == TSR_F64)
        ((double *)data)[i] = value;
    else if (dtype == TSR_F32)
        ((float *)data)[i] = (float)value;
    else
        ((int32_t *)data)[i] = value;
}

static tsr_status make(tsr_comm *comm, const run_case *c, const char *mesh, const char *placements, bool filled,
                       tsr_dtensor **out)
{
    tsr_mesh *m;
    void *const data = calloc((size_t)count_of(c), 8);
    CHECK(data);
    for (int64_t i = 0; i < count_of(c) && filled; i++)
        put(c->dtype, data, i, value_at(i));
    const tsr_tensor whole = tsr_tensor_contiguous(data, c->dtype, c->ndim, c->shape);
    TSR_TRY(tsr_mesh_parse(comm, NULL, mesh, &m));
    TSR_TRY(tsr_distribute(&whole, m, placements, out));
    tsr_mesh_destroy(m);
    free(data);
    return TSR_OK;
}

static tsr_status save(tsr_comm *comm, const char *folder, const run_case *c, tsr_dtensor *x, bool apart)
{
    const tsr_safetensors_tensor tensor = {"x", x, c->stored};
    tsr_checkpoint_saving *saving;
    if (!apart)
        return tsr_checkpoint_save(comm, folder, 1, &tensor, NULL);
    TSR_TRY(tsr_checkpoint_start(comm, folder, 1, &tensor, NULL, &saving));
    TSR_TRY(tsr_dtensor_fill(x, 1, NULL)); /* training goes on */
    return tsr_checkpoint_finish(saving);
}

/* Checks that the elements of a dtensor are those that were saved. */
static tsr_status check(const run_case *c, const tsr_dtensor *x, const tsr_dtensor *wanted)
{
    const tsr_tensor local = tsr_dtensor_to_local(x), right = tsr_dtensor_to_local(wanted);
    int64_t count;
    TSR_TRY(tsr_tensor_count(&local, &count));
    CHECK(count == 0 || memcmp(local.data, right.data, (size_t)count * tsr_dtype_bytes(c->dtype)) == 0);
    return TSR_OK;
}

static void forget(tsr_comm *comm)
{
    (void)tsr_comm_barrier(comm);
    if (tsr_comm_rank(comm) == 0)
        written = write_calls = got_bytes = read_calls = 0;
    (void)tsr_comm_barrier(comm);
}

typedef struct attempt {
    const run_case *c;
    bool apart;
    int64_t bytes_read[4]; /* of elements, by each rank */
} attempt;

static tsr_status save_and_load(tsr_comm *comm, void *arg)
{
    attempt *const a = arg;
    const run_case *const c = a->c;
    const int rank = tsr_comm_rank(comm);
    tsr_dtensor *x, *wanted;
    tsr_checkpoint_load_options options = TSR_CHECKPOINT_LOAD_OPTIONS_INIT;
    char folder[FOLDER_BYTES];
    name_folder("runs", folder);
    TSR_TRY(make(comm, c, c->mesh, c->placements, true, &x));
    TSR_TRY(make(comm, c, c->mesh, c->placements, true, &wanted));
    forget(comm);
    TSR_TRY(save(comm, folder, c, x, a->apart));
    const long long bytes = count_of(c) * (long long)tsr_dtype_bytes(c->stored);
    CHECK(written > bytes && written < bytes + 2 * PAGE); /* each byte once, and the headers */
    CHECK(write_calls <= c->writes + bytes / PIECE + 2);
    TSR_TRY(tsr_dtensor_fill(x, 2, NULL));
    const tsr_safetensors_target target = {"x", x};
    options.bytes_read = &a->bytes_read[rank];
    forget(comm);
    TSR_TRY(tsr_checkpoint_load(comm, folder, 1, &target, &options));
    TSR_TRY(tsr_comm_barrier(comm));
    long long own = 0;
    for (int r = 0; r < c->ranks; r++)
        own += a->bytes_read[r];
    CHECK(got_bytes >= own && got_bytes < own + c->over + HEADERS * c->ranks * PAGE);
    CHECK(read_calls <= c->reads + HEADERS * c->ranks);
    TSR_TRY(check(c, x, wanted));
    tsr_dtensor_destroy(wanted);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

/* Loads the whole tensor. */
static tsr_status load_whole(tsr_comm *comm, void *arg)
{
    const attempt *const a = arg;
    char folder[FOLDER_BYTES];
    tsr_dtensor *x, *wanted;
    name_folder("runs", folder);
    TSR_TRY(make(comm, a->c, "1", "R", false, &x));
    TSR_TRY(make(comm, a->c, "1", "R", true, &wanted));
    const tsr_safetensors_target target = {"x", x};
    TSR_TRY(tsr_checkpoint_load(comm, folder, 1, &target, NULL));
    TSR_TRY(check(a->c, x, wanted));
    tsr_dtensor_destroy(wanted);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void short_runs_are_written_and_read_in_large_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int apart = 0; apart < 2; apart++) {
            attempt a = {.c = &cases[i], .apart = apart};
            suite_run(cases[i].ranks, save_and_load, &a);
            suite_run(1, load_whole, &a);
        }
    suite_run(1, remove_folder, "runs");
}

/* A sum that is not reduced yet, of many bytes and of few, with long and short runs. */
static tsr_status save_terms(tsr_comm *comm, void *arg)
{
    static const run_case terms[] = {{"a=2,b=2", "P,S(1)", 4, 2, {401, 403}, TSR_F32, TSR_F32, 8, 16, 0},
                                     {"a=2,b=2", "S(0),P", 4, 2, {401, 403}, TSR_F64, TSR_F32, 8, 16, 0},
                                     {"a=2,b=2", "P,P", 4, 2, {3, 4}, TSR_F32, TSR_F32, 8, 16, 0},
                                     {"a=2,b=2", "P,P", 4, 2, {1, 1}, TSR_F32, TSR_F32, 8, 16, 0},
                                     {"a=2,b=2", "P,S(1)", 4, 2, {0, 4}, TSR_F32, TSR_F32, 8, 16, 0}};
    char folder[FOLDER_BYTES];
    name_folder(arg, folder);
    for (int i = 0; i < 2 * (int)(sizeof terms / sizeof *terms); i++) {
        const run_case *const c = &terms[i / 2];
        tsr_dtensor *x, *whole, *wanted;
        TSR_TRY(make(comm, c, c->mesh, c->placements, true, &x));
        TSR_TRY(make(comm, c, c->mesh, "R,R", false, &whole));
        TSR_TRY(make(comm, c, c->mesh, "R,R", true, &wanted));
        const tsr_safetensors_target target = {"x", whole};
        TSR_TRY(save(comm, folder, c, x, i % 2 == 1));
        TSR_TRY(tsr_checkpoint_load(comm, folder, 1, &target, NULL));
        TSR_TRY(check(c, whole, wanted));
        tsr_dtensor_destroy(wanted);
        tsr_dtensor_destroy(whole);
        tsr_dtensor_destroy(x);
    }
    return TSR_OK;
}

static void terms_are_reduced_to_where_they_are_written(void **state)
{
    (void)state;
    suite_run(4, save_terms, "terms");
    suite_run(1, remove_folder, "terms");
}

/* Saves while rank 1 lacks memory. */
typedef struct want {
    const run_case *c;
    bool apart;
    size_t step; /* between the allocations that fail */
} want;

/* Makes rank 1's n-th allocation of a call fail. `*through`: it has fewer. */
static tsr_status save_in_want(tsr_comm *comm, const want *w, const char *folder, tsr_dtensor *x, size_t n,
                               bool *through)
{
    const tsr_safetensors_tensor tensor = {"x", x, w->c->stored};
    tsr_checkpoint_saving *saving = NULL;
    counted_fail_here(n, false);
    const tsr_status status = w->apart ? tsr_checkpoint_start(comm, folder, 1, &tensor, NULL, &saving)
                                       : tsr_checkpoint_save(comm, folder, 1, &tensor, NULL);
    *through = counted_fail_here(0, false) != 0;
    return saving ? tsr_checkpoint_finish(saving) : status;
}

/* All ranks hear of the failure, those that do not take part in moves, too, or none does. */
static tsr_status want_memory(tsr_comm *comm, void *arg)
{
    const want *const w = arg;
    char folder[FOLDER_BYTES];
    tsr_dtensor *x;
    int32_t seen[3] = {0, 0, 0}; /* a rank succeeded, one failed, rank 1 had no failure */
    name_folder("runs", folder);
    TSR_TRY(make(comm, w->c, w->c->mesh, w->c->placements, true, &x));
    for (size_t n = 1; !seen[2]; n += w->step) {
        bool through;
        const tsr_status status = save_in_want(comm, w, folder, x, tsr_comm_rank(comm) == 1 ? n : 0, &through);
        seen[0] = status == TSR_OK;
        seen[1] = status != TSR_OK;
        seen[2] = through;
        TSR_TRY(tsr_comm_all_reduce(comm, seen, seen, 3, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        CHECK(seen[0] + seen[1] == 1);
    }
    CHECK(seen[0]);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void all_ranks_hear_of_one_without_memory(void **state)
{
    static const run_case one = {"2@1", "S(1)", 4, 2, {64, 64}, TSR_F32, TSR_F32, 0, 0, 0},
                          parts = {"2@1", "S(1)", 4, 2, {5000, 1024}, TSR_F32, TSR_F32, 0, 0, 0};
    static const want wants[] = {{&one, true, 1}, {&one, false, 1}, {&parts, false, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        counted_memory memory = {0};
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        want w = wants[i];
        options.context = counted_context(&memory);
        options.timeout_ms = 20000;
        suite_run_with(w.c->ranks, want_memory, &w, &options);
        tsr_context_destroy(options.context);
        assert_nothing_leaked(&memory);
    }
    suite_run(1, remove_folder, "runs");
}

/* Each rank waits in its read for that of the other. */
static void ranks_read_at_the_same_time(void **state)
{
    (void)state;
    static const run_case rows = {"2", "S(0)", 2, 2, {401, 403}, TSR_F32, TSR_F32, 6, 2, 0};
    attempt a = {.c = &rows};
    meeting = 2;
    suite_run(2, save_and_load, &a);
    assert_int_equal(inside, 2);
    meeting = 0;
    suite_run(1, remove_folder, "runs");
}

int main(int count, char **arguments)
{
    suite_start(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_runs_are_written_and_read_in_large_pieces),
        cmocka_unit_test(terms_are_reduced_to_where_they_are_written),
        cmocka_unit_test(all_ranks_hear_of_one_without_memory),
        cmocka_unit_test(ranks_read_at_the_same_time),
    };
    return cmocka_run_group_tests_name("checkpoints of short runs", tests, NULL, NULL);
}
