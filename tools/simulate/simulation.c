#include "simulate/simulation.h"

#include "cli/report.h"
#include "simulate/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* plan_entries of the context: large enough that a plan of very many messages can be counted, and
 * then refused or surveyed. */
#define PLAN_ENTRIES ((size_t)1 << 24)

/* True if the ranks of the mesh follow each other: its text does not list them. */
static bool is_in_order(const simulation *s)
{
    return !strchr(s->mesh, '[');
}

static int survey(const plan_request *r, simulation *out)
{
    tsr_plan *plan;
    int status = EXIT_DONE;
    if (tsr_plan_create(r->from, r->to, &r->options, &plan) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (out->ranks > SIMULATION_MOST_RANKS && is_in_order(out))
        status = simulation_sample(r, plan, out);
    else if (tsr_plan_survey_of(plan, &out->figures) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    tsr_plan_destroy(plan);
    return status;
}

static int name(const plan_request *r, simulation *out)
{
    out->mesh = mesh_text(r->mesh);
    out->from = layout_text(r->from);
    out->to = layout_text(r->to);
    out->ranks = out->planned = tsr_mesh_count(r->mesh);
    out->dtype = tsr_layout_dtype(r->from);
    out->shape.ndim = tsr_layout_ndim(r->from);
    for (int d = 0; d < out->shape.ndim; d++)
        out->shape.size[d] = tsr_layout_shape(r->from)[d];
    if (!out->mesh || !out->from || !out->to)
        return complain(EXIT_REFUSED, "there is no memory for the names of the layouts");
    return EXIT_DONE;
}

static int read_request(const tool_arguments *given, tsr_profile *links, plan_request *request, simulation *out)
{
    *out = (simulation){.links = tsr_profile_retain(links)};
    *request = (plan_request){0};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.plan_entries = PLAN_ENTRIES;
    tsr_context *context;
    if (tsr_context_create(&options, &context) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    int status = plan_request_read(given, context, request);
    tsr_context_destroy(context);
    request->options.measured = links;
    if (status == EXIT_DONE)
        status = name(request, out);
    out->options = request->options;
    out->options.measured = NULL;
    return status;
}

int simulation_read(const tool_arguments *given, tsr_profile *links, simulation *out)
{
    plan_request request;
    const int status = read_request(given, links, &request, out);
    plan_request_finish(&request);
    return status;
}

int simulate(const tool_arguments *given, tsr_profile *links, simulation *out)
{
    plan_request request;
    int status = read_request(given, links, &request, out);
    if (status == EXIT_DONE)
        status = survey(&request, out);
    plan_request_finish(&request);
    return status;
}

void simulation_finish(simulation *s)
{
    free(s->mesh);
    free(s->from);
    free(s->to);
    tsr_profile_destroy(s->links);
}

double simulation_error(const simulation *s)
{
    return fabs(s->figures.seconds - s->measured.median) / s->measured.median;
}
