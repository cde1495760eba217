/* Tests of the NCCL engine alone: staged and stream-ordered memory, the order of kernels,
 * reductions, and ownership. */
#include "comm/engines/nccl/engine.h"
#include "comm/engines/nccl/staging.h"
#include "comm/engines/nccl/types.h"
#include "comm_suite.h"
#include "standin.h"
#include "standin_ranks.h"

#include <tessera/sys/device.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MOST_RANKS = 4 };

/* The byte at `index` of a message. */
static unsigned char byte_of(int from, int to, size_t index)
{
    return (unsigned char)(index * 31 + index / 251 + (size_t)(from * 7 + to));
}

/* Message lengths below, at and above the size of a part, the bytes staged at once for a peer. */
static size_t length_of(int ranks, int from, int to)
{
    const size_t part = tsr_nccl_part_bytes(ranks), lengths[] = {1, part, 3 * part + 5, 0, part + 1};
    return lengths[(from * 3 + to) % 5];
}

static unsigned char *make_message(int ranks, int from, int to)
{
    const size_t bytes = length_of(ranks, from, to);
    unsigned char *data = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(from, to, i);
    return data;
}

static tsr_status swap_long(tsr_comm *comm, void *arg)
{
    suite_exchange *const *exchange = arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    tsr_message sends[MOST_RANKS], receives[MOST_RANKS];
    size_t count = 0;
    for (int r = 0; r < size; r++)
        if (r != rank) {
            sends[count] = (tsr_message){r, make_message(size, rank, r), length_of(size, rank, r)};
            receives[count++] = (tsr_message){r, calloc(1, length_of(size, r, rank) + 1), length_of(size, r, rank)};
        }
    tsr_status status = (*exchange)(comm, sends, count, receives, count);
    for (size_t m = 0; m < count; m++) {
        for (size_t i = 0; i < receives[m].bytes && status == TSR_OK; i++)
            if (((unsigned char *)receives[m].data)[i] != byte_of(receives[m].peer, rank, i))
                status = tsr_status_set(TSR_ERROR_INTERNAL, "byte %zu from rank %d is wrong", i, receives[m].peer);
        free(sends[m].data);
        free(receives[m].data);
    }
    return status;
}

static void host_messages_go_in_as_many_parts_as_they_take(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_RANKS; n++)
        for (int way = 0; way < EXCHANGES; way++)
            suite_run(n, swap_long, (void *)&suite_exchanges[way]);
}

/* More than a part of each block. */
enum { LONG = 1000003 };

static int32_t value_of(int rank, int64_t index)
{
    return (int32_t)(index * 5 + rank * 1000003);
}

static tsr_status gather_long(tsr_comm *comm, int32_t *out)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    for (int64_t i = 0; i < LONG; i++)
        out[(int64_t)rank * LONG + i] = value_of(rank, i);
    TSR_TRY(tsr_comm_all_gather(comm, out + (int64_t)rank * LONG, out, LONG, NULL, TSR_I32, tsr_device_host(), NULL));
    for (int r = 0; r < size; r++)
        for (int64_t i = 0; i < LONG; i++)
            CHECK(out[(int64_t)r * LONG + i] == value_of(r, i));
    return tsr_comm_broadcast(comm, out, LONG, TSR_I32, size - 1, tsr_device_host(), NULL);
}

/* `all` holds everybody's values; each sum is over the ranks' values at its own place. */
static tsr_status sum_long(tsr_comm *comm, int32_t *all, int32_t *out)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    for (int64_t i = 0; i < (int64_t)size * LONG; i++)
        all[i] = value_of(rank, i);
    TSR_TRY(tsr_comm_reduce_scatter(comm, all, out, LONG, NULL, TSR_I32, TSR_SUM, tsr_device_host(), NULL));
    for (int64_t i = 0; i < LONG; i++) {
        int32_t sum = 0;
        for (int r = 0; r < size; r++)
            sum = (int32_t)((uint32_t)sum + (uint32_t)value_of(r, (int64_t)rank * LONG + i));
        CHECK(out[i] == sum);
    }
    TSR_TRY(tsr_comm_all_reduce(comm, all, all, LONG, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
    for (int64_t i = 0; i < LONG; i++)
        CHECK(all[i] == value_of(size - 1, i));
    return TSR_OK;
}

static tsr_status collect_long(tsr_comm *comm, void *arg)
{
    (void)arg;
    int32_t *all = malloc((size_t)tsr_comm_size(comm) * LONG * sizeof *all), *out = malloc(LONG * sizeof *out);
    tsr_status status = gather_long(comm, all);
    if (status == TSR_OK)
        status = sum_long(comm, all, out);
    free(all);
    free(out);
    return status;
}

static void host_collectives_go_in_as_many_calls_as_they_take(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, collect_long, NULL);
}

/* A rank's GPU, a stream and memory on it. */
typedef struct gpu {
    tsr_device device;
    const tsr_device_table *table;
    tsr_stream stream;
    int32_t *data; /* WORDS words for each rank */
} gpu;

enum { WORDS = 16, GPU_BYTES = MOST_RANKS * WORDS * (int)sizeof(int32_t) };

static tsr_status gpu_open(gpu *g)
{
    g->device = standin_ranks_device();
    g->table = tsr_device_driver_table(g->device.driver, NULL);
    TSR_TRY(g->table->stream_create(NULL, g->device.index, &g->stream));
    return g->table->alloc(NULL, g->device.index, GPU_BYTES, g->stream, (void **)&g->data);
}

static void gpu_close(gpu *g)
{
    g->table->stream_synchronize(NULL, g->device.index, g->stream);
    g->table->free(NULL, g->device.index, g->data, GPU_BYTES, NULL);
    g->table->stream_destroy(NULL, g->device.index, g->stream);
}

/* Fills the GPU's memory with a value, in stream order. */
static tsr_status gpu_fill(const gpu *g, int32_t value)
{
    tsr_box_fill fill = {.dst = g->data, .element_bytes = 4, .ndim = 1, .shape = {GPU_BYTES / 4}, .dst_strides = {1}};
    memcpy(fill.value, &value, sizeof value);
    return g->table->fill(NULL, g->device.index, &fill, g->stream);
}

/* Each to the next, in stream order: the fill comes before it is sent, and the next fill after what
 * was received is copied. */
static tsr_status pass_round(tsr_comm *comm, const gpu *g, int32_t *out)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    const tsr_message send = {(rank + 1) % size, g->data, WORDS * sizeof(int32_t)};
    const tsr_message receive = {(rank + size - 1) % size, g->data + WORDS, WORDS * sizeof(int32_t)};
    for (int round = 0; round < 4; round++) {
        TSR_TRY(gpu_fill(g, 100 * round + rank));
        TSR_TRY(tsr_comm_exchange(comm, &send, 1, &receive, 1, g->device, g->stream));
        TSR_TRY(g->table->copy(NULL, g->device.index, out + round * WORDS, receive.data, receive.bytes,
                               TSR_COPY_TO_HOST, g->stream));
    }
    return TSR_OK;
}

static tsr_status use_stream(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    int32_t out[4 * WORDS];
    gpu g;
    memset(out, 0xff, sizeof out);
    TSR_TRY(gpu_open(&g));
    TSR_TRY(pass_round(comm, &g, out));
    TSR_TRY(tsr_comm_wait(comm, g.stream, 0));
    for (int i = 0; i < 4 * WORDS; i++)
        CHECK(out[i] == 100 * (i / WORDS) + (rank + size - 1) % size);
    gpu_close(&g);
    return TSR_OK;
}

static void device_memory_goes_in_stream_order(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_RANKS; n++)
        suite_run(n, use_stream, NULL);
}

/* Waits for the other ranks, by no means of theirs. */
static void gather_ranks(atomic_int *came, int wanted)
{
    atomic_fetch_add(came, 1);
    while (atomic_load(came) < wanted)
        suite_sleep(1);
}

/* Nobody waits for a device before all have looked, so nothing has happened on any. */
static tsr_status only_enqueue(tsr_comm *comm, void *arg)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    int32_t out[4 * WORDS];
    gpu g;
    memset(out, 0xff, sizeof out);
    TSR_TRY(gpu_open(&g));
    gather_ranks(arg, size);
    const int kernels = standin_kernels();
    TSR_TRY(pass_round(comm, &g, out));
    gather_ranks(arg, 2 * size);
    const bool untouched = standin_kernels() == kernels && out[0] == -1;
    gather_ranks(arg, 3 * size);
    gpu_close(&g);
    CHECK(untouched);
    CHECK(out[0] == (rank + size - 1) % size && standin_kernels() == kernels + 4 * size);
    return TSR_OK;
}

static void exchanges_of_device_memory_wait_for_no_device(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_RANKS; n++) {
        atomic_int came = 0;
        suite_run(n, only_enqueue, &came);
    }
}

static tsr_status collect_on_device(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    int32_t out[MOST_RANKS * WORDS];
    gpu g;
    TSR_TRY(gpu_open(&g));
    TSR_TRY(gpu_fill(&g, rank + 1));
    TSR_TRY(tsr_comm_all_reduce(comm, g.data, g.data, WORDS, TSR_I32, TSR_SUM, g.device, g.stream));
    TSR_TRY(tsr_comm_all_gather(comm, g.data + (size_t)rank * WORDS, g.data, WORDS, NULL, TSR_I32, g.device, g.stream));
    TSR_TRY(g.table->copy(NULL, g.device.index, out, g.data, sizeof out, TSR_COPY_TO_HOST, g.stream));
    TSR_TRY(tsr_comm_wait(comm, g.stream, 0));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < WORDS; i++)
            CHECK(out[r * WORDS + i] == (r == 0 ? size * (size + 1) / 2 : r + 1));
    gpu_close(&g);
    return TSR_OK;
}

static void collectives_of_device_memory_are_nccls(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_RANKS; n++)
        suite_run(n, collect_on_device, NULL);
}

/* The whole communicator on one stream, a part of it on another, agreements on a third. */
static tsr_status use_two_streams(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *part;
    int32_t out[4 * WORDS];
    gpu first, second;
    TSR_TRY(tsr_comm_split(comm, 0, -tsr_comm_rank(comm), &part));
    TSR_TRY(gpu_open(&first));
    TSR_TRY(gpu_open(&second));
    for (int i = 0; i < 5; i++) {
        TSR_TRY(pass_round(comm, &first, out));
        TSR_TRY(pass_round(part, &second, out));
        if (i % 2)
            TSR_TRY(suite_check_usable(i == 1 ? part : comm));
        TSR_TRY(pass_round(part, &first, out));
    }
    gpu_close(&first);
    gpu_close(&second);
    tsr_comm_destroy(part);
    return TSR_OK;
}

static void kernels_follow_one_another_whatever_their_streams(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_RANKS; n++)
        for (int i = 0; i < 3; i++)
            suite_run(n, use_two_streams, NULL);
}

/* The whole communicator and a part of it in turn, each on a stream that goes before its end. */
static tsr_status use_streams_that_go(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    tsr_comm *part;
    gpu g;
    TSR_TRY(tsr_comm_split(comm, 0, rank, &part));
    TSR_TRY(gpu_open(&g));
    const tsr_message send = {(rank + 1) % size, g.data, WORDS * sizeof(int32_t)};
    const tsr_message receive = {(rank + size - 1) % size, g.data + WORDS, WORDS * sizeof(int32_t)};
    for (int i = 0; i < 8; i++) {
        TSR_TRY(tsr_comm_exchange(i % 2 ? part : comm, &send, 1, &receive, 1, g.device, g.stream));
        if (i < 7) {
            g.table->stream_destroy(NULL, g.device.index, g.stream);
            TSR_TRY(g.table->stream_create(NULL, g.device.index, &g.stream));
        }
    }
    TSR_TRY(tsr_comm_wait(part, g.stream, 0));
    gpu_close(&g);
    tsr_comm_destroy(part);
    return TSR_OK;
}

static void kernels_follow_one_another_though_a_stream_has_the_handle_of_one_that_is_gone(void **state)
{
    (void)state;
    for (int n = 2; n <= MOST_RANKS; n++)
        for (int i = 0; i < 3; i++)
            suite_run(n, use_streams_that_go, NULL);
}

static tsr_status use_wrong_memory(tsr_comm *comm, void *arg)
{
    (void)arg;
    const tsr_device mine = standin_ranks_device(), other = {mine.driver, mine.index + 1};
    char byte = 0;
    const tsr_message message = {1 - tsr_comm_rank(comm), &byte, 1};
    CHECK_ERROR(tsr_comm_exchange(comm, &message, 1, &message, 1, other, NULL), TSR_ERROR_UNSUPPORTED,
                mine.index == 0 ? "the memory is on standin:1, but this communicator of NCCL's sends that of standin:0"
                                : "the memory is on standin:2");
    return suite_check_usable(comm);
}

static void memory_of_another_device_is_refused(void **state)
{
    (void)state;
    suite_run(2, use_wrong_memory, NULL);
}

/* Each row of the dtypes: what NCCL reduces, and what it is to do it as. */
static void reductions_are_those_that_nccl_has(void **state)
{
    (void)state;
    for (int t = TSR_DTYPE_NONE + 1; t < TSR_DTYPE_END; t++)
        for (int op = 0; op < TSR_REDUCE_OP_END; op++) {
            const tsr_dtype_info *info = tsr_dtype_get((tsr_dtype)t);
            const bool known = t != TSR_I16 && t != TSR_U16 && t != TSR_F8E4M3 && t != TSR_F8E5M2;
            const bool is_complex = info->kind == TSR_CLASS_COMPLEX;
            const bool wanted = known && info->reduce_ops >> op & 1 && !(is_complex && op == TSR_PROD);
            tsr_nccl_reduction found;
            assert_int_equal(tsr_nccl_find_reduction(info->dtype, (tsr_reduce_op)op, &found), wanted);
            if (!wanted)
                continue;
            assert_int_equal(found.numbers, is_complex ? 2 : 1);
            static const size_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
            assert_int_equal(bytes[found.type] * found.numbers, info->bytes);
            static const ncclRedOp_t ops[] = {ncclSum, ncclAvg, ncclMin, ncclMax, ncclProd};
            assert_int_equal(found.op, ops[op]);
        }
    tsr_nccl_reduction found;
    assert_false(tsr_nccl_find_reduction(TSR_DTYPE_END, TSR_SUM, &found));
    assert_false(tsr_nccl_find_reduction(TSR_F32, TSR_REDUCE_OP_END, &found));
}

/* Complex values are summed as pairs, 16-bit integers and bool by whoever can. */
static tsr_status reduce_the_odd_ones(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int size = tsr_comm_size(comm);
    int16_t small[3] = {1, -2, 30000}, sum[3];
    const tsr_device host = tsr_device_host();
    TSR_TRY(tsr_comm_all_reduce(comm, small, sum, 3, TSR_I16, TSR_SUM, host, NULL));
    CHECK(sum[0] == size && sum[1] == -2 * size && sum[2] == (int16_t)(30000 * size));
    unsigned char flags[2] = {tsr_comm_rank(comm) == 1, 1}, any[2];
    TSR_TRY(tsr_comm_all_reduce(comm, flags, any, 2, TSR_BOOL, TSR_MAX, host, NULL));
    CHECK(any[0] == (size > 1) && any[1] == 1);
    float pair[2] = {1.0f, 2.0f}, sums[2];
    TSR_TRY(tsr_comm_all_reduce(comm, pair, sums, 1, TSR_C64, TSR_SUM, host, NULL));
    CHECK(sums[0] == (float)size && sums[1] == 2.0f * (float)size);
    return TSR_OK;
}

static void exchange_stands_in_where_nccl_has_no_reduction(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, reduce_the_odd_ones, NULL);
}

/* NCCL destroys communicators together, tessera's ranks do so one by one: rank 0 goes on with the
 * others before they let go of theirs. */
static tsr_status let_go_early(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (int round = 0; round < 3; round++) {
        tsr_comm *part;
        TSR_TRY(tsr_comm_split(comm, 0, 0, &part));
        TSR_TRY(suite_check_usable(part));
        if (tsr_comm_rank(comm) == round % tsr_comm_size(comm))
            tsr_comm_destroy(part);
        TSR_TRY(suite_check_usable(comm));
        if (tsr_comm_rank(comm) != round % tsr_comm_size(comm))
            tsr_comm_destroy(part);
    }
    return suite_check_usable(comm);
}

static void ranks_destroy_their_groups_one_by_one(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, let_go_early, NULL);
}

/* A number for the other one of two ranks, and theirs; its messages are read until the exchange is
 * over. */
typedef struct swap {
    int64_t in, out;
    tsr_message send, receive;
} swap;

static tsr_status begin_swap(tsr_comm *comm, int64_t out, swap *s)
{
    const int peer = 1 - tsr_comm_rank(comm);
    *s = (swap){.out = out, .send = {peer, &s->out, sizeof s->out}, .receive = {peer, &s->in, sizeof s->in}};
    return tsr_comm_exchange_start(comm, &s->send, 1, &s->receive, 1, tsr_device_host(), NULL);
}

static tsr_status end_swap(tsr_comm *comm, const swap *s)
{
    TSR_TRY(tsr_comm_exchange_finish(comm));
    CHECK(s->in == s->out);
    return TSR_OK;
}

/* What a thread of its own does with a group. */
typedef struct errand {
    tsr_comm *group;
    tsr_status status;
} errand;

static void *swap_in_group(void *arg)
{
    errand *mine = arg;
    swap s;
    mine->status = begin_swap(mine->group, 1, &s);
    if (mine->status == TSR_OK)
        mine->status = end_swap(mine->group, &s);
    return NULL;
}

/* The messages of the rank's own thread are on their way before the other begins, so that they go
 * in the same order on both ranks. */
static tsr_status swap_in_two_threads(tsr_comm *comm, errand *other)
{
    pthread_t thread;
    swap s;
    TSR_TRY(begin_swap(comm, 2, &s));
    CHECK(pthread_create(&thread, NULL, swap_in_group, other) == 0);
    const tsr_status status = end_swap(comm, &s);
    pthread_join(thread, NULL);
    return status == TSR_OK ? other->status : status;
}

static tsr_status call_in_two_threads(tsr_comm *comm, void *arg)
{
    enum { ROUNDS = 20 };
    errand other = {.status = TSR_OK};
    (void)arg;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &other.group));
    tsr_status status = TSR_OK;
    for (int round = 0; round < ROUNDS && status == TSR_OK; round++)
        status = swap_in_two_threads(comm, &other);
    tsr_comm_destroy(other.group);
    return status;
}

/* A race here is found by ThreadSanitizer. */
static void threads_of_a_rank_may_share_its_communicators(void **state)
{
    (void)state;
    suite_run(2, call_in_two_threads, NULL);
}

/* Checks that calls leave the thread's current device unchanged. */
static tsr_status call_from_elsewhere(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int other = (tsr_comm_rank(comm) + 1) % tsr_comm_size(comm);
    int now = -1;
    tsr_comm *part;
    standin_api.cuda_set_device(other);
    TSR_TRY(suite_check_usable(comm));
    TSR_TRY(tsr_comm_split(comm, 0, 0, &part));
    TSR_TRY(suite_check_usable(part));
    tsr_comm_destroy(part);
    standin_api.cuda_get_device(&now);
    CHECK(now == other);
    return TSR_OK;
}

static void a_rank_is_its_handle_whatever_device_is_current(void **state)
{
    (void)state;
    suite_run(3, call_from_elsewhere, NULL);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_messages_go_in_as_many_parts_as_they_take),
        cmocka_unit_test(host_collectives_go_in_as_many_calls_as_they_take),
        cmocka_unit_test(device_memory_goes_in_stream_order),
        cmocka_unit_test(exchanges_of_device_memory_wait_for_no_device),
        cmocka_unit_test(collectives_of_device_memory_are_nccls),
        cmocka_unit_test(kernels_follow_one_another_whatever_their_streams),
        cmocka_unit_test(kernels_follow_one_another_though_a_stream_has_the_handle_of_one_that_is_gone),
        cmocka_unit_test(memory_of_another_device_is_refused),
        cmocka_unit_test(reductions_are_those_that_nccl_has),
        cmocka_unit_test(exchange_stands_in_where_nccl_has_no_reduction),
        cmocka_unit_test(ranks_destroy_their_groups_one_by_one),
        cmocka_unit_test(threads_of_a_rank_may_share_its_communicators),
        cmocka_unit_test(a_rank_is_its_handle_whatever_device_is_current),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
