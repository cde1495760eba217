/* A context keeps large blocks that were released, for the next allocation of their size. */
#include "base/memory/memory.h"
#include "counted_memory.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
/* Sanitizers have memory of their own, whose pages come and go. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static tsr_context *keeping(size_t bytes)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context = NULL;
    options.environment = no_environment;
    options.kept_bytes = bytes;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    return context;
}

static void *allocate(tsr_context *context, size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(tsr_allocate_data(context, bytes, &memory), TSR_OK);
    return memory;
}

/* Page faults of this thread since it began. */
static long count_faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt;
}

static long use_once(tsr_context *context, size_t bytes)
{
    const long before = count_faults();
    void *const memory = allocate(context, bytes);
    memset(memory, 0x5a, bytes);
    tsr_release(context, memory);
    return count_faults() - before;
}

static void expect_no_faults(size_t bytes)
{
    tsr_context *context = keeping(0);
    use_once(context, bytes);
    for (int again = 0; again < 3; again++)
        if (use_once(context, bytes) > 2)
            fail_msg("block %d of %zu bytes cost page faults", again + 2, bytes);
    assert_int_equal(tsr_context_kept_statistics(context).misses, 1);
    assert_int_equal(tsr_context_kept_statistics(context).hits, 3);
    tsr_context_destroy(context);
}

/* A new block of these sizes costs 17 to some hundreds of page faults. The largest one is offered
 * to the system while the context keeps it. */
static void a_second_block_of_a_size_costs_no_page_fault(void **state)
{
    (void)state;
    static const size_t sizes[] = {64 * KIB, 200 * KIB, MIB, 3 * MIB, 4 * MIB, 16 * MIB, 36 * MIB};
    if (SANITIZED) {
        print_message("skipped: page faults of sanitizers are counted too\n");
        skip();
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        expect_no_faults(sizes[i]);
}

static void small_pages_serve_where_there_are_no_huge_ones(void **state)
{
    (void)state;
    if (SANITIZED || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
        print_message(
            "skipped: the system does not switch huge pages off, or page faults of sanitizers are counted too\n");
        skip();
    }
    expect_no_faults(5 * MIB);
    expect_no_faults(36 * MIB);
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

/* The KiB of this process that the system may take back without asking; -1: the system does not
 * say. */
static long count_offered(void)
{
    FILE *const file = fopen("/proc/self/smaps", "r");
    char line[512];
    long sum = -1, one;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "LazyFree: %ld", &one) == 1)
            sum = (sum < 0 ? 0 : sum) + one;
    if (file)
        fclose(file);
    return sum;
}

static void what_is_kept_beyond_32_mib_is_offered_to_the_system(void **state)
{
    (void)state;
    if (SANITIZED || count_offered() < 0) {
        print_message("skipped: the system does not say what it may take, or sanitizers have other memory\n");
        skip();
    }
    tsr_context *context = keeping(0);
    use_once(context, 24 * MIB);
    assert_int_equal(count_offered(), 0);
    use_once(context, 40 * MIB);
    assert_true(count_offered() > 0);
    tsr_context_destroy(context);
}

static void expect_kept(const tsr_context *context, size_t blocks, size_t bytes)
{
    const tsr_kept_statistics kept = tsr_context_kept_statistics(context);
    assert_int_equal(kept.blocks, blocks);
    assert_in_range(kept.bytes, bytes, bytes + blocks * 128 * KIB);
}

static void no_more_is_kept_than_the_option_allows(void **state)
{
    (void)state;
    enum { BLOCKS = 20 };
    tsr_context *context = keeping(9 * MIB);
    void *blocks[BLOCKS];
    assert_int_equal(tsr_context_kept_statistics(context).most_bytes, 9 * MIB);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = allocate(context, MIB);
    expect_kept(context, 0, 0);
    for (int i = 0; i < BLOCKS; i++) {
        tsr_release(context, blocks[i]);
        assert_true(tsr_context_kept_statistics(context).bytes <= 9 * MIB);
    }
    expect_kept(context, 8, 8 * MIB);
    /* The oldest block was released to the system. */
    assert_ptr_equal(allocate(context, MIB), blocks[BLOCKS - 1]);
    tsr_release(context, blocks[BLOCKS - 1]);
    tsr_release(context, allocate(context, 10 * MIB));
    expect_kept(context, 8, 8 * MIB);
    tsr_release(context, allocate(context, 8 * MIB));
    expect_kept(context, 1, 8 * MIB);
    tsr_context_destroy(context);
}

static void small_blocks_and_lists_are_not_kept(void **state)
{
    (void)state;
    tsr_context *context = keeping(0);
    void *list = NULL;
    assert_int_equal(tsr_allocate(context, 5 * MIB, &list), TSR_OK);
    tsr_release(context, list);
    tsr_release(context, allocate(context, 64 * KIB - 64));
    tsr_release(context, allocate(context, 1));
    const tsr_kept_statistics kept = tsr_context_kept_statistics(context);
    assert_int_equal(kept.blocks + kept.hits + kept.misses, 0);
    assert_int_equal(kept.most_bytes, (size_t)1 << 30);
    tsr_context_destroy(context);
}

static void a_block_serves_sizes_up_to_an_eighth_smaller(void **state)
{
    (void)state;
    static const struct {
        size_t first, second;
        bool serves;
    } cases[] = {
        {8 * MIB, 8 * MIB, true},   {8 * MIB, 8 * MIB - 5, true},          {9 * MIB, 8 * MIB + 1, true},
        {16 * MIB, 8 * MIB, false}, {8 * MIB, 8 * MIB + 256 * KIB, false}, {8 * MIB, 64 * KIB, false},
        {66 * KIB, 65 * KIB, true}, {128 * KIB, 65 * KIB, false},          {MIB, 900 * KIB, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_context *context = keeping(0);
        tsr_release(context, allocate(context, cases[i].first));
        void *const memory = allocate(context, cases[i].second);
        memset(memory, 1, cases[i].second);
        if ((tsr_context_kept_statistics(context).hits == 1) != cases[i].serves)
            fail_msg("%zu bytes after %zu: %s", cases[i].second, cases[i].first,
                     cases[i].serves ? "not served" : "served");
        tsr_release(context, memory);
        tsr_context_destroy(context);
    }
}

static void of_several_blocks_the_smallest_that_fits_serves(void **state)
{
    (void)state;
    tsr_context *context = keeping(0);
    void *const large = allocate(context, 8 * MIB + 512 * KIB), *const fitting = allocate(context, 8 * MIB + 128 * KIB);
    tsr_release(context, fitting);
    tsr_release(context, large);
    void *const memory = allocate(context, 8 * MIB);
    assert_ptr_equal(memory, fitting);
    tsr_release(context, memory);
    tsr_context_destroy(context);
}

static void *give(void *arg)
{
    void **const given = arg;
    tsr_release(given[0], given[1]);
    return NULL;
}

/* On machines with several memory nodes, a thread's own block is on its node. */
static void of_equal_blocks_a_thread_gets_its_own(void **state)
{
    (void)state;
    tsr_context *context = keeping(0);
    void *const own = allocate(context, MIB), *const older = allocate(context, MIB),
                *const others = allocate(context, MIB);
    void *given[] = {context, others};
    pthread_t thread;
    tsr_release(context, older);
    tsr_release(context, own);
    assert_int_equal(pthread_create(&thread, NULL, give, given), 0);
    pthread_join(thread, NULL);
    assert_ptr_equal(allocate(context, MIB), own);
    assert_ptr_equal(allocate(context, MIB), older);
    assert_ptr_equal(allocate(context, MIB), others);
    tsr_release(context, own);
    tsr_release(context, older);
    tsr_release(context, others);
    tsr_context_destroy(context);
}

/* Looking through a list without bound would take longer and longer. */
static void of_many_blocks_the_newest_are_kept(void **state)
{
    (void)state;
    enum { BLOCKS = 300 };
    tsr_context *context = keeping(0);
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = allocate(context, 65 * KIB);
    for (int i = 0; i < BLOCKS; i++)
        tsr_release(context, blocks[i]);
    expect_kept(context, 256, 256 * 65 * KIB);
    for (int i = BLOCKS; i-- > BLOCKS - 256;)
        assert_ptr_equal(allocate(context, 65 * KIB), blocks[i]);
    expect_kept(context, 0, 0);
    for (int i = BLOCKS; i-- > BLOCKS - 256;)
        tsr_release(context, blocks[i]);
    tsr_context_destroy(context);
}

static bool is_mapped(void *memory)
{
    char *const page = (char *)memory - (uintptr_t)memory % (size_t)sysconf(_SC_PAGESIZE);
    return msync(page, 1, MS_ASYNC) == 0 || errno != ENOMEM;
}

static void trimming_gives_back_all_that_is_kept(void **state)
{
    (void)state;
    tsr_context *context = keeping(0);
    void *const small = allocate(context, 5 * MIB), *const large = allocate(context, 70 * MIB);
    memset(large, 1, MIB);
    assert_int_equal(tsr_context_trim(context), 0);
    tsr_release(context, small);
    tsr_release(context, large);
    expect_kept(context, 2, 75 * MIB);
    const size_t bytes = tsr_context_kept_statistics(context).bytes;
    assert_int_equal(tsr_context_trim(context), bytes);
    expect_kept(context, 0, 0);
    assert_true(SANITIZED || !is_mapped(large));
    assert_int_equal(tsr_context_trim(context), 0);
    tsr_release(context, allocate(context, 5 * MIB));
    assert_int_equal(tsr_context_kept_statistics(context).misses, 3);
    tsr_context_destroy(context);
    assert_int_equal(tsr_context_trim(NULL), 0);
}

static void what_is_kept_goes_with_the_context(void **state)
{
    (void)state;
    tsr_context *context = keeping(0);
    void *const memory = allocate(context, 6 * MIB);
    tsr_release(context, memory);
    assert_true(SANITIZED || is_mapped(memory));
    tsr_context_destroy(context);
    assert_true(SANITIZED || !is_mapped(memory));
}

static void a_context_with_its_own_allocator_keeps_nothing(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context_options options = counted_options(&memory);
    tsr_context *context = NULL;
    options.kept_bytes = 64 * MIB;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    tsr_release(context, allocate(context, 4 * MIB));
    assert_int_equal(memory.live_blocks, 1);
    const tsr_kept_statistics none = {0}, kept = tsr_context_kept_statistics(context);
    assert_memory_equal(&kept, &none, sizeof kept);
    assert_int_equal(tsr_context_trim(context), 0);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void keeping_can_be_switched_off(void **state)
{
    (void)state;
    tsr_context *context = keeping(TSR_KEEP_NONE);
    const tsr_kept_statistics none = {0};
    tsr_release(context, allocate(context, 4 * MIB));
    tsr_kept_statistics kept = tsr_context_kept_statistics(context);
    assert_memory_equal(&kept, &none, sizeof kept);
    tsr_context_destroy(context);
    kept = tsr_context_kept_statistics(NULL);
    assert_memory_equal(&kept, &none, sizeof kept);
}

static size_t count_mapped_bytes(void)
{
    FILE *const file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void what_is_kept_goes_before_there_is_no_memory(void **state)
{
    (void)state;
    struct rlimit old, tight;
    void *memory = NULL;
    if (SANITIZED) {
        print_message("skipped: sanitizers need more address space than this test leaves\n");
        skip();
    }
    tsr_context *context = keeping(0);
    tsr_release(context, allocate(context, 64 * MIB));
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    tight = old;
    tight.rlim_cur = count_mapped_bytes() + 32 * MIB;
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    const tsr_status fits = tsr_allocate_data(context, 80 * MIB, &memory);
    tsr_release(context, memory);
    const tsr_status never = tsr_allocate(context, 200 * MIB, &memory);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_int_equal(fits, TSR_OK);
    assert_int_equal(never, TSR_ERROR_MEMORY);
    assert_non_null(strstr(tsr_status_message(), "no memory for 209715200 bytes"));
    expect_kept(context, 0, 0);
    tsr_context_destroy(context);
}

static void less_is_kept_where_address_space_is_limited(void **state)
{
    (void)state;
    struct rlimit old, tight;
    if (SANITIZED) {
        print_message("skipped: sanitizers need more address space than this test leaves\n");
        skip();
    }
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    tight = old;
    tight.rlim_cur = (rlim_t)1 << 30;
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    tsr_context *const context = keeping(0), *const wanted = keeping(200 * MIB);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_int_equal(tsr_context_kept_statistics(context).most_bytes, 128 * MIB);
    assert_int_equal(tsr_context_kept_statistics(wanted).most_bytes, 200 * MIB);
    tsr_context_destroy(context);
    tsr_context_destroy(wanted);
}

#ifdef __SANITIZE_ADDRESS__
static void memory_that_was_released_is_poisoned_while_it_is_kept(void **state)
{
    (void)state;
    tsr_context *context = keeping(0);
    char *const memory = allocate(context, 8 * MIB);
    assert_true(__asan_address_is_poisoned(memory + 8 * MIB));
    assert_false(__asan_address_is_poisoned(memory + 8 * MIB - 1));
    tsr_release(context, memory);
    assert_true(__asan_address_is_poisoned(memory));
    assert_true(__asan_address_is_poisoned(memory + 8 * MIB - 1));
    assert_ptr_equal(allocate(context, 8 * MIB - 100), memory);
    assert_null(__asan_region_is_poisoned(memory, 8 * MIB - 100));
    assert_true(__asan_address_is_poisoned(memory + 8 * MIB - 100 + 8));
    tsr_release(context, memory);
    tsr_context_destroy(context);
}
#endif

/* An engine that keeps one block of its own. */
typedef struct engine {
    tsr_context *context;
    tsr_keeper keeper;
    size_t bytes; /* of the block */
    int trims;
} engine;

static size_t trim_engine(void *self)
{
    engine *const e = self;
    const size_t bytes = e->bytes;
    e->trims++;
    e->bytes = 0;
    if (bytes > 0)
        tsr_keeper_drop(e->context, bytes);
    return bytes;
}

static void what_engines_keep_counts_within_one_bound(void **state)
{
    (void)state;
    tsr_context *context = keeping(10 * MIB);
    engine one = {.context = context}, two = one;
    one.keeper = (tsr_keeper){.trim = trim_engine, .self = &one};
    two.keeper = (tsr_keeper){.trim = trim_engine, .self = &two};
    tsr_keeper_add(context, &one.keeper);
    tsr_keeper_add(context, &two.keeper);
    assert_int_equal(tsr_keeper_keep(context, 11 * MIB), 0);
    one.bytes = 6 * MIB;
    assert_int_equal(tsr_keeper_keep(context, one.bytes), 1);
    assert_int_equal(tsr_keeper_keep(context, 5 * MIB), 0);
    tsr_release(context, allocate(context, 3 * MIB));
    expect_kept(context, 2, 9 * MIB);
    /* This block does not fit beside the engine's. */
    tsr_release(context, allocate(context, 5 * MIB));
    expect_kept(context, 1, 6 * MIB);
    tsr_keeper_take(context, 0);
    tsr_keeper_take(context, one.bytes);
    expect_kept(context, 0, 0);
    assert_int_equal(tsr_context_kept_statistics(context).hits, 1);
    assert_int_equal(tsr_context_kept_statistics(context).misses, 3);
    assert_int_equal(tsr_keeper_keep(context, one.bytes), 1);
    assert_int_equal(tsr_context_trim(context), 6 * MIB);
    expect_kept(context, 0, 0);
    tsr_keeper_remove(context, &one.keeper);
    tsr_keeper_remove(context, &one.keeper);
    assert_int_equal(tsr_context_trim(context), 0);
    assert_int_equal(one.trims, 1);
    assert_int_equal(two.trims, 2);
    tsr_keeper_remove(context, &two.keeper);
    tsr_context_destroy(context);
}

static void engines_keep_nothing_where_the_context_does_not(void **state)
{
    (void)state;
    tsr_context *context = keeping(TSR_KEEP_NONE);
    engine one = {.context = context};
    one.keeper = (tsr_keeper){.trim = trim_engine, .self = &one};
    tsr_keeper_add(context, &one.keeper);
    assert_int_equal(tsr_keeper_keep(context, 1), 0);
    tsr_keeper_take(context, 0);
    assert_int_equal(tsr_context_trim(context), 0);
    assert_int_equal(one.trims, 0);
    tsr_keeper_remove(context, &one.keeper);
    tsr_context_destroy(context);
}

enum { THREADS = 8, TURNS = 400 };

typedef struct user {
    tsr_context *context;
    uint64_t number;
    bool wrong;
} user;

/* Holds some blocks at a time, and checks before each release that no other thread has written to
 * it. */
static void *use_many(void *arg)
{
    user *const u = arg;
    struct {
        uint64_t *at;
        size_t words;
    } held[4] = {{0}};
    for (uint64_t turn = 0, random = u->number + 1; turn < TURNS; turn++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        const size_t slot = turn % 4, bytes = (64 + (random >> 40) % 2000) * KIB;
        if (held[slot].at)
            u->wrong |= held[slot].at[0] != u->number || held[slot].at[held[slot].words - 1] != turn - 4;
        tsr_release(u->context, held[slot].at);
        held[slot].words = bytes / sizeof(uint64_t);
        if (tsr_allocate_data(u->context, bytes, (void **)&held[slot].at) != TSR_OK)
            return u->wrong = true, NULL;
        held[slot].at[0] = u->number;
        held[slot].at[held[slot].words - 1] = turn;
        if (turn % 100 == 99)
            tsr_context_trim(u->context);
    }
    for (int slot = 0; slot < 4; slot++)
        tsr_release(u->context, held[slot].at);
    return NULL;
}

static void many_threads_share_what_is_kept(void **state)
{
    (void)state;
    tsr_context *context = keeping(16 * MIB);
    pthread_t threads[THREADS];
    user users[THREADS];
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user){context, (uint64_t)i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, use_many, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(users[i].wrong);
    }
    const tsr_kept_statistics kept = tsr_context_kept_statistics(context);
    assert_int_equal(kept.hits + kept.misses, THREADS * TURNS);
    assert_true(kept.hits > 0 && kept.bytes <= 16 * MIB);
    assert_int_equal(tsr_context_trim(context), kept.bytes);
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_block_of_a_size_costs_no_page_fault),
        cmocka_unit_test(small_pages_serve_where_there_are_no_huge_ones),
        cmocka_unit_test(what_is_kept_beyond_32_mib_is_offered_to_the_system),
        cmocka_unit_test(no_more_is_kept_than_the_option_allows),
        cmocka_unit_test(small_blocks_and_lists_are_not_kept),
        cmocka_unit_test(a_block_serves_sizes_up_to_an_eighth_smaller),
        cmocka_unit_test(of_several_blocks_the_smallest_that_fits_serves),
        cmocka_unit_test(of_equal_blocks_a_thread_gets_its_own),
        cmocka_unit_test(of_many_blocks_the_newest_are_kept),
        cmocka_unit_test(trimming_gives_back_all_that_is_kept),
        cmocka_unit_test(what_is_kept_goes_with_the_context),
        cmocka_unit_test(a_context_with_its_own_allocator_keeps_nothing),
        cmocka_unit_test(keeping_can_be_switched_off),
        cmocka_unit_test(what_is_kept_goes_before_there_is_no_memory),
        cmocka_unit_test(less_is_kept_where_address_space_is_limited),
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(memory_that_was_released_is_poisoned_while_it_is_kept),
#endif
        cmocka_unit_test(what_engines_keep_counts_within_one_bound),
        cmocka_unit_test(engines_keep_nothing_where_the_context_does_not),
        cmocka_unit_test(many_threads_share_what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
