#include "ranks.h"

#include "layouts.h"
#include "message_engine.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

tsr_status check_error(tsr_status status, tsr_status wanted, const char *part, const char *file, int line,
                       const char *text)
{
    char sentence[512];
    strncpy(sentence, tsr_status_message(), sizeof sentence - 1);
    sentence[sizeof sentence - 1] = '\0';
    if (status == wanted && (!part || strstr(sentence, part)) && sentence[0] != '\0')
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s:%d: %s gave %s (%s), not %s naming \"%s\"", file, line, text,
                          tsr_status_name(status), status == TSR_OK ? "" : sentence, tsr_status_name(wanted),
                          part ? part : "");
}

void run_ranks(int count, tsr_rank_main *body, void *arg)
{
    const tsr_status status = tsr_threads_run(count, body, arg, NULL);
    if (status != TSR_OK)
        fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
}

tsr_status mesh_over(tsr_comm *comm, const char *text, tsr_mesh **out)
{
    return tsr_mesh_parse(comm, NULL, text, out);
}

tsr_status layout_over(tsr_comm *comm, const char *mesh_text, const char *shape_text, const char *placements,
                       tsr_dtype dtype, tsr_layout **out)
{
    tsr_mesh *mesh = NULL;
    int64_t shape[TSR_MAX_DIMS];
    TSR_TRY(mesh_over(comm, mesh_text, &mesh));
    const tsr_status status = tsr_layout_parse(mesh, placements, shape_of(shape_text, shape), shape, dtype, out);
    tsr_mesh_destroy(mesh);
    return status;
}

tsr_status numbered_over(const tsr_mesh *mesh, const char *placements, const int64_t *shape, int factor,
                         tsr_dtensor **out)
{
    int32_t values[64];
    CHECK(shape[0] * shape[1] <= 64);
    for (int i = 0; i < 64; i++)
        values[i] = factor * i;
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_I32, 2, shape);
    return tsr_distribute(&global, mesh, placements, out);
}

tsr_status shard_over(const tsr_layout *layout, void *memory, tsr_tensor *out)
{
    int64_t shape[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(layout, NULL, shape, NULL));
    *out = tsr_tensor_contiguous(memory, tsr_layout_dtype(layout), tsr_layout_ndim(layout), shape);
    return TSR_OK;
}

void *workspace_for(const tsr_plan *plan, size_t *bytes)
{
    *bytes = tsr_plan_workspace_bytes(plan);
    return *bytes > 0 ? aligned_alloc(64, (*bytes + 63) / 64 * 64) : NULL;
}

tsr_status lend(tsr_comm *carrier, tsr_comm **out)
{
    tsr_comm *copy = NULL;
    void *self = NULL;
    tsr_comm_table table = message_engine_table;
    table.split = NULL;
    TSR_TRY(tsr_comm_split(carrier, 0, tsr_comm_rank(carrier), &copy));
    TSR_TRY(message_engine_self(copy, &self));
    return tsr_comm_create_from_table(tsr_comm_context(carrier), &table, self, out);
}
