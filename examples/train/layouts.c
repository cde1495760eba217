#include "layouts.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

static const char *const role_names[TRAIN_ROLES] = {"dp", "fsdp", "tp", "cp"};

static tsr_status find_roles(train_layouts *layouts, const char *text)
{
    for (int role = 0; role < TRAIN_ROLES; role++)
        layouts->dims[role] = -1;
    for (int dim = 0; dim < tsr_mesh_ndim(layouts->mesh); dim++) {
        const char *const name = tsr_mesh_name(layouts->mesh, dim);
        int role = 0;
        while (role < TRAIN_ROLES && name && strcmp(name, role_names[role]) != 0)
            role++;
        if (!name || role == TRAIN_ROLES)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "--mesh %s: the dims of a training are dp, fsdp, tp and cp, as in dp=2,tp=2", text);
        layouts->dims[role] = dim;
    }
    return TSR_OK;
}

tsr_status train_layouts_init(train_layouts *layouts, const llama_config *config, tsr_comm *comm, tsr_context *context,
                              const char *mesh)
{
    *layouts = (train_layouts){0};
    TSR_TRY(tsr_mesh_parse(comm, context, mesh, &layouts->mesh));
    const tsr_status status = find_roles(layouts, mesh);
    if (status != TSR_OK) {
        train_layouts_finish(layouts);
        return status;
    }
    layouts->shares_keys = config->heads > config->kv_heads && train_layouts_size(layouts, TRAIN_TP) > config->kv_heads;
    layouts->shares_experts = train_layouts_size(layouts, TRAIN_TP) > config->mixture.experts;
    return TSR_OK;
}

void train_layouts_finish(train_layouts *layouts)
{
    tsr_mesh_destroy(layouts->mesh);
    *layouts = (train_layouts){0};
}

int64_t train_layouts_size(const train_layouts *layouts, train_role role)
{
    return layouts->dims[role] >= 0 ? tsr_mesh_size(layouts->mesh, layouts->dims[role]) : 1;
}

/* Joins the placements of roles in the order of the mesh's dims. */
static void join(const train_layouts *layouts, const char *const of[TRAIN_ROLES], char text[TRAIN_TEXT_BYTES])
{
    size_t length = 0;
    for (int dim = 0; dim < tsr_mesh_ndim(layouts->mesh); dim++)
        for (int role = 0; role < TRAIN_ROLES; role++)
            if (layouts->dims[role] == dim)
                length += (size_t)snprintf(text + length, TRAIN_TEXT_BYTES - length, "%s%s", dim ? "," : "", of[role]);
}

void train_layouts_activation(const train_layouts *layouts, int rows, int tokens, const char *tp,
                              char text[TRAIN_TEXT_BYTES])
{
    char by_rows[32] = "R", by_tokens[32] = "R";
    if (rows >= 0)
        snprintf(by_rows, sizeof by_rows, "S(%d;balanced)", rows);
    if (tokens >= 0)
        snprintf(by_tokens, sizeof by_tokens, "S(%d;balanced)", tokens);
    const char *const of[TRAIN_ROLES] = {by_rows, by_rows, tp, by_tokens};
    join(layouts, of, text);
}

void train_layouts_flatten(const int64_t shape[2], char tp[TRAIN_CUT_BYTES])
{
    int dim;
    long long unit = 1;
    if (sscanf(tp, "S(%d;unit=%lld", &dim, &unit) < 1)
        return; /* R */
    if (dim == 0)
        snprintf(tp, TRAIN_CUT_BYTES, "S(0;unit=%lld)", unit * (long long)shape[1]);
    else
        snprintf(tp, TRAIN_CUT_BYTES, "S(0;interleave=%lld;unit=%lld)", (long long)shape[0], unit);
}

void train_layouts_each(const train_layouts *layouts, const char *others, const char *tp, char text[TRAIN_TEXT_BYTES])
{
    const char *const of[TRAIN_ROLES] = {others, others, tp, others};
    join(layouts, of, text);
}

void train_layouts_windows(const train_layouts *layouts, int dim, int64_t unit, char text[TRAIN_TEXT_BYTES])
{
    char first[64], last[72];
    snprintf(first, sizeof first, "S(%d;balanced;unit=%lld)", dim, (long long)unit);
    /* cp cuts what dp and fsdp have left: so windows stay with the ranks that have their tokens. */
    snprintf(last, sizeof last, "%s[%d]", first, TSR_MAX_DIMS);
    const char *const of[TRAIN_ROLES] = {first, first, "R", last};
    join(layouts, of, text);
}

void train_layouts_weight(const train_layouts *layouts, const char *tp, int fsdp, char text[TRAIN_TEXT_BYTES])
{
    char first[TRAIN_CUT_BYTES + 8], second[32] = "R";
    const int *const dims = layouts->dims;
    snprintf(first, sizeof first, "%s", tp);
    if (fsdp >= 0)
        snprintf(second, sizeof second, "S(%d;balanced)", fsdp);
    /* fsdp cuts what tp has left, whichever dim of the mesh comes first: so a gather has only the
     * rank's own part. */
    if (fsdp == 0 && strncmp(tp, "S(0", 3) == 0 && dims[TRAIN_FSDP] >= 0 && dims[TRAIN_FSDP] < dims[TRAIN_TP]) {
        snprintf(first, sizeof first, "%s[0]", tp);
        snprintf(second, sizeof second, "S(0;balanced)[1]");
    }
    const char *const of[TRAIN_ROLES] = {"R", second, first, "R"};
    join(layouts, of, text);
}
