/*
 * Rows in numbers that are new in each call: every rank gets what each peer has for it, in rank
 * order, and no more; and what becomes of a call when a rank has no room, or a fault.
 */
#include "comm_suite.h"

#include <stdio.h>

enum { MOST_RANKS = 6, COLUMNS = 3, MOST_ROWS = 64, STEPS = 12, GUARD = -77 };

/* A rank's memory. */
typedef struct stage {
    int rank, ranks;
    int32_t send[MOST_ROWS][COLUMNS], receive[MOST_ROWS][COLUMNS];
    int64_t send_counts[MOST_RANKS], receive_counts[MOST_RANKS];
    int64_t sent, received; /* rows */
} stage;

/* How many rows `from` has for `to` in a step: none in some, one or several in others. */
static int64_t rows_of(int step, int from, int to)
{
    const unsigned mixed = (unsigned)(step * 31 + from * 7 + to * 13 + 5) * 2654435761U >> 16;
    return step == 0 ? 0 : mixed % 3 == 0 ? 0 : mixed % 9;
}

static int32_t element(int step, int from, int to, int64_t row, int column)
{
    return (int32_t)((((step * 8 + from) * 8 + to) * 16 + row) * 4 + column);
}

static void set_stage(stage *s, tsr_comm *comm, int step)
{
    *s = (stage){.rank = tsr_comm_rank(comm), .ranks = tsr_comm_size(comm)};
    for (int to = 0; to < s->ranks; to++) {
        s->send_counts[to] = rows_of(step, s->rank, to);
        for (int64_t row = 0; row < s->send_counts[to]; row++, s->sent++)
            for (int column = 0; column < COLUMNS; column++)
                s->send[s->sent][column] = element(step, s->rank, to, row, column);
        s->received += rows_of(step, to, s->rank);
    }
    for (int64_t row = 0; row < MOST_ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            s->receive[row][column] = GUARD;
}

/* A tensor of `rows` rows. */
static tsr_tensor rows_at(int32_t (*memory)[COLUMNS], int64_t rows)
{
    const int64_t shape[] = {rows, COLUMNS};
    return tsr_tensor_contiguous(memory, TSR_I32, 2, shape);
}

static tsr_status exchange(tsr_comm *comm, stage *s, int64_t room)
{
    const tsr_tensor send = rows_at(s->send, s->sent), receive = rows_at(s->receive, room);
    return tsr_comm_exchange_rows(comm, &send, s->send_counts, &receive, s->receive_counts, NULL);
}

static tsr_status check_received(const stage *s, int step)
{
    int64_t at = 0;
    for (int from = 0; from < s->ranks; from++) {
        CHECK(s->receive_counts[from] == rows_of(step, from, s->rank));
        for (int64_t row = 0; row < s->receive_counts[from]; row++, at++)
            for (int column = 0; column < COLUMNS; column++)
                CHECK(s->receive[at][column] == element(step, from, s->rank, row, column));
    }
    CHECK(at == s->received);
    for (; at < MOST_ROWS; at++)
        for (int column = 0; column < COLUMNS; column++)
            CHECK(s->receive[at][column] == GUARD);
    return TSR_OK;
}

static tsr_status step_after_step(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (int step = 0; step < STEPS; step++) {
        stage s;
        set_stage(&s, comm, step);
        TSR_TRY(exchange(comm, &s, step % 2 ? MOST_ROWS : s.received));
        TSR_TRY(check_received(&s, step));
    }
    return TSR_OK;
}

static void rows_arrive_in_the_order_of_their_senders(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        suite_run(ranks, step_after_step, NULL);
}

/* The last rank has room for one row too few, and learns how many come; with that room all call
 * again. */
static tsr_status too_little_room(tsr_comm *comm, void *arg)
{
    stage s;
    char words[128];
    (void)arg;
    set_stage(&s, comm, 4);
    const int last = s.ranks - 1;
    if (s.rank == last) {
        CHECK(s.received > 0);
        snprintf(words, sizeof words, "%lld rows come to rank %d, but receive has room for %lld", (long long)s.received,
                 last, (long long)s.received - 1);
        CHECK_ERROR(exchange(comm, &s, s.received - 1), TSR_ERROR_MEMORY, words);
        for (int from = 0; from < s.ranks; from++)
            CHECK(s.receive_counts[from] == rows_of(4, from, last));
    } else {
        snprintf(words, sizeof words, "rank %d failed: tsr_comm_exchange_rows", last);
        CHECK_ERROR(exchange(comm, &s, MOST_ROWS), TSR_ERROR_PEER, words);
    }
    set_stage(&s, comm, 4);
    TSR_TRY(exchange(comm, &s, s.received));
    TSR_TRY(check_received(&s, 4));
    return suite_check_usable(comm);
}

static void a_rank_without_room_says_how_much_it_needs(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++)
        suite_run(ranks, too_little_room, NULL);
}

/* What rank 0 does wrong. */
typedef struct mistake {
    void (*make)(stage *s, tsr_tensor *send, tsr_tensor *receive);
    const char *words;
} mistake;

static void negative(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)send;
    (void)receive;
    s->send_counts[0] = -1;
}

static void too_many(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)receive;
    s->send_counts[0] = send->shape[0] + 1;
}

static void other_rows(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)s;
    (void)send;
    receive->shape[1] = 2;
    receive->strides[0] = 2;
}

static void gaps(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)s;
    (void)send;
    receive->shape[0] = 2;
    receive->strides[0] = COLUMNS + 1;
}

static void one_memory(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)s;
    receive->data = send->data;
}

static void scalar(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)s;
    (void)receive;
    send->ndim = 0;
}

static void no_data(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)s;
    (void)send;
    receive->data = NULL;
}

static void no_dtype(stage *s, tsr_tensor *send, tsr_tensor *receive)
{
    (void)s;
    (void)receive;
    send->dtype = TSR_DTYPE_NONE;
}

static const mistake mistakes[] = {
    {negative, "send_counts[0] is -1"},
    {too_many, "send_counts sum up to more than the"},
    {other_rows, "send and receive have rows of another dtype or shape"},
    {gaps, "receive has gaps"},
    {one_memory, "send and receive overlap"},
    {scalar, "send is a scalar"},
    {no_data, "receive has no data"},
    {no_dtype, "tsr_comm_exchange_rows: send: "},
};

static tsr_status make_mistake(tsr_comm *comm, void *arg)
{
    const mistake *m = arg;
    stage s;
    set_stage(&s, comm, 1);
    s.sent = 8 > s.sent ? 8 : s.sent;
    tsr_tensor send = rows_at(s.send, s.sent), receive = rows_at(s.receive, MOST_ROWS);
    if (s.rank == 0)
        m->make(&s, &send, &receive);
    CHECK_ERROR(tsr_comm_exchange_rows(comm, &send, s.send_counts, &receive, s.receive_counts, NULL),
                s.rank == 0 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, m->words);
    return suite_check_usable(comm);
}

static tsr_status leave_out(tsr_comm *comm, void *arg)
{
    static const char *const names[] = {"send is NULL", "send_counts is NULL", "receive is NULL",
                                        "receive_counts is NULL"};
    stage s;
    (void)arg;
    for (int which = 0; which < 4; which++) {
        set_stage(&s, comm, 1);
        const bool faulty = s.rank == 0;
        const tsr_tensor send = rows_at(s.send, s.sent), receive = rows_at(s.receive, MOST_ROWS);
        CHECK_ERROR(tsr_comm_exchange_rows(
                        comm, faulty && which == 0 ? NULL : &send, faulty && which == 1 ? NULL : s.send_counts,
                        faulty && which == 2 ? NULL : &receive, faulty && which == 3 ? NULL : s.receive_counts, NULL),
                    faulty ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, names[which]);
    }
    const tsr_tensor send = rows_at(s.send, s.sent), receive = rows_at(s.receive, MOST_ROWS);
    CHECK_ERROR(tsr_comm_exchange_rows(NULL, &send, s.send_counts, &receive, s.receive_counts, NULL),
                TSR_ERROR_ARGUMENT, "comm is NULL");
    CHECK_ERROR(tsr_comm_exchange_rows(comm, &send, s.send_counts, &receive, s.send_counts, NULL), TSR_ERROR_ARGUMENT,
                "send_counts and receive_counts overlap");
    return suite_check_usable(comm);
}

static void a_mistake_of_one_rank_is_told_to_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        suite_run(3, make_mistake, (void *)&mistakes[i]);
    suite_run(3, leave_out, NULL);
}

/* The last rank brings rows of another dtype. */
static tsr_status differ(tsr_comm *comm, void *arg)
{
    stage s;
    (void)arg;
    set_stage(&s, comm, 1);
    tsr_tensor send = rows_at(s.send, s.sent), receive = rows_at(s.receive, MOST_ROWS);
    if (s.rank == s.ranks - 1)
        send.dtype = receive.dtype = TSR_F32;
    CHECK_ERROR(tsr_comm_exchange_rows(comm, &send, s.send_counts, &receive, s.receive_counts, NULL),
                TSR_ERROR_ARGUMENT, "exchange_rows of 12-byte rows of f32");
    return suite_check_usable(comm);
}

static void ranks_whose_rows_differ_are_named(void **state)
{
    (void)state;
    suite_run(3, differ, NULL);
}

int suite_rows(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_arrive_in_the_order_of_their_senders),
        cmocka_unit_test(a_rank_without_room_says_how_much_it_needs),
        cmocka_unit_test(a_mistake_of_one_rank_is_told_to_all),
        cmocka_unit_test(ranks_whose_rows_differ_are_named),
    };
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
