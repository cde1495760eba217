#include "comm_suite.h"
#include "launched.h"

const comm_engine suite_engines[] = {
    {"node", launched_run, true, true, true, launched_rank},
    {"messages", launched_run_by_messages, false, false, true, launched_rank},
    {0},
};
