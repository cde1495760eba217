#include "comm_suite.h"
#include "message_engine.h"

const comm_engine suite_engines[] = {
    {"threads", tsr_threads_run, true, true},
    {"messages", message_engine_run, false, true},
    /* an engine of messages with its own collectives and halves of exchanges */
    {"own", message_engine_run_own, false, true},
    {0},
};
