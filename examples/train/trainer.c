#include "trainer.h"

#include "peak.h"
#include "random.h"
#include "weights.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_INPUTS = 3, STEP_INPUTS = 5 };

static train_model model_of(const train_trainer *trainer)
{
    const train_plan *const plan = trainer->plan;
    return (train_model){plan->config, &trainer->layouts, plan->batch, plan->length, plan->dtype, plan->dropout};
}

static tsr_status compile(const train_trainer *trainer, bool trains, tsr_executable **out)
{
    tsr_program *p;
    const train_plan *const plan = trainer->plan;
    const train_model model = model_of(trainer);
    tsr_optimizer_options optimizer = plan->optimizer;
    if (plan->shards_states && trainer->layouts.dims[TRAIN_DP] >= 0)
        optimizer.shard_over = 1U << trainer->layouts.dims[TRAIN_DP];
    TSR_TRY(tsr_program_create(tsr_comm_context(trainer->comm), &p));
    /* An error of the statement is the program's, which compiling tells. */
    if (trains)
        (void)train_state_step(&model, &optimizer, plan->clip, plan->keeps_gradients, p);
    else
        (void)train_state_validation(&model, p);
    const tsr_status status = tsr_compile(p, NULL, out);
    tsr_program_destroy(p);
    return status;
}

/* Makes the tensors of a batch, in the layouts that the program asks for. */
static tsr_status make_inputs(train_program *program)
{
    program->inputs = calloc(BATCH_INPUTS, sizeof(tsr_dtensor *));
    if (!program->inputs)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a batch");
    for (size_t i = 0; i < BATCH_INPUTS; i++)
        TSR_TRY(tsr_dtensor_create(tsr_executable_input_layout(program->executable, i), tsr_device_host(),
                                   &program->inputs[i]));
    return TSR_OK;
}

/* Compares the ranks' programs, and makes room for runs. */
static tsr_status prepare(const train_trainer *trainer, train_program *program)
{
    TSR_TRY(tsr_executable_prepare(program->executable, trainer->comm));
    program->bytes = tsr_executable_workspace_bytes(program->executable);
    TSR_TRY(tsr_comm_alloc(trainer->comm, program->bytes, &program->workspace));
    return make_inputs(program);
}

/* Makes what the program asks for: a weight as it begins, or a state of the optimizer, of zeros. */
static tsr_status bind_all(train_trainer *trainer)
{
    tsr_executable *const x = trainer->step.executable;
    trainer->count = tsr_executable_binding_count(x);
    trainer->tensors = calloc(trainer->count + 1, sizeof(tsr_dtensor *));
    if (!trainer->tensors)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu weights and states", trainer->count);
    for (size_t i = 0; i < trainer->count; i++) {
        tsr_executable_binding wanted;
        TSR_TRY(tsr_executable_binding_at(x, i, &wanted));
        TSR_TRY(train_weights_make(trainer->plan->checkpoint, trainer->plan->seed, wanted.name, wanted.layout,
                                   &trainer->tensors[i]));
        TSR_TRY(tsr_executable_bind(x, wanted.name, trainer->tensors[i]));
    }
    return TSR_OK;
}

tsr_status train_trainer_bind(const train_trainer *trainer, tsr_executable *executable)
{
    for (size_t i = 0; i < trainer->count; i++) {
        const char *const name = train_trainer_name(trainer, i);
        for (size_t k = 0; k < tsr_executable_binding_count(executable); k++) {
            tsr_executable_binding wanted;
            TSR_TRY(tsr_executable_binding_at(executable, k, &wanted));
            if (strcmp(name, wanted.name) == 0)
                TSR_TRY(tsr_executable_bind(executable, name, trainer->tensors[i]));
        }
    }
    return TSR_OK;
}

static tsr_status make_outputs(train_trainer *trainer)
{
    const size_t outputs = tsr_executable_output_count(trainer->step.executable);
    trainer->outputs = calloc(outputs, sizeof(tsr_dtensor *));
    if (!trainer->outputs)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu outputs", outputs);
    for (size_t i = 0; i < outputs; i++)
        TSR_TRY(tsr_dtensor_create(tsr_executable_output_layout(trainer->step.executable, i), tsr_device_host(),
                                   &trainer->outputs[i]));
    return TSR_OK;
}

/* Moves that share an exchange are one. */
static int64_t count_exchanges(const tsr_executable *executable)
{
    int64_t count = 0;
    for (size_t i = 0; i < tsr_executable_step_count(executable); i++) {
        tsr_executable_step step;
        if (tsr_executable_step_at(executable, i, &step) == TSR_OK)
            count += step.bytes_received > 0 && !step.shares;
    }
    return count;
}

/* Adds up what a step costs all ranks. */
static tsr_status count(train_trainer *trainer)
{
    tsr_executable_figures figures;
    TSR_TRY(tsr_executable_figures_of(trainer->step.executable, &figures));
    int64_t sums[] = {figures.bytes_received, figures.flops};
    TSR_TRY(tsr_comm_all_reduce(trainer->comm, sums, sums, 2, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    trainer->bytes_received = sums[0];
    trainer->flops = sums[1];
    trainer->exchanges = count_exchanges(trainer->step.executable);
    trainer->most_bytes = (int64_t)figures.peak_bytes;
    return tsr_comm_all_reduce(trainer->comm, &trainer->most_bytes, &trainer->most_bytes, 1, TSR_I64, TSR_MAX,
                               tsr_device_host(), NULL);
}

static tsr_status fill(train_trainer *trainer, bool validates)
{
    TSR_TRY(train_layouts_init(&trainer->layouts, trainer->plan->config, trainer->comm, NULL, trainer->plan->mesh));
    TSR_TRY(compile(trainer, true, &trainer->step.executable));
    TSR_TRY(bind_all(trainer));
    TSR_TRY(prepare(trainer, &trainer->step));
    TSR_TRY(make_outputs(trainer));
    TSR_TRY(count(trainer));
    if (trainer->plan->measures_peak)
        TSR_TRY(train_peak(trainer->comm, trainer->layouts.mesh, trainer->plan->dtype == TSR_F64 ? TSR_F64 : TSR_F32,
                           &trainer->peak));
    if (!validates)
        return TSR_OK;
    TSR_TRY(compile(trainer, false, &trainer->validation.executable));
    TSR_TRY(train_trainer_bind(trainer, trainer->validation.executable));
    return prepare(trainer, &trainer->validation);
}

tsr_status train_trainer_create(tsr_comm *comm, const train_plan *plan, bool validates, train_trainer **out)
{
    train_trainer *const trainer = calloc(1, sizeof *trainer);
    if (!trainer)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a trainer");
    trainer->comm = comm;
    trainer->plan = plan;
    const tsr_status status = fill(trainer, validates);
    if (status == TSR_OK)
        *out = trainer;
    else
        train_trainer_destroy(trainer);
    return status;
}

static void finish(const train_trainer *trainer, train_program *program)
{
    for (size_t i = 0; i < BATCH_INPUTS && program->inputs; i++)
        tsr_dtensor_destroy(program->inputs[i]);
    free(program->inputs);
    if (program->workspace)
        tsr_comm_free(trainer->comm, program->workspace, program->bytes);
    tsr_executable_destroy(program->executable);
}

void train_trainer_destroy(train_trainer *trainer)
{
    if (!trainer)
        return;
    for (size_t i = 0; i < trainer->count && trainer->tensors; i++)
        tsr_dtensor_destroy(trainer->tensors[i]);
    if (trainer->outputs)
        for (size_t i = 0; i < tsr_executable_output_count(trainer->step.executable); i++)
            tsr_dtensor_destroy(trainer->outputs[i]);
    free(trainer->tensors);
    free(trainer->outputs);
    finish(trainer, &trainer->step);
    finish(trainer, &trainer->validation);
    train_layouts_finish(&trainer->layouts);
    free(trainer);
}

const char *train_trainer_name(const train_trainer *trainer, size_t index)
{
    tsr_executable_binding binding;
    return tsr_executable_binding_at(trainer->step.executable, index, &binding) == TSR_OK ? binding.name : NULL;
}

/* Writes this rank's rows and tokens of a batch. Both are cut in one piece. */
static tsr_status load_batch(const train_program *program, const train_batches *batches, int64_t step)
{
    int64_t shape[TSR_MAX_DIMS], first[TSR_MAX_DIMS];
    int64_t *to[BATCH_INPUTS];
    for (size_t i = 0; i < BATCH_INPUTS; i++)
        to[i] = tsr_dtensor_to_local(program->inputs[i]).data;
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(program->inputs[0]), NULL, shape, first));
    for (int64_t row = 0; row < shape[0]; row++) {
        const int64_t begin = train_batches_begin(batches, step, first[0] + row) + first[1];
        for (int64_t i = 0; i < shape[1]; i++) {
            *to[0]++ = train_data_token(batches->data, begin + i);
            *to[1]++ = train_data_token(batches->data, begin + i + 1);
        }
    }
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(program->inputs[2]), NULL, shape, first));
    for (int64_t i = 0; i < shape[0]; i++)
        to[2][i] = first[0] + i;
    return TSR_OK;
}

static tsr_status run(const train_trainer *trainer, const train_program *program, const tsr_tensor *inputs,
                      const tsr_tensor *outputs)
{
    return tsr_executable_run(program->executable, trainer->comm, inputs, outputs, program->workspace, program->bytes,
                              NULL);
}

/* Gives a step its own masks. */
static tsr_status set_key(const train_trainer *trainer, int64_t step)
{
    const train_plan *const plan = trainer->plan;
    const tsr_random_key all = tsr_random_key_philox(llama_random_stream(plan->seed, TRAIN_DROPOUT_KEY), 0);
    const tsr_random_key own = tsr_random_key_fold_in(all, (uint64_t)step);
    return plan->dropout > 0 ? tsr_executable_set_key(trainer->step.executable, TRAIN_DROPOUT_KEY, &own) : TSR_OK;
}

static double scalar_of(const tsr_dtensor *x)
{
    return *(const double *)tsr_dtensor_to_local(x).data;
}

tsr_status train_trainer_step(train_trainer *trainer, const train_batches *batches, int64_t step, double rate,
                              train_told *out)
{
    double number = (double)step + 1;
    TSR_TRY(set_key(trainer, step));
    const size_t count = tsr_executable_output_count(trainer->step.executable);
    tsr_tensor inputs[STEP_INPUTS], *const outputs = calloc(count, sizeof *outputs);
    if (!outputs)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu outputs", count);
    for (size_t i = 0; i < BATCH_INPUTS; i++)
        inputs[i] = tsr_dtensor_to_local(trainer->step.inputs[i]);
    inputs[BATCH_INPUTS] = tsr_tensor_contiguous(&rate, TSR_F64, 0, NULL);
    inputs[BATCH_INPUTS + 1] = tsr_tensor_contiguous(&number, TSR_F64, 0, NULL);
    for (size_t i = 0; i < count; i++)
        outputs[i] = tsr_dtensor_to_local(trainer->outputs[i]);
    tsr_status status = load_batch(&trainer->step, batches, step);
    if (status == TSR_OK)
        status = run(trainer, &trainer->step, inputs, outputs);
    free(outputs);
    if (status == TSR_OK)
        *out = (train_told){scalar_of(trainer->outputs[count - 2]), scalar_of(trainer->outputs[count - 1]),
                            trainer->plan->config->mixture.balance > 0 ? scalar_of(trainer->outputs[count - 3]) : NAN};
    return status;
}

tsr_status train_trainer_validate(train_trainer *trainer, const train_batches *batches, int64_t count, double *loss)
{
    double sum = 0, one = 0;
    tsr_tensor inputs[BATCH_INPUTS];
    const tsr_tensor output = tsr_tensor_contiguous(&one, TSR_F64, 0, NULL);
    for (size_t i = 0; i < BATCH_INPUTS; i++)
        inputs[i] = tsr_dtensor_to_local(trainer->validation.inputs[i]);
    for (int64_t i = 0; i < count; i++) {
        TSR_TRY(load_batch(&trainer->validation, batches, i));
        TSR_TRY(run(trainer, &trainer->validation, inputs, &output));
        sum += one;
    }
    *loss = sum / (double)count;
    return TSR_OK;
}
