#include "ops/replicas/describe.h"
#include "ops/replicas/threads.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <string.h>

#define CALL "tsr_replicas_create"

static void destroy_replica(tsr_context *context, const tsr_replica *replica)
{
    tsr_executable_destroy(replica->executable);
    tsr_comm_destroy(replica->comm);
    tsr_release(context, replica->inputs);
    tsr_release(context, replica->outputs);
    tsr_release(context, replica->workspace);
    tsr_release(context, replica->made);
    tsr_release(context, replica->sums);
}

void tsr_replicas_destroy(tsr_replicas *replicas)
{
    if (!replicas)
        return;
    tsr_context *const context = replicas->context;
    tsr_replicas_leave(replicas);
    for (int i = 0; replicas->replicas && i < replicas->ranks; i++)
        destroy_replica(context, &replicas->replicas[i]);
    tsr_release(context, replicas->replicas);
    tsr_release(context, replicas->inputs);
    tsr_release(context, replicas->outputs);
    tsr_release(context, replicas->parameters);
    tsr_release(context, replicas->rows);
    tsr_release(context, replicas);
    tsr_context_destroy(context);
}

/* Gives a rank what it runs. */
static tsr_status compile_replica(tsr_replica *replica, const tsr_program *program)
{
    tsr_context *const context = replica->all->context;
    tsr_threads_options alone = TSR_THREADS_OPTIONS_INIT;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    alone.context = context;
    options.rank = 0;
    TSR_TRY(tsr_comm_create_threads(1, &alone, &replica->comm));
    return tsr_compile(program, &options, &replica->executable);
}

/* Gives a rank memory, and makes it ready. */
static tsr_status prepare_replica(tsr_replica *replica)
{
    const tsr_replicas *const r = replica->all;
    TSR_TRY(tsr_executable_prepare(replica->executable, replica->comm));
    replica->workspace_bytes = tsr_executable_workspace_bytes(replica->executable);
    TSR_TRY(tsr_program_array(r->context, r->input_count, sizeof(tsr_tensor), (void **)&replica->inputs));
    TSR_TRY(tsr_program_array(r->context, r->output_count, sizeof(tsr_tensor), (void **)&replica->outputs));
    TSR_TRY(tsr_allocate_data(r->context, replica->workspace_bytes, &replica->workspace));
    return tsr_allocate_data(r->context, r->made_bytes, (void **)&replica->made);
}

static tsr_status fill(tsr_replicas *r, const tsr_program *program, const char *rows)
{
    TSR_TRY(tsr_program_copy_text(r->context, rows, &r->rows));
    TSR_TRY(tsr_program_array(r->context, (size_t)r->ranks, sizeof *r->replicas, (void **)&r->replicas));
    for (int i = 0; i < r->ranks; i++) {
        r->replicas[i] = (tsr_replica){.all = r, .rank = i};
        TSR_TRY(compile_replica(&r->replicas[i], program));
    }
    TSR_TRY(tsr_replicas_describe(r, program, r->replicas[0].executable));
    for (int i = 0; i < r->ranks; i++)
        TSR_TRY(prepare_replica(&r->replicas[i]));
    return tsr_replicas_start(r);
}

static tsr_status check(const tsr_program *program, int ranks, const tsr_replicas_options *options,
                        const tsr_replicas *const *out)
{
    if (!program || !out || !options->rows)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s is NULL",
                              !program ? "program"
                              : out    ? "options.rows"
                                       : "out");
    if (ranks < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": ranks is %d, but must be 1 or more", ranks);
    if (options->reduce != TSR_REPLICAS_SUM && options->reduce != TSR_REPLICAS_MEAN)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": options.reduce is %d, but must be TSR_REPLICAS_SUM or TSR_REPLICAS_MEAN",
                              (int)options->reduce);
    return TSR_OK;
}

tsr_status tsr_replicas_create(const tsr_program *program, int ranks, const tsr_replicas_options *options,
                               tsr_replicas **out)
{
    tsr_replicas_options known = TSR_REPLICAS_OPTIONS_INIT;
    tsr_replicas *made;
    tsr_kept_sentence kept;
    TSR_TRY(tsr_options_read(CALL, options, &known, sizeof known));
    TSR_TRY(check(program, ranks, &known, (const tsr_replicas *const *)out));
    TSR_TRY(tsr_program_array(program->context, 1, sizeof *made, (void **)&made));
    made->context = tsr_context_retain(program->context);
    made->reduce = known.reduce;
    made->ranks = ranks;
    const tsr_status status = fill(made, program, known.rows);
    if (status != TSR_OK) {
        tsr_status_keep(&kept);
        tsr_replicas_destroy(made);
        return tsr_status_restore(&kept, status);
    }
    *out = made;
    return TSR_OK;
}
