#include "model.h"

#include "statement.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* States the model, and compiles it. */
static tsr_status compile(llama_model *model)
{
    tsr_program *program;
    TSR_TRY(tsr_program_create(tsr_comm_context(model->comm), &program));
    /* An error of the statement is the program's, which compiling tells. */
    (void)llama_state(&model->layouts, model->capacity, program);
    const tsr_status status = tsr_compile(program, NULL, &model->executable);
    tsr_program_destroy(program);
    return status;
}

/* Loads a weight, and binds it with its scales. */
static tsr_status load_weight(llama_model *model, const llama_source *source, const tsr_executable_binding *wanted)
{
    char name[128];
    tsr_dtensor *tensor, *scales;
    TSR_TRY(llama_weights_load(source, wanted->name, wanted->layout, &model->loaded, &tensor, &scales));
    tsr_status status = tsr_executable_bind(model->executable, wanted->name, tensor);
    if (scales && status == TSR_OK) {
        llama_weights_scales(wanted->name, name, sizeof name);
        status = tsr_executable_bind(model->executable, name, scales);
    }
    tsr_dtensor_destroy(tensor);
    tsr_dtensor_destroy(scales);
    return status;
}

static tsr_status make_cache(llama_model *model, const tsr_executable_binding *wanted)
{
    tsr_dtensor *cache;
    TSR_TRY(tsr_dtensor_create(wanted->layout, tsr_device_host(), &cache));
    const tsr_status status = tsr_executable_bind(model->executable, wanted->name, cache);
    tsr_dtensor_destroy(cache);
    return status;
}

/* Loads what the program asks for. */
static tsr_status load(llama_model *model, const llama_source *source)
{
    for (size_t i = 0; i < tsr_executable_binding_count(model->executable); i++) {
        tsr_executable_binding wanted;
        TSR_TRY(tsr_executable_binding_at(model->executable, i, &wanted));
        if (wanted.is_state)
            TSR_TRY(make_cache(model, &wanted));
        else if (!llama_weights_are_scales(wanted.name))
            TSR_TRY(load_weight(model, source, &wanted));
    }
    return TSR_OK;
}

/* Adds a parameter of the kind of layer that a model may lack, under the first layer's name. */
static void add_absent(tsr_parallel_parameter *all, size_t *count, const char *name, int64_t experts, int64_t out,
                       int64_t in)
{
    tsr_parallel_parameter *const p = &all[(*count)++];
    *p = (tsr_parallel_parameter){name, TSR_F32, experts > 0 ? 3 : 2, {0}};
    const int64_t shape[] = {experts, out, in};
    memcpy(p->shape, shape + (experts == 0), (size_t)p->ndim * sizeof shape[0]);
}

enum { ABSENT = 5 };

/* Adds what dense layers and layers of experts have, for a kind of models that may have both: a
 * plan of transformers is one for all of them, also where all layers of this one are alike. */
static void add_both_kinds(const llama_config *config, tsr_parallel_parameter *all, size_t *count)
{
    const int64_t hidden = config->hidden_size, wide = config->intermediate_size;
    const int64_t experts = config->mixture.experts, inner = config->mixture.size;
    if (!config->mixture.mixed)
        return;
    add_absent(all, count, "model.layers.0.mlp.gate_proj.weight", 0, wide, hidden);
    add_absent(all, count, "model.layers.0.mlp.up_proj.weight", 0, wide, hidden);
    add_absent(all, count, "model.layers.0.mlp.down_proj.weight", 0, hidden, wide);
    add_absent(all, count, "model.layers.0.mlp.experts.gate_up_proj", experts, 2 * inner, hidden);
    add_absent(all, count, "model.layers.0.mlp.experts.down_proj", experts, hidden, inner);
}

/* Checks the plan against the parameters that the program has, before any is loaded. */
static tsr_status check_plan(const llama_model *model)
{
    size_t count = 0;
    const size_t most = tsr_executable_binding_count(model->executable);
    tsr_parallel_parameter *const all = calloc(most + ABSENT, sizeof *all);
    if (!all)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the names of %zu parameters", most);
    for (size_t i = 0; i < most; i++) {
        tsr_executable_binding b;
        if (tsr_executable_binding_at(model->executable, i, &b) != TSR_OK || b.is_state)
            continue;
        tsr_parallel_parameter *const p = &all[count++];
        *p = (tsr_parallel_parameter){b.name, tsr_layout_dtype(b.layout), tsr_layout_ndim(b.layout), {0}};
        memcpy(p->shape, tsr_layout_shape(b.layout), (size_t)p->ndim * sizeof p->shape[0]);
    }
    add_both_kinds(model->config, all, &count);
    const tsr_status status = tsr_parallel_plan_check(model->layouts.plan, model->layouts.ranks, count, all, NULL);
    free(all);
    return status;
}

static tsr_status fill(llama_model *model, const llama_source *source, const tsr_parallel_rules *plan)
{
    const size_t capacity = (size_t)model->capacity;
    TSR_TRY(
        llama_layouts_init(&model->layouts, model->config, llama_weights_dtype(source), source->is_q8, model->comm));
    if (plan)
        TSR_TRY(llama_layouts_follow(&model->layouts, plan));
    TSR_TRY(compile(model));
    if (plan)
        TSR_TRY(check_plan(model));
    TSR_TRY(load(model, source));
    TSR_TRY(tsr_executable_prepare(model->executable, model->comm));
    model->positions = calloc(capacity, sizeof *model->positions);
    model->wanted = calloc(capacity, sizeof *model->wanted);
    if (!model->positions || !model->wanted)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu positions", capacity);
    model->workspace_bytes = tsr_executable_workspace_bytes(model->executable);
    return tsr_comm_alloc(model->comm, model->workspace_bytes, &model->workspace);
}

tsr_status llama_model_create(tsr_comm *comm, const llama_config *config, const llama_source *source,
                              const tsr_parallel_rules *plan, int64_t capacity, llama_model **out)
{
    llama_model *const model = calloc(1, sizeof *model);
    if (!model)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a model");
    model->comm = comm;
    model->config = config;
    model->capacity = capacity;
    const tsr_status status = fill(model, source, plan);
    if (status == TSR_OK)
        *out = model;
    else
        llama_model_destroy(model);
    return status;
}

void llama_model_destroy(llama_model *model)
{
    if (!model)
        return;
    tsr_executable_destroy(model->executable);
    if (model->workspace)
        tsr_comm_free(model->comm, model->workspace, model->workspace_bytes);
    llama_layouts_finish(&model->layouts);
    free(model->positions);
    free(model->wanted);
    free(model->logits);
    free(model);
}

/* Makes room for logits. */
static tsr_status keep_room(llama_model *model, int64_t logit_rows)
{
    if (model->logit_rows == logit_rows)
        return TSR_OK;
    free(model->logits);
    model->logits = malloc((size_t)(logit_rows * model->config->vocab_size) * sizeof(float));
    model->logit_rows = model->logits ? logit_rows : 0;
    return model->logits
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_MEMORY, "no memory for the logits of %lld tokens", (long long)logit_rows);
}

tsr_status llama_model_run(void *of, const int64_t *tokens, int64_t rows, int64_t first, int64_t logit_rows,
                           tsr_tensor *logits)
{
    llama_model *const model = of;
    tsr_executable *const x = model->executable;
    const int64_t shape[] = {logit_rows, model->config->vocab_size};
    TSR_TRY(keep_room(model, logit_rows));
    TSR_TRY(tsr_executable_set_length(x, "tokens", rows));
    TSR_TRY(tsr_executable_set_length(x, "wanted", logit_rows));
    TSR_TRY(tsr_executable_set_length(x, "total", first + rows));
    for (int64_t i = 0; i < rows; i++)
        model->positions[i] = first + i;
    for (int64_t i = 0; i < logit_rows; i++)
        model->wanted[i] = rows - logit_rows + i;
    const tsr_tensor inputs[] = {tsr_tensor_contiguous((void *)tokens, TSR_I64, 1, &rows),
                                 tsr_tensor_contiguous(model->positions, TSR_I64, 1, &rows),
                                 tsr_tensor_contiguous(&first, TSR_I64, 0, NULL),
                                 tsr_tensor_contiguous(model->wanted, TSR_I64, 1, &logit_rows)};
    const tsr_tensor output = tsr_tensor_contiguous(model->logits, TSR_F32, 2, shape);
    TSR_TRY(tsr_executable_run(x, model->comm, inputs, &output, model->workspace, model->workspace_bytes, NULL));
    *logits = output;
    return TSR_OK;
}

int64_t llama_model_bytes_received(const llama_model *model)
{
    tsr_executable_figures figures;
    return tsr_executable_figures_of(model->executable, &figures) == TSR_OK ? figures.bytes_received : 0;
}
