#include "plan/request.h"

#include "cli/node_list.h"
#include "cli/report.h"
#include "files/profile.h"

#include <tessera/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const objective_names[] = {[TSR_OBJECTIVE_BYTES] = "bytes", [TSR_OBJECTIVE_TIME] = "time"};

const char *objective_name(tsr_objective objective)
{
    return objective_names[objective];
}

static int parse_objective(const char *text, tsr_objective *out)
{
    if (!text)
        return EXIT_DONE;
    for (size_t i = 0; i < sizeof objective_names / sizeof *objective_names; i++) {
        if (strcmp(objective_names[i], text) == 0) {
            *out = (tsr_objective)i;
            return EXIT_DONE;
        }
    }
    return complain(EXIT_USAGE, "--objective '%s' is not known; there are bytes and time", text);
}

static int read_meshes(const tool_arguments *given, tsr_context *context, plan_request *r)
{
    int status = parse_mesh_in(context, "--mesh", given->value[OPT_MESH], &r->mesh);
    if (status != EXIT_DONE)
        return status;
    if (given->value[OPT_TO_MESH])
        return parse_mesh_in(context, "--to-mesh", given->value[OPT_TO_MESH], &r->to_mesh);
    r->to_mesh = tsr_mesh_retain(r->mesh);
    return EXIT_DONE;
}

static int read_layouts(const tool_arguments *given, tsr_context *context, plan_request *r)
{
    tensor_shape shape;
    tsr_dtype dtype;
    int status = parse_shape(given->value[OPT_SHAPE], &shape);
    if (status == EXIT_DONE)
        status = parse_dtype(given->value[OPT_DTYPE], &dtype);
    if (status == EXIT_DONE)
        status = read_meshes(given, context, r);
    if (status == EXIT_DONE)
        status = parse_layout("--from", given->value[OPT_FROM], r->mesh, &shape, dtype, &r->from);
    if (status == EXIT_DONE)
        status = parse_layout("--to", given->value[OPT_TO], r->to_mesh, &shape, dtype, &r->to);
    return status;
}

/* A mesh and its ranks, as "mesh 2x4 (ranks 0 to 7)", or without the parentheses if its text lists
 * the ranks; the caller frees it. NULL if there is no memory. */
static char *ranks_text(const tsr_mesh *mesh)
{
    const int64_t origin[TSR_MAX_DIMS] = {0};
    char *text = mesh_text(mesh), *answer = NULL;
    int64_t first;
    if (!text || tsr_mesh_rank_at(mesh, origin, &first) != TSR_OK)
        goto free_text;
    const size_t room = strlen(text) + 64;
    answer = malloc(room);
    if (!answer)
        goto free_text;
    const int used = snprintf(answer, room, "mesh %s", text);
    if (!strchr(text, '['))
        snprintf(answer + used, room - (size_t)used, " (ranks %lld to %lld)", (long long)first,
                 (long long)(first + tsr_mesh_count(mesh) - 1));
free_text:
    free(text);
    return answer;
}

static int refuse_rank(const plan_request *r)
{
    char *const from = ranks_text(r->mesh), *const to = ranks_text(r->to_mesh);
    const bool two = from && to && strcmp(from, to) != 0;
    if (!from || !to)
        complain(EXIT_REFUSED, "there is no memory for the text of the meshes");
    else
        complain(EXIT_REFUSED, "--rank %lld is not in %s%s%s", (long long)r->options.rank, from, two ? ", nor in " : "",
                 two ? to : "");
    free(from);
    free(to);
    return EXIT_REFUSED;
}

/* Refuses a --rank that is in neither mesh. */
static int check_rank(const plan_request *r)
{
    int64_t coordinate[TSR_MAX_DIMS];
    const tsr_mesh *const meshes[] = {r->mesh, r->to_mesh};
    for (size_t i = 0; i < 2; i++) {
        int inside = 0;
        if (tsr_mesh_coordinate_of(meshes[i], r->options.rank, coordinate, &inside) == TSR_OK && inside)
            return EXIT_DONE;
    }
    return refuse_rank(r);
}

static int read_rank(const tool_arguments *given, plan_request *r)
{
    r->options.rank = TSR_RANK_NONE;
    if (!given->value[OPT_RANK])
        return EXIT_DONE;
    const int status = parse_index("--rank", given->value[OPT_RANK], &r->options.rank);
    return status == EXIT_DONE ? check_rank(r) : status;
}

static int read_max_workspace(const char *text, size_t *out)
{
    int64_t bytes;
    const int status = parse_count("--max-workspace", text, 0, &bytes);
    if (status == EXIT_DONE)
        *out = (size_t)bytes;
    return status;
}

static int read_profile(const char *path, plan_request *r)
{
    if (!path)
        return EXIT_DONE;
    const int status = profile_read(path, &r->profile);
    r->options.measured = r->profile;
    return status;
}

static int read_nodes(const tool_arguments *given, plan_request *r)
{
    if (!given->value[OPT_NODES])
        return parse_count("--ranks-per-node", given->value[OPT_RANKS_PER_NODE], 0, &r->options.nodes.ranks_per_node);
    if (given->value[OPT_RANKS_PER_NODE])
        return complain(EXIT_USAGE, "--nodes and --ranks-per-node both say how ranks lie on nodes; give one of them");
    const int status = parse_nodes(given->value[OPT_NODES], &r->options.nodes.count, &r->node);
    r->options.nodes.node = r->node;
    return status;
}

static int read_options(const tool_arguments *given, plan_request *r)
{
    int status = parse_mode(given->value[OPT_MODE], &r->options.mode);
    if (status == EXIT_DONE)
        status = parse_objective(given->value[OPT_OBJECTIVE], &r->options.objective);
    if (status == EXIT_DONE)
        status = read_max_workspace(given->value[OPT_MAX_WORKSPACE], &r->options.max_workspace);
    if (status == EXIT_DONE)
        status = read_nodes(given, r);
    return status == EXIT_DONE ? read_profile(given->value[OPT_PROFILE], r) : status;
}

static int relabel(plan_request *r)
{
    tsr_layout *chosen;
    if (tsr_layout_relabel(r->from, r->to, &chosen, &r->relabel) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    tsr_layout_destroy(r->to);
    r->to = chosen;
    r->relabelled = true;
    return EXIT_DONE;
}

int plan_request_read(const tool_arguments *given, tsr_context *context, plan_request *out)
{
    *out = (plan_request){.options = TSR_PLAN_OPTIONS_INIT};
    int status = read_options(given, out);
    if (status == EXIT_DONE)
        status = read_layouts(given, context, out);
    if (status == EXIT_DONE)
        status = read_rank(given, out);
    return status == EXIT_DONE && given->value[OPT_RELABEL] ? relabel(out) : status;
}

void plan_request_finish(plan_request *r)
{
    tsr_layout_destroy(r->from);
    tsr_layout_destroy(r->to);
    tsr_mesh_destroy(r->mesh);
    tsr_mesh_destroy(r->to_mesh);
    free(r->node);
    tsr_profile_destroy(r->profile);
}
