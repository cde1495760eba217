#include "bench/program/predict.h"

#include "cli/report.h"
#include "place/move.h"
#include "place/wholes.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

static const char *environment_without_cost(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "TSR_COST") == 0 ? NULL : getenv(name);
}

tsr_status program_context(tsr_profile *profile, tsr_context **out)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.measured = profile;
    if (profile)
        options.environment = environment_without_cost;
    return tsr_context_create(&options, out);
}

static tsr_status compile(const program_case *c, const tsr_mesh *mesh, int64_t rank, tsr_program *p,
                          program_prediction *out)
{
    tsr_executable *x;
    tsr_executable_figures f;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    model m = {.program = p, .mesh = mesh, .sizes = c->sizes};
    options.rank = rank;
    const double begin = clock_seconds();
    c->record(&m);
    TSR_TRY(tsr_compile(p, &options, &x));
    const double end = clock_seconds();
    const tsr_status status = tsr_executable_figures_of(x, &f);
    if (status == TSR_OK)
        *out = (program_prediction){f.seconds,
                                    end - begin,
                                    (int64_t)f.peak_bytes,
                                    (int64_t)f.workspace_bytes,
                                    f.bytes_received,
                                    (int64_t)tsr_executable_step_count(x)};
    tsr_executable_destroy(x);
    return status;
}

tsr_status program_predict(const program_case *c, const tsr_mesh *mesh, int64_t rank, program_prediction *out)
{
    tsr_program *p;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_status status = compile(c, mesh, rank, p, out);
    tsr_program_destroy(p);
    return status;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static tsr_status predict_ranks(const program_case *c, const tsr_mesh *mesh, program_prediction *out)
{
    *out = (program_prediction){.seconds = 0};
    for (int64_t rank = 0; rank < tsr_mesh_count(mesh); rank++) {
        program_prediction one;
        TSR_TRY(program_predict(c, mesh, rank, &one));
        out->seconds = one.seconds > out->seconds ? one.seconds : out->seconds;
        out->compile_seconds = one.compile_seconds > out->compile_seconds ? one.compile_seconds : out->compile_seconds;
        out->peak_bytes = most(one.peak_bytes, out->peak_bytes);
        out->workspace_bytes = most(one.workspace_bytes, out->workspace_bytes);
        out->received = most(one.received, out->received);
        out->steps = most(one.steps, out->steps);
    }
    return TSR_OK;
}

tsr_status program_predict_all(const program_case *c, const tsr_mesh *like, tsr_profile *profile,
                               program_prediction *out)
{
    tsr_context *context;
    tsr_mesh *mesh = NULL;
    TSR_TRY(program_context(profile, &context));
    tsr_status status = wholes_mesh(NULL, context, like, &mesh);
    if (status == TSR_OK)
        status = predict_ranks(c, mesh, out);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
    return status;
}
