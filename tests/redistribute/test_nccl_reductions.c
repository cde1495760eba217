/* The reductions of comm.h over NCCL's engine with memory of the GPU have the bits of rank order
 * for every dtype and op. NCCL reduces integers; for other dtypes pieces are sent and a kernel of
 * the library reduces them. */
#include "oracle.h"
#include "ranks.h"
#include "standin_ranks.h"
#include "support.h"

#include <tessera/sys/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Elements that each rank gets of a reduce-scatter. */
enum { RANKS = 3, EACH = 11, ALL = RANKS * EACH, ELEMENT = 16, BYTES = ALL * ELEMENT };

/* One rank's memory, and where its tensors are. */
typedef struct seat {
    tsr_comm *comm;
    tsr_device device;
    const tsr_device_table *gpu;
    tsr_stream stream;
    void *send, *receive;
    unsigned char given[BYTES], got[BYTES];
} seat;

static tsr_status take_seat(seat *s, tsr_comm *comm)
{
    *s = (seat){.comm = comm, .device = standin_ranks_device()};
    s->gpu = tsr_device_driver_table(s->device.driver, NULL);
    TSR_TRY(s->gpu->stream_create(NULL, s->device.index, &s->stream));
    TSR_TRY(s->gpu->alloc(NULL, s->device.index, BYTES, s->stream, &s->send));
    return s->gpu->alloc(NULL, s->device.index, BYTES, s->stream, &s->receive);
}

static void leave_seat(seat *s)
{
    s->gpu->stream_synchronize(NULL, s->device.index, s->stream);
    s->gpu->free(NULL, s->device.index, s->send, BYTES, NULL);
    s->gpu->free(NULL, s->device.index, s->receive, BYTES, NULL);
    s->gpu->stream_destroy(NULL, s->device.index, s->stream);
}

/* The value that rank `term` gives of element `index`, the same on all ranks. */
static void value_of(tsr_dtype dtype, tsr_reduce_op op, int64_t index, int64_t term, unsigned char *value)
{
    oracle_element(dtype, 1000 + (uint64_t)op, index, term, value);
}

static tsr_status compare(const seat *s, tsr_dtype dtype, tsr_reduce_op op, const char *call, int64_t first,
                          int64_t count)
{
    const size_t bytes = oracle_bytes(dtype);
    unsigned char terms[RANKS * ELEMENT], wanted[ELEMENT];
    for (int64_t i = 0; i < count; i++) {
        for (int r = 0; r < RANKS; r++)
            value_of(dtype, op, first + i, r, terms + (size_t)r * bytes);
        oracle_reduce(dtype, op, op == TSR_AVG ? RANKS : 1, terms, RANKS, wanted);
        if (memcmp(s->got + (size_t)i * bytes, wanted, bytes) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "rank %d: element %lld of %s, %s of %s, differs",
                                  tsr_comm_rank(s->comm), (long long)(first + i), call, tsr_reduce_op_name(op),
                                  oracle_dtype_name(dtype));
    }
    return TSR_OK;
}

static tsr_status fetch(seat *s, size_t bytes)
{
    TSR_TRY(s->gpu->copy(NULL, s->device.index, s->got, s->receive, bytes, TSR_COPY_TO_HOST, s->stream));
    return tsr_comm_wait(s->comm, s->stream, 0);
}

static tsr_status reduce_all_ways(seat *s, tsr_dtype dtype, tsr_reduce_op op)
{
    const size_t bytes = oracle_bytes(dtype);
    const int rank = tsr_comm_rank(s->comm);
    for (int i = 0; i < ALL; i++)
        value_of(dtype, op, i, rank, s->given + (size_t)i * bytes);
    TSR_TRY(s->gpu->copy(NULL, s->device.index, s->send, s->given, ALL * bytes, TSR_COPY_FROM_HOST, s->stream));
    TSR_TRY(tsr_comm_all_reduce(s->comm, s->send, s->receive, ALL, dtype, op, s->device, s->stream));
    TSR_TRY(fetch(s, ALL * bytes));
    TSR_TRY(compare(s, dtype, op, "all-reduce", 0, ALL));
    TSR_TRY(tsr_comm_reduce_scatter(s->comm, s->send, s->receive, EACH, NULL, dtype, op, s->device, s->stream));
    TSR_TRY(fetch(s, EACH * bytes));
    return compare(s, dtype, op, "reduce-scatter", (int64_t)rank * EACH, EACH);
}

static tsr_status reduce_everything(tsr_comm *comm, void *arg)
{
    seat *const s = malloc(sizeof *s);
    (void)arg;
    tsr_status status = take_seat(s, comm);
    for (int dtype = TSR_DTYPE_NONE + 1; dtype < TSR_DTYPE_END; dtype++)
        for (int op = 0; op < TSR_REDUCE_OP_END && status == TSR_OK; op++)
            if (oracle_has_op((tsr_dtype)dtype, (tsr_reduce_op)op))
                status = reduce_all_ways(s, (tsr_dtype)dtype, (tsr_reduce_op)op);
    leave_seat(s);
    free(s);
    return status;
}

static void every_dtype_and_op_gives_the_bits_of_rank_order(void **state)
{
    (void)state;
    for (int lent = 0; lent < 2; lent++) {
        const tsr_status status = (lent ? standin_run_lent : standin_run)(RANKS, reduce_everything, NULL, NULL);
        if (status != TSR_OK)
            fail_msg("%s: %s%s", tsr_status_name(status), tsr_status_message(), lent ? " (lent)" : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_dtype_and_op_gives_the_bits_of_rank_order)};
    test_watchdog(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
