#include "ways.h"

#include "body.h"
#include "message_engine.h"

const char *const way_names[WAYS] = {"memory", "messages in halves", "collectives"};

typedef struct inside {
    tsr_rank_main *main;
    void *arg;
} inside;

static tsr_status run_in_halves(tsr_comm *carrier, void *arg)
{
    const inside *const in = arg;
    tsr_comm *comm;
    TSR_TRY(message_engine_create(carrier, NULL, &comm));
    return run_body(in->main, comm, in->arg);
}

tsr_status way_run(way how, int ranks, tsr_rank_main *main, void *arg, const tsr_threads_options *options)
{
    inside in = {main, arg};
    if (how == WAY_HALVES)
        return tsr_threads_run(ranks, run_in_halves, &in, options);
    return how == WAY_DIRECT ? tsr_threads_run(ranks, main, arg, options)
                             : message_engine_run_own(ranks, main, arg, options);
}
