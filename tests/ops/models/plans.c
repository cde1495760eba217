#include "plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

tsr_context *plans_context;

int plans_open(void **state)
{
    (void)state;
    return tsr_context_create(NULL, &plans_context) != TSR_OK;
}

int plans_close(void **state)
{
    (void)state;
    tsr_context_destroy(plans_context);
    return 0;
}

tsr_mesh *plans_mesh(const char *text)
{
    tsr_mesh *mesh = NULL;
    assert_int_equal(tsr_mesh_parse(NULL, plans_context, text, &mesh), TSR_OK);
    return mesh;
}

tsr_parallel_plan *plans_make(size_t count, const tsr_parallel_rule *rules, const tsr_parallel_plan_options *options)
{
    tsr_parallel_plan *plan = NULL;
    const tsr_status status = tsr_parallel_plan_create(plans_context, count, rules, options, &plan);
    if (status != TSR_OK)
        print_message("%s\n", tsr_status_message());
    assert_int_equal(status, TSR_OK);
    return plan;
}

void plans_expect(tsr_status status, tsr_status wanted, const char *part)
{
    assert_int_equal(status, wanted);
    if (!strstr(tsr_status_message(), part))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), part);
}

tsr_status plans_ask(const tsr_parallel_plan *plan, const char *on, const char *name, int ndim, int64_t rows,
                     int64_t columns)
{
    tsr_layout *layout = NULL;
    tsr_mesh *const mesh = plans_mesh(on);
    const int64_t shape[] = {rows, columns};
    const tsr_status status = tsr_parallel_plan_layout(plan, name, mesh, ndim, shape, TSR_F32, &layout);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

tsr_parallel_plan_options plans_heads(int64_t heads, int64_t kv_heads, int64_t head_dim)
{
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    options.heads = heads;
    options.kv_heads = kv_heads;
    options.head_dim = head_dim;
    options.group = "group";
    return options;
}

const tsr_parallel_rule plans_every_style[PLANS_STYLES] = {
    {"colwise", "colwise"},
    {"colwise_gather_output", "colwise_gather_output"},
    {"colwise_rep", "colwise_rep"},
    {"rowwise", "rowwise"},
    {"rowwise_split_input", "rowwise_split_input"},
    {"rowwise_rep", "rowwise_rep"},
    {"packed_colwise", "packed_colwise"},
    {"packed_rowwise", "packed_rowwise"},
    {"embedding_rowwise", "embedding_rowwise"},
    {"embedding_colwise", "embedding_colwise"},
    {"sequence_parallel", "sequence_parallel"},
    {"replicate", "replicate"},
    {"replicated_with_grad_allreduce", "replicated_with_grad_allreduce"},
    {"all_reduce", "all_reduce"},
    {"mla_kv_a_proj", "mla_kv_a_proj"},
    {"local_params", "local_params"},
    {"moe_tp_experts", "moe_tp_experts"},
    {"moe_identity_expert", "moe_identity_expert"},
    {"grouped_gemm", "grouped_gemm"},
    {"ep_dispatch_experts", "ep_dispatch_experts"},
    {"placements", "S(1;balanced)"},
    {"sizes", "R,S(0;unit=2)"},
};
