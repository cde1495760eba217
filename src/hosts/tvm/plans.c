#include "hosts/tvm/plans.h"

#include "hosts/tvm/object.h"

#include <tessera/explain.h>
#include <tessera/saved.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

static void destroy_plan(void *content)
{
    tsr_plan_destroy(content);
}

tsr_status tsr_tvm_plan(tsr_tvm_call *call)
{
    void *source, *destination;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan *plan;
    TSR_TRY(tsr_tvm_object(call, 0, "source", TSR_TVM_LAYOUT, &source));
    TSR_TRY(tsr_tvm_object(call, 1, "destination", TSR_TVM_LAYOUT, &destination));
    TSR_TRY(tsr_tvm_integer(call, 2, "rank", &options.rank));
    if (options.rank < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank %lld is negative", call->name, (long long)options.rank);
    TSR_TRY(tsr_plan_create(source, destination, &options, &plan));
    return tsr_tvm_return_object(call, TSR_TVM_PLAN, plan, destroy_plan);
}

static tsr_status read_plan(tsr_tvm_call *call, tsr_plan **out)
{
    void *content;
    TSR_TRY(tsr_tvm_object(call, 0, "plan", TSR_TVM_PLAN, &content));
    *out = content;
    return TSR_OK;
}

static tsr_status take_memory(const tsr_tvm_call *call, size_t bytes, void **out)
{
    *out = malloc(bytes);
    return *out ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for %zu bytes", call->name, bytes);
}

tsr_status tsr_tvm_save_plan(tsr_tvm_call *call)
{
    tsr_plan *plan;
    size_t size;
    void *bytes;
    TSR_TRY(read_plan(call, &plan));
    TSR_TRY(tsr_plan_save(plan, NULL, 0, &size));
    TSR_TRY(take_memory(call, size, &bytes));
    tsr_status status = tsr_plan_save(plan, bytes, size, &size);
    if (status == TSR_OK)
        status = tsr_tvm_return_bytes(call, bytes, size);
    free(bytes);
    return status;
}

tsr_status tsr_tvm_load_plan(tsr_tvm_call *call)
{
    TVMFFIByteArray bytes;
    int64_t rank;
    tsr_plan *plan;
    TSR_TRY(tsr_tvm_bytes(call, 0, "bytes", &bytes));
    TSR_TRY(tsr_tvm_integer(call, 1, "rank", &rank));
    TSR_TRY(tsr_plan_load(NULL, bytes.data, bytes.size, rank, &plan));
    return tsr_tvm_return_object(call, TSR_TVM_PLAN, plan, destroy_plan);
}

static tsr_status read_figures(tsr_tvm_call *call, tsr_plan_figures *out)
{
    tsr_plan *plan;
    TSR_TRY(read_plan(call, &plan));
    return tsr_plan_figures_of(plan, out);
}

tsr_status tsr_tvm_plan_bytes(tsr_tvm_call *call)
{
    tsr_plan_figures figures;
    TSR_TRY(read_figures(call, &figures));
    return tsr_tvm_return_sizes(call, 2, (const int64_t[]){figures.bytes_received, figures.bytes_sent});
}

tsr_status tsr_tvm_plan_messages(tsr_tvm_call *call)
{
    tsr_plan_figures figures;
    TSR_TRY(read_figures(call, &figures));
    return tsr_tvm_return_sizes(call, 2, (const int64_t[]){figures.messages_received, figures.messages_sent});
}

tsr_status tsr_tvm_plan_workspace(tsr_tvm_call *call)
{
    tsr_plan *plan;
    TSR_TRY(read_plan(call, &plan));
    return tsr_tvm_return_integer(call, (int64_t)tsr_plan_workspace_bytes(plan));
}

tsr_status tsr_tvm_describe_plan(tsr_tvm_call *call)
{
    tsr_plan *plan;
    size_t length;
    void *text;
    TSR_TRY(read_plan(call, &plan));
    TSR_TRY(tsr_plan_describe(plan, NULL, 0, &length));
    TSR_TRY(take_memory(call, length + 1, &text));
    tsr_status status = tsr_plan_describe(plan, text, length + 1, &length);
    if (status == TSR_OK)
        status = tsr_tvm_return_text(call, text);
    free(text);
    return status;
}
