/*
 * Every collective against what one thread computes from all ranks' inputs: every dtype, equal,
 * uneven and empty parts, in place, one to eight ranks; compared byte for byte, guard bytes
 * included.
 */
#include "comm_suite.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANKS = 8, MOST_ELEMENTS = 600, MOST_BYTES = 16 * MOST_ELEMENTS, GUARD = 64, GUARD_BYTE = 0xa5 };

/* The number of elements of each rank. */
typedef struct parts {
    const char *name;
    bool equal; /* counts is NULL */
    int64_t count[MOST_RANKS];
} parts;

static const parts all_parts[] = {
    {"none", true, {0}},
    {"one each", true, {1, 1, 1, 1, 1, 1, 1, 1}},
    {"17 each", true, {17, 17, 17, 17, 17, 17, 17, 17}},
    {"70 each", true, {70, 70, 70, 70, 70, 70, 70, 70}},
    {"uneven", false, {5, 0, 33, 1, 0, 64, 7, 2}},
    {"the first only", false, {40, 0, 0, 0, 0, 0, 0, 0}},
    {"all but the first", false, {0, 3, 3, 3, 3, 3, 3, 3}},
};
#define PARTS ((int)(sizeof all_parts / sizeof *all_parts))

/* A rank's buffers; `receive` has guard bytes around it. */
typedef struct stage {
    tsr_comm *comm;
    int rank, ranks;
    tsr_dtype dtype;
    tsr_reduce_op op;
    int root;
    const parts *parts;
    const int64_t *counts;
    /* of `parts`: elements of one part, of all, of this rank, and before this rank's */
    int64_t count, total, own, offset;
    unsigned char *send, *receive, *expected;
    unsigned char *inputs[MOST_RANKS]; /* the sends of all ranks, computed again here */
} stage;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Fills with integers of arbitrary bits, and floating-point numbers of many magnitudes, so that a
 * sum in another order differs; small numbers for products, which must not overflow. */
static void fill(tsr_dtype dtype, int rank, unsigned char *to)
{
    const tsr_dtype_info *info = tsr_dtype_get(dtype);
    const tsr_dtype part = dtype == TSR_C64 ? TSR_F32 : dtype == TSR_C128 ? TSR_F64 : dtype;
    const size_t bytes = tsr_dtype_bytes(part), numbers = (size_t)MOST_ELEMENTS * info->bytes / bytes;
    for (size_t i = 0; i < numbers; i++) {
        const uint64_t bits = mix((uint64_t)rank * 1000003 + i * 17 + (uint64_t)dtype);
        unsigned char *at = to + i * bytes;
        if (info->kind == TSR_CLASS_FLOAT || info->kind == TSR_CLASS_COMPLEX)
            reference_store(part, ((double)(bits >> 40) / 8388608.0 - 1.0) * (double)(1 << (bits & 3)), at);
        else if (info->kind == TSR_CLASS_BOOL)
            *at = (unsigned char)(bits & 1);
        else
            memcpy(at, &bits, bytes);
    }
}

static tsr_status open_stage(stage *s, tsr_comm *comm)
{
    *s = (stage){.comm = comm, .rank = tsr_comm_rank(comm), .ranks = tsr_comm_size(comm)};
    unsigned char *memory = calloc((size_t)s->ranks + 3, MOST_BYTES + 2 * GUARD);
    CHECK(memory);
    s->send = memory;
    s->expected = memory + (MOST_BYTES + 2 * GUARD);
    s->receive = s->expected + (MOST_BYTES + 2 * GUARD) + GUARD;
    for (int r = 0; r < s->ranks; r++)
        s->inputs[r] = memory + (size_t)(3 + r) * (MOST_BYTES + 2 * GUARD);
    return TSR_OK;
}

static void close_stage(stage *s)
{
    free(s->send);
}

static void set_dtype(stage *s, tsr_dtype dtype)
{
    s->dtype = dtype;
    for (int r = 0; r < s->ranks; r++)
        fill(dtype, r, s->inputs[r]);
    memcpy(s->send, s->inputs[s->rank], MOST_BYTES);
}

static void set_parts(stage *s, const parts *p)
{
    s->parts = p;
    s->counts = p->equal ? NULL : p->count;
    s->count = p->equal ? p->count[0] : -1;
    s->total = s->offset = 0;
    for (int r = 0; r < s->ranks; r++) {
        if (r == s->rank)
            s->offset = s->total;
        s->total += p->count[r];
    }
    s->own = p->count[s->rank];
}

static size_t bytes_of(const stage *s, int64_t elements)
{
    return (size_t)elements * tsr_dtype_bytes(s->dtype);
}

static void clear(stage *s)
{
    memset(s->receive - GUARD, GUARD_BYTE, MOST_BYTES + 2 * GUARD);
    memset(s->expected, GUARD_BYTE, MOST_BYTES);
}

/* Checks that `receive` is `expected`, and that the guard bytes are untouched. */
static tsr_status compare(const stage *s, const char *what)
{
    for (size_t i = 0; i < GUARD; i++)
        if (s->receive[-1 - (ptrdiff_t)i] != GUARD_BYTE || s->receive[MOST_BYTES + i] != GUARD_BYTE)
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s %s %s: wrote beyond its buffer", what,
                                  tsr_dtype_name(s->dtype), s->parts->name);
    if (memcmp(s->receive, s->expected, MOST_BYTES) == 0)
        return TSR_OK;
    for (size_t i = 0;; i++)
        if (s->receive[i] != s->expected[i])
            return tsr_status_set(TSR_ERROR_INTERNAL,
                                  "%s of %s, parts \"%s\", op %s, root %d: byte %zu is %02x, not %02x", what,
                                  tsr_dtype_name(s->dtype), s->parts->name, tsr_reduce_op_name(s->op), s->root, i,
                                  s->receive[i], s->expected[i]);
}

static void expect_gathered(stage *s)
{
    unsigned char *to = s->expected;
    for (int r = 0; r < s->ranks; r++) {
        memcpy(to, s->inputs[r], bytes_of(s, s->parts->count[r]));
        to += bytes_of(s, s->parts->count[r]);
    }
}

/* Reduces elements [begin, begin + count) of all ranks' inputs in rank order, as the expected
 * result. */
static void expect_reduced(stage *s, int64_t begin, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const void *terms[MOST_RANKS];
        for (int r = 0; r < s->ranks; r++)
            terms[r] = s->inputs[r] + bytes_of(s, begin + i);
        reference_reduce(s->dtype, s->op, s->op == TSR_AVG ? s->ranks : 1, terms, s->ranks,
                         s->expected + bytes_of(s, i));
    }
}

static tsr_status check_all_gather(stage *s)
{
    clear(s);
    expect_gathered(s);
    TSR_TRY(tsr_comm_all_gather(s->comm, s->send, s->receive, s->count, s->counts, s->dtype, tsr_device_host(), NULL));
    TSR_TRY(compare(s, "all_gather"));
    clear(s);
    expect_gathered(s);
    unsigned char *own = s->receive + bytes_of(s, s->offset);
    memcpy(own, s->send, bytes_of(s, s->own));
    TSR_TRY(tsr_comm_all_gather(s->comm, own, s->receive, s->count, s->counts, s->dtype, tsr_device_host(), NULL));
    return compare(s, "all_gather in place");
}

static tsr_status check_rooted(stage *s)
{
    for (s->root = 0; s->root < s->ranks; s->root++) {
        clear(s);
        if (s->rank == s->root)
            expect_gathered(s);
        TSR_TRY(tsr_comm_gather(s->comm, s->send, s->rank == s->root ? s->receive : NULL, s->count, s->counts, s->dtype,
                                s->root, tsr_device_host(), NULL));
        TSR_TRY(compare(s, "gather"));
        clear(s);
        memcpy(s->expected, s->inputs[s->root] + bytes_of(s, s->offset), bytes_of(s, s->own));
        TSR_TRY(tsr_comm_scatter(s->comm, s->rank == s->root ? s->send : NULL, s->receive, s->count, s->counts,
                                 s->dtype, s->root, tsr_device_host(), NULL));
        TSR_TRY(compare(s, "scatter"));
        clear(s);
        memcpy(s->receive, s->send, bytes_of(s, s->total));
        memcpy(s->expected, s->inputs[s->root], bytes_of(s, s->total));
        TSR_TRY(tsr_comm_broadcast(s->comm, s->receive, s->total, s->dtype, s->root, tsr_device_host(), NULL));
        TSR_TRY(compare(s, "broadcast"));
    }
    s->root = 0;
    return TSR_OK;
}

static tsr_status check_all_to_all_equal(stage *s)
{
    clear(s);
    const size_t part = bytes_of(s, s->count);
    for (int r = 0; r < s->ranks; r++)
        memcpy(s->expected + (size_t)r * part, s->inputs[r] + (size_t)s->rank * part, part);
    TSR_TRY(tsr_comm_all_to_all(s->comm, s->send, s->receive, s->count, NULL, NULL, s->dtype, tsr_device_host(), NULL));
    return compare(s, "all_to_all");
}

/* Rank i sends rank j (count[i] + 2 j) % 11 elements. */
static int64_t pair_count(const stage *s, int from, int to)
{
    return (s->parts->count[from] + 2 * to) % 11;
}

static tsr_status check_all_to_all_uneven(stage *s)
{
    int64_t sends[MOST_RANKS], receives[MOST_RANKS], at = 0;
    clear(s);
    for (int r = 0; r < s->ranks; r++) {
        sends[r] = pair_count(s, s->rank, r);
        receives[r] = pair_count(s, r, s->rank);
        int64_t from = 0;
        for (int before = 0; before < s->rank; before++)
            from += pair_count(s, r, before);
        memcpy(s->expected + bytes_of(s, at), s->inputs[r] + bytes_of(s, from), bytes_of(s, receives[r]));
        at += receives[r];
    }
    TSR_TRY(tsr_comm_all_to_all(s->comm, s->send, s->receive, 0, sends, receives, s->dtype, tsr_device_host(), NULL));
    return compare(s, "all_to_all with counts");
}

static tsr_status check_reductions(stage *s)
{
    clear(s);
    expect_reduced(s, s->offset, s->own);
    TSR_TRY(tsr_comm_reduce_scatter(s->comm, s->send, s->receive, s->count, s->counts, s->dtype, s->op,
                                    tsr_device_host(), NULL));
    TSR_TRY(compare(s, "reduce_scatter"));
    clear(s);
    expect_reduced(s, 0, s->total);
    TSR_TRY(tsr_comm_all_reduce(s->comm, s->send, s->receive, s->total, s->dtype, s->op, tsr_device_host(), NULL));
    TSR_TRY(compare(s, "all_reduce"));
    memcpy(s->receive, s->send, bytes_of(s, s->total));
    TSR_TRY(tsr_comm_all_reduce(s->comm, s->receive, s->receive, s->total, s->dtype, s->op, tsr_device_host(), NULL));
    return compare(s, "all_reduce in place");
}

static tsr_status check_dtype(stage *s)
{
    for (int p = 0; p < PARTS; p++) {
        set_parts(s, &all_parts[p]);
        TSR_TRY(check_all_gather(s));
        TSR_TRY(check_rooted(s));
        if (s->parts->equal)
            TSR_TRY(check_all_to_all_equal(s));
        TSR_TRY(check_all_to_all_uneven(s));
        for (s->op = TSR_SUM; s->op < TSR_REDUCE_OP_END; s->op++)
            if (tsr_dtype_get(s->dtype)->reduce_ops & 1u << s->op)
                TSR_TRY(check_reductions(s));
        s->op = TSR_SUM;
    }
    return TSR_OK;
}

static tsr_status check_all(tsr_comm *comm, void *arg)
{
    (void)arg;
    stage s;
    TSR_TRY(open_stage(&s, comm));
    tsr_status status = TSR_OK;
    /* thinned tests take every third dtype, other ones for each number of ranks */
    const int step = getenv("TSR_TEST_THIN") ? 3 : 1;
    for (tsr_dtype dtype = TSR_F64 + (tsr_dtype)(s.ranks % step); dtype < TSR_DTYPE_END && status == TSR_OK;
         dtype += step) {
        set_dtype(&s, dtype);
        status = check_dtype(&s);
    }
    close_stage(&s);
    return status;
}

static void collectives_are_those_of_one_thread(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, check_all, NULL);
}

/* Each rank sends each peer three messages, of 0, r + 1 and 9 bytes, and receives them in that
 * order, from peers in descending order. */
static tsr_status check_exchange(tsr_comm *comm, void *arg)
{
    suite_exchange *const *exchange = arg;
    const int rank = tsr_comm_rank(comm), ranks = tsr_comm_size(comm);
    unsigned char out[MOST_RANKS][3][16], in[MOST_RANKS][3][16];
    tsr_message sends[MOST_RANKS * 3], receives[MOST_RANKS * 3];
    size_t send_count = 0, receive_count = 0;
    memset(in, GUARD_BYTE, sizeof in);
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < ranks; r++) {
            memset(out[r][k], rank * 31 + r * 7 + k, 16);
            if (r != rank)
                sends[send_count++] = (tsr_message){r, out[r][k], k == 0 ? 0 : k == 1 ? (size_t)rank + 1 : 9};
        }
    for (int r = ranks - 1; r >= 0; r--)
        for (int k = 0; k < 3 && r != rank; k++)
            receives[receive_count++] = (tsr_message){r, in[r][k], k == 0 ? 0 : k == 1 ? (size_t)r + 1 : 9};
    TSR_TRY((*exchange)(comm, sends, send_count, receives, receive_count));
    for (size_t m = 0; m < receive_count; m++) {
        const int r = receives[m].peer, k = (int)(m % 3);
        for (size_t i = 0; i < 16; i++)
            CHECK(in[r][k][i] == (i < receives[m].bytes ? (unsigned char)(r * 31 + rank * 7 + k) : GUARD_BYTE));
    }
    return TSR_OK;
}

static void exchange_delivers_the_kth_send_to_the_kth_receive(void **state)
{
    (void)state;
    for (int way = 0; way < EXCHANGES; way++)
        for (int n = 1; n <= MOST_RANKS; n++)
            suite_run(n, check_exchange, (void *)&suite_exchanges[way]);
}

/* Rank r sends to rank r + 1 alone, the last rank to none. */
static tsr_status check_chain(tsr_comm *comm, void *arg)
{
    suite_exchange *const *exchange = arg;
    const int rank = tsr_comm_rank(comm), ranks = tsr_comm_size(comm);
    int out = rank * 5, in = -1;
    const tsr_message send = {rank + 1, &out, sizeof out}, receive = {rank - 1, &in, sizeof in};
    TSR_TRY((*exchange)(comm, &send, rank + 1 < ranks, &receive, rank > 0));
    CHECK(in == (rank > 0 ? (rank - 1) * 5 : -1));
    return (*exchange)(comm, NULL, 0, NULL, 0);
}

static void exchange_lets_ranks_have_no_messages(void **state)
{
    (void)state;
    for (int way = 0; way < EXCHANGES; way++)
        for (int n = 1; n <= 4; n++)
            suite_run(n, check_chain, (void *)&suite_exchanges[way]);
}

int suite_collectives(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_are_those_of_one_thread),
        cmocka_unit_test(exchange_delivers_the_kth_send_to_the_kth_receive),
        cmocka_unit_test(exchange_lets_ranks_have_no_messages),
    };
    return cmocka_run_group_tests_name("collectives", tests, NULL, NULL);
}
