/*
 * Ranks of two nodes of unequal size: 7 and 8, or what there is. Inside a node nothing is sent by
 * MPI that lies in memory which ranks of the node share.
 */
#include "comm_suite.h"
#include "launched.h"
#include "nodes.h"

#include <tessera/dtensor.h>

#include <stdlib.h>

enum { MOST_RANKS = 16, SHORT = 100, LONG = 100003, PIECE = 4096, LETTER_HEAD = 16, TOKEN = 24 };

static int count_first(int ranks)
{
    return ranks / 2;
}

static bool are_mates(int a, int b, int ranks)
{
    return (a >= count_first(ranks)) == (b >= count_first(ranks));
}

typedef struct traffic {
    bool shared; /* the memory that is sent from */
    size_t bytes;
    int rounds;
} traffic;

static unsigned char byte_of(int from, int to, int round, size_t index)
{
    return (unsigned char)(index * 7 + index / 251 + (size_t)from * 31 + (size_t)to * 17 + (size_t)round * 3);
}

/* Every two ranks exchange. The received bytes are compared, and the bytes that went through MPI
 * are counted. */
static tsr_status send_round(tsr_comm *comm, const traffic *t, unsigned char *out, unsigned char *in, int round)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    tsr_message sends[MOST_RANKS], receives[MOST_RANKS];
    size_t count = 0;
    for (int peer = 0; peer < size; peer++) {
        const size_t at = (size_t)peer * t->bytes;
        if (peer == rank)
            continue;
        for (size_t i = 0; i < t->bytes; i++)
            out[at + i] = byte_of(rank, peer, round, i);
        sends[count] = (tsr_message){peer, out + at, t->bytes};
        receives[count++] = (tsr_message){peer, in + at, t->bytes};
    }
    TSR_TRY(tsr_comm_exchange(comm, sends, count, receives, count, tsr_device_host(), NULL));
    /* The senders' memory is theirs again. */
    memset(out, 0xee, (size_t)size * t->bytes);
    for (int peer = 0; peer < size; peer++)
        for (size_t i = 0; i < t->bytes && peer != rank; i++)
            if (in[(size_t)peer * t->bytes + i] != byte_of(peer, rank, round, i))
                return tsr_status_set(TSR_ERROR_INTERNAL,
                                      "round %d: byte %zu of %zu from rank %d to rank %d came wrong", round, i,
                                      t->bytes, peer, rank);
    return TSR_OK;
}

static tsr_status check_counts(const tsr_comm *comm, const traffic *t)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    size_t inside, between, mates = 0;
    nodes_count(&inside, &between);
    for (int peer = 0; peer < size; peer++)
        mates += peer != rank && are_mates(rank, peer, size);
    /* By MPI a message has a letter, and a long one a token, which its receiver sends. */
    const size_t about = LETTER_HEAD + (t->bytes == SHORT ? 0 : TOKEN), each = (size_t)t->rounds * (t->bytes + about);
    const size_t wanted = t->shared || t->bytes == SHORT ? 0 : mates * each;
    if (inside != wanted || between != ((size_t)size - 1 - mates) * each)
        return tsr_status_set(TSR_ERROR_INTERNAL, "%zu bytes were sent inside the node, not %zu, and %zu to others",
                              inside, wanted, between);
    return TSR_OK;
}

static tsr_status send_all(tsr_comm *comm, void *arg)
{
    const traffic *t = arg;
    const size_t bytes = (size_t)tsr_comm_size(comm) * t->bytes;
    void *shared;
    size_t inside, between;
    TSR_TRY(tsr_comm_alloc(comm, bytes, &shared));
    unsigned char *const own = malloc(bytes), *const in = malloc(bytes);
    tsr_status status = own && in ? TSR_OK : TSR_ERROR_MEMORY;
    nodes_count(&inside, &between);
    for (int round = 0; round < t->rounds && status == TSR_OK; round++)
        status = send_round(comm, t, t->shared ? shared : own, in, round);
    if (status == TSR_OK)
        status = check_counts(comm, t);
    if (status == TSR_OK)
        status = tsr_comm_barrier(comm);
    free(own);
    free(in);
    tsr_comm_free(comm, shared, bytes);
    return status;
}

static void run_nodes(tsr_rank_main *body, void *arg, int64_t timeout_ms)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.chunk_bytes = PIECE;
    if (timeout_ms)
        options.timeout_ms = timeout_ms;
    nodes_pretend(count_first(launched_ranks()));
    const tsr_status status = launched_run_with(launched_ranks(), body, arg, &options);
    nodes_pretend(0);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
}

static void shared_memory_is_not_sent_inside_a_node(void **state)
{
    (void)state;
    run_nodes(send_all, &(traffic){.shared = true, .bytes = LONG, .rounds = 4}, 0);
}

static void short_messages_are_not_sent_inside_a_node(void **state)
{
    (void)state;
    run_nodes(send_all, &(traffic){.shared = false, .bytes = SHORT, .rounds = 50}, 0);
    run_nodes(send_all, &(traffic){.shared = true, .bytes = SHORT, .rounds = 50}, 0);
}

static void other_memory_is_sent(void **state)
{
    (void)state;
    run_nodes(send_all, &(traffic){.shared = false, .bytes = LONG, .rounds = 4}, 0);
}

/* Several to one peer at once: short, in place and by MPI, in an order the receiver sees too. */
static tsr_status mix(tsr_comm *comm, void *arg)
{
    enum { KINDS = 3, MESSAGES = 12 };
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm), next = (rank + 1) % size,
              previous = (rank + size - 1) % size;
    unsigned char *shared;
    TSR_TRY(tsr_comm_alloc(comm, MESSAGES * LONG, (void **)&shared));
    unsigned char *const own = calloc(MESSAGES, LONG), *const in = calloc(MESSAGES, LONG);
    CHECK(own && in);
    tsr_message sends[MESSAGES], receives[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        const size_t bytes = i % KINDS == 0 ? SHORT : LONG - (size_t)i;
        unsigned char *const from = (i % KINDS == 1 ? shared : own) + (size_t)i * LONG;
        memset(from, i + 20 * rank, bytes);
        sends[i] = (tsr_message){next, from, bytes};
        receives[i] = (tsr_message){previous, in + (size_t)i * LONG, bytes};
    }
    tsr_status status = tsr_comm_exchange(comm, sends, MESSAGES, receives, MESSAGES, tsr_device_host(), NULL);
    for (int i = 0; i < MESSAGES && status == TSR_OK; i++)
        for (size_t b = 0; b < receives[i].bytes; b++)
            if (in[(size_t)i * LONG + b] != (unsigned char)(i + 20 * previous))
                status = tsr_status_set(TSR_ERROR_INTERNAL, "message %d came wrong", i);
    free(own);
    free(in);
    tsr_comm_free(comm, shared, MESSAGES * LONG);
    return status;
}

static void messages_of_all_kinds_keep_their_order(void **state)
{
    (void)state;
    run_nodes(mix, NULL, 0);
}

/* Element i is i, before and after; mates reach dtensors and the cache's workspace. */
static tsr_status move_columns(tsr_comm *comm, void *arg)
{
    enum { EDGE = 1200 };
    (void)arg;
    const int64_t mesh_shape[] = {tsr_comm_size(comm)}, shape[] = {EDGE, EDGE};
    const tsr_placement rows[] = {tsr_shard(0)}, columns[] = {tsr_shard(1)};
    tsr_mesh *mesh;
    tsr_layout *from, *to;
    tsr_dtensor *x, *y;
    size_t inside, between;
    TSR_TRY(tsr_mesh_create(comm, 1, mesh_shape, NULL, NULL, &mesh));
    TSR_TRY(tsr_layout_create(mesh, rows, 2, shape, TSR_I32, &from));
    TSR_TRY(tsr_layout_create(mesh, columns, 2, shape, TSR_I32, &to));
    TSR_TRY(tsr_dtensor_create(from, tsr_device_host(), &x));
    const tsr_tensor mine = tsr_dtensor_to_local(x);
    const int64_t share = (EDGE + mesh_shape[0] - 1) / mesh_shape[0], first = tsr_comm_rank(comm) * share;
    for (int64_t i = 0; i < mine.shape[0]; i++)
        for (int64_t j = 0; j < EDGE; j++)
            ((int32_t *)mine.data)[i * mine.strides[0] + j] = (int32_t)((first + i) * EDGE + j);
    TSR_TRY(tsr_comm_barrier(comm));
    nodes_count(&inside, &between);
    TSR_TRY(tsr_redistribute(x, columns, &y));
    nodes_count(&inside, &between);
    const tsr_tensor got = tsr_dtensor_to_local(y);
    for (int64_t i = 0; i < EDGE; i++)
        for (int64_t j = 0; j < got.shape[1]; j++)
            CHECK(((const int32_t *)got.data)[i * got.strides[0] + j * got.strides[1]] ==
                  (int32_t)(i * EDGE + first + j));
    if (inside != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "%zu bytes were sent inside the node", inside);
    CHECK(between > 0);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void moves_send_nothing_inside_a_node(void **state)
{
    (void)state;
    run_nodes(move_columns, NULL, 0);
}

static tsr_status send_in_vain(tsr_comm *comm, unsigned char *memory)
{
    const tsr_message send = {tsr_comm_size(comm) - 1, memory, LONG};
    memset(memory, 1, LONG);
    CHECK_ERROR(tsr_comm_exchange(comm, &send, 1, NULL, 0, tsr_device_host(), NULL), TSR_ERROR_PEER,
                "did not come within 1500 ms");
    memset(memory, 3, LONG);
    return TSR_OK;
}

static tsr_status receive_nothing(tsr_comm *comm)
{
    unsigned char in[LONG];
    const tsr_message receive = {tsr_comm_size(comm) - 2, in, LONG};
    memset(in, 2, LONG);
    CHECK_ERROR(tsr_comm_exchange(comm, NULL, 0, &receive, 1, tsr_device_host(), NULL), TSR_ERROR_PEER,
                "has given up what it sends");
    CHECK(in[0] == 2 && in[LONG - 1] == 2);
    return TSR_OK;
}

/* The last rank comes when its mate has given up, whose memory is another's by then: it is told so,
 * and gets nothing of it. The others leave after that, for who waits hears of those who leave. */
static tsr_status come_late(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    unsigned char *memory = NULL;
    tsr_status status = tsr_comm_alloc(comm, LONG, (void **)&memory);
    if (status == TSR_OK && rank == last - 1)
        status = send_in_vain(comm, memory);
    if (rank == last - 1)
        launched_wake(last);
    else
        launched_await(rank == last ? last - 1 : last);
    if (status == TSR_OK && rank == last)
        status = receive_nothing(comm);
    for (int r = 0; r < last - 1 && rank == last; r++)
        launched_wake(r);
    tsr_comm_free(comm, memory, LONG);
    return status;
}

static void who_comes_late_is_told_that_its_mate_has_given_up(void **state)
{
    (void)state;
    run_nodes(come_late, NULL, 1500);
}

/* All leave at the same time, but the first is held up on its way out. Who frees MPI's communicator
 * takes no message of it any more, so that there is none: that holds however late anybody is. */
static void leave_together(bool begun)
{
    enum { BARRIERS = 2, LATE_MS = 300 };
    tsr_comm *comm;
    size_t inside, between;
    const int ranks = launched_ranks();
    nodes_pretend(count_first(ranks));
    assert_int_equal(tsr_comm_from_mpi(MPI_COMM_WORLD, NULL, &comm), TSR_OK);
    assert_int_equal(tsr_comm_barrier(comm), TSR_OK);
    nodes_count(&inside, &between);
    nodes_count_freed();
    nodes_delay_barrier(launched_rank() == 0 ? BARRIERS : 0, begun, LATE_MS);
    tsr_comm_destroy(comm);
    nodes_delay_barrier(0, false, 0);
    nodes_count(&inside, &between);
    nodes_pretend(0);
    int mine[] = {nodes_count_freed(), (int)(inside + between)}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all[0] > 0 && all[1] > 0)
        fail_msg("%d ranks freed what %d notices were sent by", all[0], all[1]);
}

static void who_leaves_tells_nobody_who_is_gone(void **state)
{
    (void)state;
    leave_together(false);
    leave_together(true);
}

static tsr_status split_and_send(tsr_comm *comm, void *arg)
{
    for (int round = 0; round < 8; round++) {
        tsr_comm *group;
        TSR_TRY(tsr_comm_split(comm, 0, round % 2 ? -tsr_comm_rank(comm) : 0, &group));
        const tsr_status status = mix(group, arg);
        tsr_comm_destroy(group);
        TSR_TRY(status);
    }
    return TSR_OK;
}

static void groups_send_as_their_world_does(void **state)
{
    (void)state;
    run_nodes(split_and_send, NULL, 0);
}

/* The list of rank 1 goes down, up, and down again. It begins with who is above, and what comes
 * last is not to come before what comes first. */
static tsr_status send_in_a_mixed_order(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    char first = 'a', second = 'b', third = 'c', in[2] = {0};
    tsr_message sends[] = {{last - 2, &first, 1}, {last, &second, 1}, {last - 2, &third, 1}};
    tsr_message receives[] = {{last - 1, &in[0], 1}, {last - 1, &in[1], 1}};
    const size_t sent = rank == last - 1 ? 3 : 0, received = rank == last ? 1 : rank == last - 2 ? 2 : 0;
    TSR_TRY(tsr_comm_exchange(comm, sends, sent, receives, received, tsr_device_host(), NULL));
    CHECK(rank != last || in[0] == 'b');
    CHECK(rank != last - 2 || (in[0] == 'a' && in[1] == 'c'));
    return TSR_OK;
}

static void messages_keep_their_order_wherever_a_list_begins(void **state)
{
    (void)state;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = 5000;
    for (int sharing = 0; sharing < 2; sharing++) {
        options.no_sharing = !sharing;
        const tsr_status status = launched_run_with(3, send_in_a_mixed_order, NULL, &options);
        if (status != TSR_OK)
            fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    }
}

/* The last rank's part of a split fails at one receive or the other, after it had shown what it
 * made to its mate. That memory is another's then, unless it is kept for the mate to look at. */
static tsr_status split_without_the_last(tsr_comm *comm, void *arg)
{
    enum { BLOCKS = 16, BYTES = 1 << 13 }; /* less than a desk */
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    tsr_comm *group = NULL, *alone;
    unsigned char *blocks[BLOCKS];
    TSR_TRY(tsr_comm_split(comm, rank, 0, &alone));
    nodes_fail_receive(rank == last ? *(const int *)arg : 0);
    const tsr_status made = tsr_comm_split(comm, 0, 0, &group);
    nodes_fail_receive(0);
    if (rank == last - 1)
        launched_wake(last);
    CHECK(made == TSR_ERROR_PEER);
    for (int i = 0; i < BLOCKS; i++) {
        TSR_TRY(tsr_comm_alloc(alone, BYTES, (void **)&blocks[i]));
        memset(blocks[i], 0x55, BYTES);
    }
    if (rank == last)
        launched_await(last - 1);
    for (int i = 0; i < BLOCKS; i++) {
        for (int b = 0; b < BYTES; b++)
            CHECK(blocks[i][b] == 0x55);
        tsr_comm_free(alone, blocks[i], BYTES);
    }
    tsr_comm_destroy(alone);
    return TSR_OK;
}

static void who_fails_in_a_split_leaves_what_its_mates_look_at(void **state)
{
    (void)state;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = 1000;
    launched_ranks();
    for (int receive = 1; receive <= 2; receive++) {
        nodes_pretend(1);
        const tsr_status status = launched_run_with(3, split_without_the_last, &receive, &options);
        nodes_pretend(0);
        if (status != TSR_OK)
            fail_msg("receive %d: %s: %s", receive, tsr_status_name(status), tsr_status_message());
    }
}

/* Messages of two groups between the same ranks cross. */
static tsr_status cross(tsr_comm *a, tsr_comm *b, int round)
{
    const int rank = tsr_comm_rank(a), size = tsr_comm_size(a), next = (rank + 1) % size,
              previous = (rank + size - 1) % size;
    int out[2] = {2 * round, 2 * round + 1}, in[2] = {-1, -1};
    const tsr_message sends[] = {{next, &out[0], sizeof(int)}, {next, &out[1], sizeof(int)}};
    const tsr_message receives[] = {{previous, &in[0], sizeof(int)}, {previous, &in[1], sizeof(int)}};
    TSR_TRY(tsr_comm_exchange_start(a, &sends[0], 1, &receives[0], 1, tsr_device_host(), NULL));
    const tsr_status status = tsr_comm_exchange(b, &sends[1], 1, &receives[1], 1, tsr_device_host(), NULL);
    TSR_TRY(tsr_comm_exchange_finish(a));
    TSR_TRY(status);
    CHECK(in[0] == 2 * round && in[1] == 2 * round + 1);
    return TSR_OK;
}

/* Four groups of tags: the world's, one that stays, one that comes and goes, and one more. */
static tsr_status use_up_tags(tsr_comm *comm, void *arg)
{
    tsr_comm *stays, *comes = NULL, *more = NULL, *over = NULL;
    (void)arg;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &stays));
    for (int round = 0; round < 11; round++) {
        TSR_TRY(tsr_comm_split(comm, 0, round % 3, &comes));
        TSR_TRY(cross(stays, comes, round));
        tsr_comm_destroy(comes);
    }
    TSR_TRY(tsr_comm_split(comm, 0, 0, &comes));
    TSR_TRY(tsr_comm_split(comm, 0, 0, &more));
    CHECK_ERROR(tsr_comm_split(comm, 0, 0, &over), TSR_ERROR_UNSUPPORTED,
                "all 4 groups of tags that MPI has room for are in use");
    tsr_comm_destroy(comes);
    TSR_TRY(tsr_comm_split(comm, 0, 0, &comes));
    TSR_TRY(cross(stays, comes, 20));
    TSR_TRY(cross(comes, more, 21));
    tsr_comm_destroy(more);
    tsr_comm_destroy(comes);
    tsr_comm_destroy(stays);
    return suite_check_usable(comm);
}

static void living_groups_have_tags_of_their_own(void **state)
{
    (void)state;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    const int ranks = launched_ranks() < 4 ? launched_ranks() : 4;
    options.no_sharing = 1;
    options.timeout_ms = 10000;
    nodes_bound_tags(17);
    const tsr_status status = launched_run_with(ranks, use_up_tags, NULL, &options);
    nodes_bound_tags(0);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_memory_is_not_sent_inside_a_node),
        cmocka_unit_test(short_messages_are_not_sent_inside_a_node),
        cmocka_unit_test(other_memory_is_sent),
        cmocka_unit_test(messages_of_all_kinds_keep_their_order),
        cmocka_unit_test(moves_send_nothing_inside_a_node),
        cmocka_unit_test(who_comes_late_is_told_that_its_mate_has_given_up),
        cmocka_unit_test(who_leaves_tells_nobody_who_is_gone),
        cmocka_unit_test(groups_send_as_their_world_does),
        cmocka_unit_test(messages_keep_their_order_wherever_a_list_begins),
        cmocka_unit_test(who_fails_in_a_split_leaves_what_its_mates_look_at),
        cmocka_unit_test(living_groups_have_tags_of_their_own),
    };
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
