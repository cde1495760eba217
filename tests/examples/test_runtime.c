/* PROGRAM DEVICE: examples/runtime takes memory from its allocator alone, and none while it
 * executes, starts no threads but those of its pool, meets as often as documented, and ends all
 * ranks where one fails. DEVICE is a shared object with a device that has streams. */
#include "counted_memory.h"
#include "session.h"

#include <tessera/sys/library.h>
#include <tessera/sys/status.h>

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, MOVES = 3, ROUNDS = 20 };

static const char *object;
static char path[] = "/tmp/tessera-runtime-XXXXXX";

/* All allocations of the process, where the test may replace the C library's functions. */
static atomic_size_t mallocs;

#ifdef COUNTS_MALLOC
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    atomic_fetch_add(&mallocs, 1);
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}
#endif

/* A session, with all that it is made of. */
typedef struct stage {
    counted_memory memory;
    tsr_context *context;
    plans file;
    host host;
    session *session;
} stage;

static void raise_stage(stage *s, int threads, int flights)
{
    *s = (stage){.memory = {.fail_at = 0}};
    s->context = counted_context(&s->memory);
    s->host = (host){.context = s->context, .flights = flights, .timeout_ms = 60000};
    assert_int_equal(plans_open(s->context, path, &s->file), TSR_OK);
    assert_int_equal(pool_create(s->context, threads, &s->host.pool), TSR_OK);
}

static void open_stage(stage *s)
{
    if (session_open(&s->host, &s->file, &s->session) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

static void strike_stage(stage *s)
{
    if (s->session)
        session_close(s->session);
    pool_destroy(s->host.pool);
    plans_close(s->context, &s->file);
    tsr_context_destroy(s->context);
    assert_nothing_leaked(&s->memory);
}

/* One round of all flights, each of which is started before any is waited for. */
static void fly(const stage *s)
{
    for (int f = 0; f < s->host.flights; f++)
        session_start(s->session, f, FAULT_NONE, 0);
    for (int f = 0; f < s->host.flights; f++)
        if (session_wait(s->session, f) != TSR_OK)
            fail_msg("%s", tsr_status_message());
}

static void check(const stage *s)
{
    for (int f = 0; f < s->host.flights; f++)
        if (session_check(s->session, f) != TSR_OK)
            fail_msg("%s", tsr_status_message());
}

static size_t count_threads(void)
{
    DIR *const tasks = opendir("/proc/self/task");
    size_t count = 0;
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void executions_take_no_memory_and_start_no_threads(void **state)
{
    stage s;
    (void)state;
    raise_stage(&s, RANKS, 1);
    const size_t threads = count_threads(); /* the pool's, this one, and perhaps a sanitizer's */
    open_stage(&s);
    fly(&s);
    const size_t calls = s.memory.allocations, all = atomic_load(&mallocs), met = session_meetings(s.session);
    for (int round = 0; round < ROUNDS; round++)
        fly(&s);
    assert_int_equal(s.memory.allocations, calls);
    assert_int_equal(atomic_load(&mallocs), all);
    assert_int_equal(count_threads(), threads);
    /* Once before ranks read each other's tensors, and once after it. */
    assert_int_equal(session_meetings(s.session) - met, 2 * RANKS * MOVES * ROUNDS);
    check(&s);
    strike_stage(&s);
}

static void executions_at_once_do_not_disturb_each_other(void **state)
{
    (void)state;
    for (int threads = RANKS; threads <= 3 * RANKS; threads += RANKS + 1) {
        stage s;
        raise_stage(&s, threads, 5);
        open_stage(&s);
        for (int round = 0; round < ROUNDS; round++)
            fly(&s);
        check(&s);
        strike_stage(&s);
    }
}

/* The device, and calls that no execution may make. */
static const tsr_device_table *under;
static atomic_size_t forbidden;

static tsr_status alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    atomic_fetch_add(&forbidden, 1);
    return under->alloc(self, index, bytes, stream, out);
}

static void release(void *self, int index, void *memory, size_t bytes, tsr_stream stream)
{
    atomic_fetch_add(&forbidden, 1);
    under->free(self, index, memory, bytes, stream);
}

static tsr_status synchronize(void *self, int index, tsr_stream stream)
{
    atomic_fetch_add(&forbidden, 1);
    return under->stream_synchronize(self, index, stream);
}

static tsr_status create_event(void *self, int index, void **out)
{
    atomic_fetch_add(&forbidden, 1);
    return under->event_create(self, index, out);
}

static tsr_device_driver *count_calls(const tsr_device_driver *driver)
{
    tsr_device_driver *counting;
    void *self;
    under = tsr_device_driver_table(driver, &self);
    tsr_device_table table = *under;
    table.alloc = alloc;
    table.free = release;
    table.stream_synchronize = synchronize;
    table.event_create = create_event;
    table.destroy = NULL;
    assert_int_equal(tsr_device_driver_create(&table, self, &counting), TSR_OK);
    return counting;
}

static void executions_only_enqueue_on_a_device(void **state)
{
    stage s;
    tsr_device_driver *driver;
    (void)state;
    if (tsr_device_driver_load(NULL, object, &driver) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    raise_stage(&s, RANKS, 2);
    tsr_device_driver *const counting = count_calls(driver);
    s.host.device = counting;
    open_stage(&s);
    fly(&s);
    const size_t calls = s.memory.allocations;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t before = atomic_load(&forbidden);
        fly(&s);
        /* The host's own waits, one for each rank of a flight. */
        assert_int_equal(atomic_load(&forbidden) - before, 2 * RANKS);
    }
    assert_int_equal(s.memory.allocations, calls);
    check(&s);
    session_close(s.session);
    s.session = NULL;
    tsr_device_driver_destroy(counting);
    tsr_device_driver_destroy(driver);
    strike_stage(&s);
}

static void a_rank_that_fails_ends_the_others_and_all_may_go_on(void **state)
{
    stage s;
    (void)state;
    raise_stage(&s, RANKS, 1);
    open_stage(&s);
    for (int victim = 0; victim < RANKS; victim++) {
        session_start(s.session, 0, FAULT_TENSOR, victim);
        assert_int_equal(session_wait(s.session, 0), TSR_ERROR_ARGUMENT);
        for (int r = 0; r < RANKS; r++) {
            const char *sentence;
            char named[32];
            const tsr_status status = session_status(s.session, 0, r, &sentence);
            snprintf(named, sizeof named, "rank %d failed", victim);
            assert_int_equal(status, r == victim ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER);
            assert_int_equal(strstr(sentence, named) != NULL, r != victim);
        }
        fly(&s);
    }
    check(&s);
    strike_stage(&s);
}

static void a_rank_that_aborts_ends_its_flight_alone(void **state)
{
    stage s;
    const char *sentence;
    (void)state;
    raise_stage(&s, RANKS, 2);
    open_stage(&s);
    for (int round = 0; round < 3; round++) {
        session_start(s.session, 0, round == 0 ? FAULT_ABORT : FAULT_NONE, 2);
        session_start(s.session, 1, FAULT_NONE, 0);
        assert_int_equal(session_wait(s.session, 0), round == 0 ? TSR_ERROR_DEVICE : TSR_ERROR_PEER);
        assert_int_equal(session_wait(s.session, 1), TSR_OK);
        assert_int_equal(session_status(s.session, 0, 0, &sentence), TSR_ERROR_PEER);
        assert_non_null(strstr(sentence, "rank 2 has aborted"));
    }
    assert_int_equal(session_check(s.session, 1), TSR_OK);
    strike_stage(&s);
}

static void a_pool_with_fewer_threads_than_ranks_is_refused(void **state)
{
    stage s;
    (void)state;
    raise_stage(&s, RANKS - 1, 1);
    assert_int_equal(session_open(&s.host, &s.file, &s.session), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "the pool has 3 threads"));
    strike_stage(&s);
}

static void a_session_that_lacks_memory_leaves_nothing(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        stage s;
        raise_stage(&s, RANKS, 1);
        s.memory.fail_at = s.memory.allocations + nth;
        const tsr_status status = session_open(&s.host, &s.file, &s.session);
        const bool failed = s.memory.allocations >= s.memory.fail_at;
        assert_int_equal(status, failed ? TSR_ERROR_MEMORY : TSR_OK);
        strike_stage(&s);
        if (!failed)
            return;
    }
}

/* What the file holds. */
typedef struct content {
    unsigned char bytes[4096];
    size_t size;
} content;

static content read_content(void)
{
    content c;
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    c.size = fread(c.bytes, 1, sizeof c.bytes, file);
    fclose(file);
    return c;
}

static void write_content(const content *c)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(c->bytes, 1, c->size, file), c->size);
    assert_int_equal(fclose(file), 0);
}

/* The sentence with which the content is refused. */
static const char *refusal_of(const content *c, tsr_status wanted)
{
    counted_memory memory = {.fail_at = 0};
    tsr_context *const context = counted_context(&memory);
    plans file;
    write_content(c);
    assert_int_equal(plans_open(context, path, &file), wanted);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
    assert_non_null(strstr(tsr_status_message(), path));
    return tsr_status_message();
}

static void damaged_files_are_refused(void **state)
{
    const content good = read_content();
    (void)state;
    for (size_t i = 12; i < good.size; i += 7) {
        content bad = good;
        bad.bytes[i] ^= 0x10;
        refusal_of(&bad, TSR_ERROR_ARGUMENT);
    }
    for (size_t size = 0; size < good.size; size += 13) {
        content bad = good;
        bad.size = size;
        refusal_of(&bad, TSR_ERROR_ARGUMENT);
    }
    write_content(&good);
}

static void files_of_another_version_or_kind_are_refused(void **state)
{
    const content good = read_content();
    content bad = good;
    (void)state;
    bad.bytes[8] = 2;
    assert_non_null(strstr(refusal_of(&bad, TSR_ERROR_UNSUPPORTED), "saved in format 2"));
    bad = good;
    bad.bytes[0] = 'X';
    assert_non_null(strstr(refusal_of(&bad, TSR_ERROR_ARGUMENT), "file of plans"));
    write_content(&good);
}

static void moves_that_the_runtime_does_not_know_are_refused(void **state)
{
    static const struct {
        move_text moves[3];
        const char *sentence;
    } rows[] = {
        {{{"one", "2", "S(0)", "S(1)", {4, 4}}, {"two", "3", "S(0)", "R", {4, 4}}, {0}},
         "move \"two\" has 3 ranks, but \"one\" has 2"},
        {{{"far", "2@4", "S(0)", "S(1)", {4, 4}}, {0}}, "move \"far\" is of other ranks than 0, 1, .."},
        {{{"most", "2", "P(max)", "R", {4, 4}}, {0}}, "move \"most\" has P(max)"},
        {{{"terms", "2", "S(0)", "P", {4, 4}}, {0}}, "move \"terms\" leaves terms of a sum"},
        {{{"runs", "2", "S(0)", "S(0;interleave=2)", {8, 4}}, {0}}, "move \"runs\" has S(0;interleave=2)"},
        {{{"blocks", "2", "S(0;blocks=2,6)", "R", {8, 4}}, {0}}, "move \"blocks\" has S(0;blocks=2,6)"},
    };
    counted_memory memory = {.fail_at = 0};
    tsr_context *const context = counted_context(&memory);
    const content good = read_content();
    plans file;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(plans_write(context, rows[i].moves, path), TSR_OK);
        assert_int_not_equal(plans_open(context, path, &file), TSR_OK);
        if (!strstr(tsr_status_message(), rows[i].sentence))
            fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), rows[i].sentence);
    }
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
    write_content(&good);
}

static void plans_have_the_same_bytes_each_time(void **state)
{
    counted_memory memory = {.fail_at = 0};
    tsr_context *const context = counted_context(&memory);
    const content first = read_content();
    (void)state;
    assert_int_equal(plans_write(context, program_moves, path), TSR_OK);
    const content second = read_content();
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
}

static int write_file(void **state)
{
    const int file = mkstemp(path);
    counted_memory memory = {.fail_at = 0};
    tsr_context *const context = counted_context(&memory);
    (void)state;
    if (file < 0)
        return -1;
    close(file);
    const tsr_status status = plans_write(context, program_moves, path);
    tsr_context_destroy(context);
    return status == TSR_OK ? 0 : -1;
}

static int remove_file(void **state)
{
    (void)state;
    return remove(path);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executions_take_no_memory_and_start_no_threads),
        cmocka_unit_test(executions_at_once_do_not_disturb_each_other),
        cmocka_unit_test(executions_only_enqueue_on_a_device),
        cmocka_unit_test(a_rank_that_fails_ends_the_others_and_all_may_go_on),
        cmocka_unit_test(a_rank_that_aborts_ends_its_flight_alone),
        cmocka_unit_test(a_pool_with_fewer_threads_than_ranks_is_refused),
        cmocka_unit_test(a_session_that_lacks_memory_leaves_nothing),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(files_of_another_version_or_kind_are_refused),
        cmocka_unit_test(moves_that_the_runtime_does_not_know_are_refused),
        cmocka_unit_test(plans_have_the_same_bytes_each_time),
    };
    object = count > 1 ? arguments[1] : "";
    return cmocka_run_group_tests(tests, write_file, remove_file);
}
