#include "comm/core/late.h"

#include "base/text/text.h"
#include "comm/core/traits.h"

#include <tessera/sys/log.h>

#define WORDS 512

/* The name of the public call in flight; for a group's communicator that is the call over the
 * communicator that holds the group. */
static const char *name_call(const tsr_comm *comm)
{
    while (comm->outer)
        comm = comm->outer;
    return tsr_comm_call_in_flight(comm);
}

/* Only a direct engine's call has its description at hand while it waits. */
static void append_arguments(const tsr_comm *comm, tsr_text *text)
{
    char words[WORDS] = "";
    if (!tsr_comm_is_direct(comm) || !comm->describe)
        return;
    comm->describe(comm->described, words, sizeof words);
    tsr_text_append(text, " (%s)", words);
}

void tsr_comm_tell_late(void *arg, int seconds, const char *ranks)
{
    const tsr_comm *const comm = arg;
    const char *const call = name_call(comm);
    char words[WORDS] = "";
    tsr_text text = {words, sizeof words, 0};
    if (call)
        tsr_text_append(&text, " in %s()", call);
    append_arguments(comm, &text);
    tsr_log(comm->context, TSR_LOG_ERROR, "rank %d of %d has waited %d s%s for %s", comm->rank, comm->size, seconds,
            words, ranks);
}
