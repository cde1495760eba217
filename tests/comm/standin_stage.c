#include "standin_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

ncclResult_t stage_state(ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    assert_int_equal(API->comm_get_async_error(comm, &state), ncclSuccess);
    return state;
}

void stage_settle(const ncclComm_t *comms)
{
    for (int look = 0; look < 100; look++) {
        int busy = 0;
        for (int r = 0; r < RANKS; r++)
            busy += comms[r] && stage_state(comms[r]) == ncclInProgress;
        if (!busy)
            return;
    }
    fail_msg("a communicator stays in progress");
}

static void make_comms(ncclComm_t *comms)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    config.blocking = 0;
    assert_int_equal(API->get_unique_id(&id), ncclSuccess);
    for (int r = 0; r < RANKS; r++) {
        API->cuda_set_device(r);
        assert_int_equal(API->comm_init_rank_config(&comms[r], RANKS, id, r, &config), ncclInProgress);
    }
    stage_settle(comms);
}

const tsr_device_table *stage_table(const stage *s)
{
    return tsr_device_driver_table(s->driver, NULL);
}

void stage_begin(stage *s)
{
    memset(s, 0, sizeof *s);
    standin_begin(RANKS, 7);
    assert_int_equal(standin_driver_create(&s->driver), TSR_OK);
    for (int set = 0; set < 2; set++) {
        make_comms(s->comm[set]);
        for (int r = 0; r < RANKS; r++) {
            API->cuda_set_device(r);
            assert_int_equal(API->cuda_stream_create_with_flags(&s->stream[set][r], cudaStreamNonBlocking),
                             cudaSuccess);
            assert_int_equal(stage_table(s)->alloc(NULL, r, RANKS * BYTES, NULL, (void **)&s->buffer[set][r]), TSR_OK);
            for (int i = 0; i < RANKS * WORDS; i++)
                s->buffer[set][r][i] = set ? -1 : 100 * r + i;
        }
    }
}

int stage_is_done(const stage *s, int set, int rank)
{
    API->cuda_set_device(rank);
    return API->cuda_stream_query(s->stream[set][rank]) == cudaSuccess;
}

void stage_end(stage *s, int hangs)
{
    for (int set = 0; set < 2; set++)
        for (int r = 0; r < RANKS; r++)
            if (s->comm[set][r])
                hangs ? API->comm_abort(s->comm[set][r]) : API->comm_finalize(s->comm[set][r]);
    for (int set = 0; set < 2; set++) {
        if (!hangs)
            stage_settle(s->comm[set]);
        for (int r = 0; r < RANKS; r++) {
            if (!hangs && s->comm[set][r])
                API->comm_destroy(s->comm[set][r]);
            API->cuda_stream_destroy(s->stream[set][r]);
            stage_table(s)->free(NULL, r, s->buffer[set][r], RANKS * BYTES, NULL);
        }
    }
    tsr_device_driver_destroy(s->driver);
    const char *misuse = standin_end();
    if (misuse)
        fail_msg("in the end: %s", misuse);
}

void expect_misuse(const char *words)
{
    const char *misuse = standin_misuse();
    if (!misuse || !strstr(misuse, words))
        fail_msg("\"%s\" does not say \"%s\"", misuse ? misuse : "nothing", words);
}

void expect_none(void)
{
    const char *misuse = standin_misuse();
    if (misuse)
        fail_msg("%s", misuse);
}

ncclResult_t stage_sum(stage *s, int set, int rank, size_t count, int stream)
{
    return API->all_reduce(s->buffer[0][rank], s->buffer[1][rank], count, ncclInt32, ncclSum, s->comm[set][rank],
                           s->stream[stream][rank]);
}
