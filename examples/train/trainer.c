#include "trainer.h"

#include "peak.h"
#include "random.h"
#include "step.h"
#include "weights.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_INPUTS = 3, MOST_INPUTS = 8 };

/* How many runs of a program make a step. */
typedef struct runs {
    train_program *program;
    int64_t count;
} runs;

/* Windows of the last part, of which no other has fewer. */
static int64_t least_windows(const train_plan *plan)
{
    return plan->micro_batches > 1 ? plan->batch / plan->micro_batches : plan->batch;
}

/* Finds the programs of a step, in their order: parts with one window more than the last, other
 * parts, and the last. */
static void find_runs(train_trainer *trainer, runs of[TRAIN_PARTS + 1])
{
    const train_plan *const plan = trainer->plan;
    const int64_t more = plan->micro_batches > 1 ? plan->batch % plan->micro_batches : 0;
    of[0] = (runs){&trainer->parts[0], more};
    of[1] = (runs){&trainer->parts[1], plan->micro_batches > 1 ? plan->micro_batches - 1 - more : 0};
    of[TRAIN_PARTS] = (runs){&trainer->step, 1};
}

static train_model model_of(const train_trainer *trainer, int64_t windows)
{
    const train_plan *const plan = trainer->plan;
    return (train_model){.config = plan->config,
                         .layouts = &trainer->layouts,
                         .batch = windows,
                         .length = plan->length,
                         .dtype = plan->dtype,
                         .dropout = plan->dropout,
                         .whole = plan->batch};
}

static train_update update_of(const train_trainer *trainer)
{
    const train_plan *const plan = trainer->plan;
    train_update update = {plan->optimizer, plan->clip, plan->keeps_gradients, plan->loss_scale > 0};
    if (plan->shards_states && trainer->layouts.dims[TRAIN_DP] >= 0)
        update.optimizer.shard_over = 1U << trainer->layouts.dims[TRAIN_DP];
    return update;
}

typedef enum kind { STEP, PART, VALIDATION } kind;

/* Compiles a program over so many windows. */
static tsr_status compile(const train_trainer *trainer, kind of, int64_t windows, train_program *out)
{
    tsr_program *p;
    train_model model = model_of(trainer, windows);
    const train_update update = update_of(trainer);
    TSR_TRY(tsr_program_create(tsr_comm_context(trainer->comm), &p));
    /* An error of the statement is the program's, which compiling tells. */
    if (of == STEP) {
        (void)train_state_step(&model, &update, p);
    } else if (of == PART) {
        (void)train_state_part(&model, &update, p);
    } else {
        model.whole = windows;
        (void)train_state_validation(&model, p);
    }
    const tsr_status status = tsr_compile(p, NULL, &out->executable);
    tsr_program_destroy(p);
    out->windows = windows;
    return status;
}

static tsr_status compile_all(train_trainer *trainer, bool validates)
{
    runs of[TRAIN_PARTS + 1];
    const train_plan *const plan = trainer->plan;
    const int64_t least = least_windows(plan);
    find_runs(trainer, of);
    TSR_TRY(compile(trainer, STEP, least, &trainer->step));
    for (int i = 0; i < TRAIN_PARTS; i++)
        if (of[i].count > 0)
            TSR_TRY(compile(trainer, PART, i == 0 ? least + 1 : least, &trainer->parts[i]));
    /* Batches of the validation are cut, too, where all parts are as long. */
    return validates ? compile(trainer, VALIDATION, plan->batch % least ? plan->batch : least, &trainer->validation)
                     : TSR_OK;
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

/* True of a state that has the terms of a step's earlier parts. */
static bool has_terms(const char *name)
{
    const size_t length = strlen(name), of_end = strlen(TRAIN_TERMS);
    return length > of_end && strcmp(name + length - of_end, TRAIN_TERMS) == 0;
}

/* Makes what the program of a step asks for: a weight as it begins, or a state, of zeros. */
static tsr_status make_tensors(train_trainer *trainer, bool terms)
{
    tsr_executable *const x = trainer->step.executable;
    for (size_t i = 0; i < tsr_executable_binding_count(x); i++) {
        tsr_executable_binding wanted;
        TSR_TRY(tsr_executable_binding_at(x, i, &wanted));
        if (has_terms(wanted.name) != terms)
            continue;
        TSR_TRY(train_weights_make(trainer->plan->checkpoint, trainer->plan->seed, wanted.name, wanted.layout,
                                   &trainer->tensors[trainer->all]));
        trainer->names[trainer->all++] = wanted.name;
    }
    return TSR_OK;
}

static tsr_status make_all(train_trainer *trainer)
{
    const size_t room = tsr_executable_binding_count(trainer->step.executable) + 1;
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
    TSR_TRY(prepare(trainer, &trainer->step));
    for (int i = 0; i < TRAIN_PARTS; i++)
        TSR_TRY(prepare(trainer, &trainer->parts[i]));
    TSR_TRY(prepare(trainer, &trainer->validation));
    /* One program runs at a time. */
    return tsr_comm_alloc(trainer->comm, trainer->bytes, &trainer->workspace);
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
    runs of[TRAIN_PARTS + 1];
    tsr_executable_figures figures;
    int64_t sums[] = {0, 0};
    find_runs(trainer, of);
    for (int i = 0; i <= TRAIN_PARTS; i++) {
        if (of[i].count == 0)
            continue;
        TSR_TRY(tsr_executable_figures_of(of[i].program->executable, &figures));
        sums[0] += of[i].count * figures.bytes_received;
        sums[1] += of[i].count * figures.flops;
        trainer->exchanges += of[i].count * count_exchanges(of[i].program->executable);
    }
    /* The figures of the step's last program: it has all weights and states. */
    trainer->most_bytes = (int64_t)(figures.peak_bytes - figures.workspace_bytes + trainer->bytes);
    TSR_TRY(tsr_comm_all_reduce(trainer->comm, sums, sums, 2, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    trainer->bytes_received = sums[0];
    trainer->flops = sums[1];
    return tsr_comm_all_reduce(trainer->comm, &trainer->most_bytes, &trainer->most_bytes, 1, TSR_I64, TSR_MAX,
                               tsr_device_host(), NULL);
}

static tsr_status fill(train_trainer *trainer, bool validates)
{
    const train_plan *const plan = trainer->plan;
    if (plan->micro_batches > plan->batch)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--micro-batches %lld: a step has %lld windows",
                              (long long)plan->micro_batches, (long long)plan->batch);
    trainer->scale = (tsr_loss_scale){plan->loss_scale, 0};
    TSR_TRY(train_layouts_init(&trainer->layouts, plan->config, trainer->comm, NULL, plan->mesh));
    TSR_TRY(compile_all(trainer, validates));
    TSR_TRY(make_all(trainer));
    TSR_TRY(prepare_all(trainer));
    TSR_TRY(make_outputs(trainer));
    TSR_TRY(count(trainer));
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
        for (size_t i = 0; i < tsr_executable_output_count(trainer->step.executable); i++)
            tsr_dtensor_destroy(trainer->outputs[i]);
    free(trainer->tensors);
    free(trainer->names);
    free(trainer->outputs);
    if (trainer->workspace)
        tsr_comm_free(trainer->comm, trainer->workspace, trainer->bytes);
    finish(&trainer->step);
    for (int i = 0; i < TRAIN_PARTS; i++)
        finish(&trainer->parts[i]);
    finish(&trainer->validation);
    train_layouts_finish(&trainer->layouts);
    free(trainer);
}

const char *train_trainer_name(const train_trainer *trainer, size_t index)
{
    return index < trainer->count ? trainer->names[index] : NULL;
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
    for (size_t i = 0; i < tsr_executable_output_count(trainer->step.executable); i++)
        if (strcmp(tsr_executable_output_name(trainer->step.executable, i), name) == 0)
            return tsr_dtensor_to_local(trainer->outputs[i]).data;
    return NULL;
}

/* Runs all parts of a step. */
static tsr_status run_all(train_trainer *trainer, const train_batches *batches, int64_t step, numbers *n,
                          const tsr_tensor *outputs)
{
    runs of[TRAIN_PARTS + 1];
    int64_t begin = 0, part = 0;
    find_runs(trainer, of);
    for (size_t i = trainer->count; i < trainer->all; i++)
        TSR_TRY(tsr_dtensor_fill(trainer->tensors[i], 0, NULL));
    for (int i = 0; i <= TRAIN_PARTS; i++)
        for (int64_t k = 0; k < of[i].count; k++) {
            TSR_TRY(load_batch(of[i].program, batches, step, begin));
            TSR_TRY(set_key(trainer, of[i].program, step, part++));
            TSR_TRY(run(trainer, of[i].program, n, i == TRAIN_PARTS ? outputs : NULL));
            begin += of[i].program->windows;
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
    const size_t count = tsr_executable_output_count(trainer->step.executable);
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
    const train_program *const program = &trainer->validation;
    const int64_t parts = batches->batch / program->windows;
    const tsr_tensor output = tsr_tensor_contiguous(&one, TSR_F64, 0, NULL);
    for (int64_t i = 0; i < count * parts; i++) {
        TSR_TRY(load_batch(program, batches, i / parts, i % parts * program->windows));
        TSR_TRY(run(trainer, program, NULL, &output));
        sum += one;
    }
    *loss = sum / (double)(count * parts);
    return TSR_OK;
}
