#include "trainer.h"

#include "peak.h"
#include "random.h"
#include "weights.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_INPUTS = 3, MOST_INPUTS = 8 };

static tsr_status compile_all(train_trainer *trainer, bool validates)
{
    const train_plan *const plan = trainer->plan;
    for (int i = 0; i < TRAIN_KINDS; i++)
        if (i == TRAIN_VALIDATION ? validates : train_plan_runs(plan, (train_kind)i) > 0)
            TSR_TRY(train_plan_compile(plan, &trainer->layouts, &trainer->shapes, tsr_comm_context(trainer->comm),
                                       (train_kind)i, NULL, &trainer->programs[i].executable));
    trainer->step = trainer->programs[TRAIN_STEP].executable;
    return TSR_OK;
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

/* Makes what the program of a step asks for: a weight as it begins, or a state, of zeros. */
static tsr_status make_tensors(train_trainer *trainer, bool terms)
{
    tsr_executable *const x = trainer->step;
    for (size_t i = 0; i < tsr_executable_binding_count(x); i++) {
        tsr_executable_binding wanted;
        TSR_TRY(tsr_executable_binding_at(x, i, &wanted));
        if (train_has_terms(wanted.name) != terms)
            continue;
        TSR_TRY(train_weights_make(trainer->plan->checkpoint, trainer->plan->seed, wanted.name, wanted.layout,
                                   train_shapes_find(&trainer->shapes, wanted.name, wanted.layout),
                                   &trainer->tensors[trainer->all]));
        trainer->names[trainer->all++] = wanted.name;
    }
    return TSR_OK;
}

static tsr_status make_all(train_trainer *trainer)
{
    const size_t room = tsr_executable_binding_count(trainer->step) + 1;
    trainer->tensors = calloc(room, sizeof(tsr_dtensor *));
    trainer->names = calloc(room, sizeof(char *));
    if (!trainer->tensors || !trainer->names)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu weights and states", room - 1);
    TSR_TRY(make_tensors(trainer, false));
    trainer->count = trainer->all;
    return make_tensors(trainer, true);
}

tsr_status train_trainer_bind(const train_trainer *trainer, tsr_executable *executable)
{
    for (size_t k = 0; k < tsr_executable_binding_count(executable); k++) {
        tsr_executable_binding wanted;
        TSR_TRY(tsr_executable_binding_at(executable, k, &wanted));
        for (size_t i = 0; i < trainer->all; i++)
            if (strcmp(trainer->names[i], wanted.name) == 0)
                TSR_TRY(tsr_executable_bind(executable, wanted.name, trainer->tensors[i]));
    }
    return TSR_OK;
}

/* Gives a program its tensors, and compares the ranks' programs. */
static tsr_status prepare(train_trainer *trainer, train_program *program)
{
    if (!program->executable)
        return TSR_OK;
    TSR_TRY(train_trainer_bind(trainer, program->executable));
    TSR_TRY(tsr_executable_prepare(program->executable, trainer->comm));
    const size_t bytes = tsr_executable_workspace_bytes(program->executable);
    trainer->bytes = bytes > trainer->bytes ? bytes : trainer->bytes;
    return make_inputs(program);
}

static tsr_status prepare_all(train_trainer *trainer)
{
    for (int i = 0; i < TRAIN_KINDS; i++)
        TSR_TRY(prepare(trainer, &trainer->programs[i]));
    /* One program runs at a time. */
    return tsr_comm_alloc(trainer->comm, trainer->bytes, &trainer->workspace);
}

static tsr_status make_outputs(train_trainer *trainer)
{
    const size_t outputs = tsr_executable_output_count(trainer->step);
    trainer->outputs = calloc(outputs, sizeof(tsr_dtensor *));
    if (!trainer->outputs)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu outputs", outputs);
    for (size_t i = 0; i < outputs; i++)
        TSR_TRY(tsr_dtensor_create(tsr_executable_output_layout(trainer->step, i), tsr_device_host(),
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
    int64_t sums[] = {0, 0};
    for (int i = 0; i <= TRAIN_STEP; i++) {
        tsr_executable_figures figures;
        const tsr_executable *const x = trainer->programs[i].executable;
        const int64_t runs = train_plan_runs(trainer->plan, (train_kind)i);
        if (runs == 0)
            continue;
        TSR_TRY(tsr_executable_figures_of(x, &figures));
        sums[0] += runs * figures.bytes_received;
        sums[1] += runs * figures.flops;
        trainer->exchanges += runs * count_exchanges(x);
    }
    TSR_TRY(tsr_comm_all_reduce(trainer->comm, sums, sums, 2, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    trainer->bytes_received = sums[0];
    trainer->flops = sums[1];
    return TSR_OK;
}

/* Finds what all programs take. */
static tsr_status count_memory(train_trainer *trainer)
{
    tsr_executable *programs[TRAIN_KINDS];
    for (int i = 0; i < TRAIN_KINDS; i++)
        programs[i] = trainer->programs[i].executable;
    TSR_TRY(train_memory_find(programs, tsr_comm_rank(trainer->comm), &trainer->memory));
    trainer->most_bytes = trainer->memory.total;
    return tsr_comm_all_reduce(trainer->comm, &trainer->most_bytes, &trainer->most_bytes, 1, TSR_I64, TSR_MAX,
                               tsr_device_host(), NULL);
}

static tsr_status fill(train_trainer *trainer, bool validates)
{
    const train_plan *const plan = trainer->plan;
    trainer->scale = (tsr_loss_scale){plan->loss_scale, 0};
    TSR_TRY(train_plan_lay(plan, trainer->comm, NULL, &trainer->layouts));
    TSR_TRY(compile_all(trainer, validates));
    TSR_TRY(make_all(trainer));
    TSR_TRY(prepare_all(trainer));
    TSR_TRY(make_outputs(trainer));
    TSR_TRY(count(trainer));
    TSR_TRY(count_memory(trainer));
    return plan->measures_peak ? train_peak(trainer->comm, trainer->layouts.mesh,
                                            plan->dtype == TSR_F64 ? TSR_F64 : TSR_F32, &trainer->peak)
                               : TSR_OK;
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

static void finish(train_program *program)
{
    for (size_t i = 0; i < BATCH_INPUTS && program->inputs; i++)
        tsr_dtensor_destroy(program->inputs[i]);
    free(program->inputs);
    tsr_executable_destroy(program->executable);
}

void train_trainer_destroy(train_trainer *trainer)
{
    if (!trainer)
        return;
    for (size_t i = 0; i < trainer->all; i++)
        tsr_dtensor_destroy(trainer->tensors[i]);
    if (trainer->outputs)
        for (size_t i = 0; i < tsr_executable_output_count(trainer->step); i++)
            tsr_dtensor_destroy(trainer->outputs[i]);
    free(trainer->tensors);
    free(trainer->names);
    free(trainer->outputs);
    if (trainer->workspace)
        tsr_comm_free(trainer->comm, trainer->workspace, trainer->bytes);
    for (int i = 0; i < TRAIN_KINDS; i++)
        finish(&trainer->programs[i]);
    train_layouts_finish(&trainer->layouts);
    train_shapes_finish(&trainer->shapes);
    free(trainer);
}

const char *train_trainer_name(const train_trainer *trainer, size_t index)
{
    return index < trainer->count ? trainer->names[index] : NULL;
}

size_t train_trainer_views(const train_trainer *trainer, tsr_checkpoint_view *out)
{
    size_t count = 0;
    for (size_t i = 0; i < trainer->count; i++) {
        const char *const name = trainer->names[i];
        const int64_t *const shape = train_shapes_find(&trainer->shapes, name, tsr_dtensor_layout(trainer->tensors[i]));
        if (shape)
            out[count++] = (tsr_checkpoint_view){name, 2, shape};
    }
    return count;
}

/* Writes this rank's rows and tokens of a batch, whose windows are those of the step from `row` on.
 * Both are cut in one piece. */
static tsr_status load_batch(const train_program *program, const train_batches *batches, int64_t step, int64_t begin)
{
    int64_t shape[TSR_MAX_DIMS], first[TSR_MAX_DIMS];
    int64_t *to[BATCH_INPUTS];
    for (size_t i = 0; i < BATCH_INPUTS; i++)
        to[i] = tsr_dtensor_to_local(program->inputs[i]).data;
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(program->inputs[0]), NULL, shape, first));
    for (int64_t row = 0; row < shape[0]; row++) {
        const int64_t at = train_batches_begin(batches, step, begin + first[0] + row) + first[1];
        for (int64_t i = 0; i < shape[1]; i++) {
            *to[0]++ = train_data_token(batches->data, at + i);
            *to[1]++ = train_data_token(batches->data, at + i + 1);
        }
    }
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(program->inputs[2]), NULL, shape, first));
    for (int64_t i = 0; i < shape[0]; i++)
        to[2][i] = first[0] + i;
    return TSR_OK;
}

/* Numbers that runs are given, under the names of inputs. */
typedef struct numbers {
    double rate, step, scale;
    float narrow_scale;
} numbers;

static tsr_tensor number_of(numbers *n, const char *name, tsr_dtype dtype)
{
    if (strcmp(name, "scale") == 0)
        return tsr_tensor_contiguous(dtype == TSR_F64 ? (void *)&n->scale : (void *)&n->narrow_scale, dtype, 0, NULL);
    return tsr_tensor_contiguous(strcmp(name, "rate") == 0 ? &n->rate : &n->step, TSR_F64, 0, NULL);
}

/* Gives a run of a program its own masks: those of the step and, of a step in parts, of the part.
 * */
static tsr_status set_key(const train_trainer *trainer, const train_program *program, int64_t step, int64_t part)
{
    const train_plan *const plan = trainer->plan;
    const tsr_random_key all = tsr_random_key_philox(llama_random_stream(plan->seed, TRAIN_DROPOUT_KEY), 0);
    tsr_random_key own = tsr_random_key_fold_in(all, (uint64_t)step);
    if (plan->micro_batches > 1)
        own = tsr_random_key_fold_in(own, (uint64_t)part);
    return plan->dropout > 0 ? tsr_executable_set_key(program->executable, TRAIN_DROPOUT_KEY, &own) : TSR_OK;
}

static tsr_status run(const train_trainer *trainer, const train_program *program, numbers *n, const tsr_tensor *outputs)
{
    tsr_tensor inputs[MOST_INPUTS];
    tsr_executable *const x = program->executable;
    for (size_t i = 0; i < tsr_executable_input_count(x); i++)
        inputs[i] = i < BATCH_INPUTS ? tsr_dtensor_to_local(program->inputs[i])
                                     : number_of(n, tsr_executable_input_name(x, i),
                                                 tsr_layout_dtype(tsr_executable_input_layout(x, i)));
    return tsr_executable_run(x, trainer->comm, inputs, outputs, trainer->workspace, trainer->bytes, NULL);
}

/* The memory of an output of a step. */
static const void *output_of(const train_trainer *trainer, const char *name)
{
    for (size_t i = 0; i < tsr_executable_output_count(trainer->step); i++)
        if (strcmp(tsr_executable_output_name(trainer->step, i), name) == 0)
            return tsr_dtensor_to_local(trainer->outputs[i]).data;
    return NULL;
}

/* Runs all parts of a step. */
static tsr_status run_all(train_trainer *trainer, const train_batches *batches, int64_t step, numbers *n,
                          const tsr_tensor *outputs)
{
    int64_t begin = 0, part = 0;
    for (size_t i = trainer->count; i < trainer->all; i++)
        TSR_TRY(tsr_dtensor_fill(trainer->tensors[i], 0, NULL));
    for (int i = 0; i <= TRAIN_STEP; i++) {
        const train_program *const program = &trainer->programs[i];
        for (int64_t left = train_plan_runs(trainer->plan, (train_kind)i); left > 0; left--) {
            TSR_TRY(load_batch(program, batches, step, begin));
            TSR_TRY(set_key(trainer, program, step, part++));
            TSR_TRY(run(trainer, program, n, i == TRAIN_STEP ? outputs : NULL));
            begin += train_plan_windows(trainer->plan, (train_kind)i);
        }
    }
    return TSR_OK;
}

/* What the last step tells. The loss scale follows from whether its gradients were finite. */
static tsr_status tell(train_trainer *trainer, train_told *out)
{
    const unsigned char *const finite = output_of(trainer, "finite");
    const double *const loss = output_of(trainer, "loss"), *const norm = output_of(trainer, "norm");
    const double *const router = output_of(trainer, "router_loss");
    *out = (train_told){*loss, *norm, trainer->scale.scale, finite && !*finite, router ? *router : NAN};
    trainer->skipped += out->is_skipped;
    return finite ? tsr_loss_scale_next(&trainer->scale, *finite, NULL) : TSR_OK;
}

tsr_status train_trainer_step(train_trainer *trainer, const train_batches *batches, int64_t step, double rate,
                              train_told *out)
{
    const size_t count = tsr_executable_output_count(trainer->step);
    const double scale = trainer->scale.scale;
    numbers n = {rate, (double)(step + 1 - trainer->skipped), scale, (float)scale};
    tsr_tensor *const outputs = calloc(count, sizeof *outputs);
    if (!outputs)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu outputs", count);
    for (size_t i = 0; i < count; i++)
        outputs[i] = tsr_dtensor_to_local(trainer->outputs[i]);
    const tsr_status status = run_all(trainer, batches, step, &n, outputs);
    free(outputs);
    return status == TSR_OK ? tell(trainer, out) : status;
}

tsr_status train_trainer_validate(train_trainer *trainer, const train_batches *batches, int64_t count, double *loss)
{
    double sum = 0, one = 0;
    const train_program *const program = &trainer->programs[TRAIN_VALIDATION];
    const int64_t windows = train_plan_windows(trainer->plan, TRAIN_VALIDATION), parts = batches->batch / windows;
    const tsr_tensor output = tsr_tensor_contiguous(&one, TSR_F64, 0, NULL);
    for (int64_t i = 0; i < count * parts; i++) {
        TSR_TRY(load_batch(program, batches, i / parts, i % parts * windows));
        TSR_TRY(run(trainer, program, NULL, &output));
        sum += one;
    }
    *loss = sum / (double)(count * parts);
    return TSR_OK;
}
