#include "model.h"

#include <tessera/losses.h>
#include <tessera/program_ops.h>
#include <tessera/random.h>
#include <tessera/sys/status.h>
#include <tessera/values.h>

/* Added to the root of Adagrad's sums. */
#define EPSILON 1e-10

static const char *const names[MODEL_WEIGHTS] = {"layer.0", "layer.1"}, *const sum_names[] = {"sums.0", "sums.1"};

/* Weights, once for each block. Ranks have those of their own blocks, and so the gradient of each
 * block is computed by itself. The backward gathers these, and adds them in the order of blocks:
 * the sum does not depend on the number of ranks. */
static tsr_value repeat_for_blocks(tsr_program *p, tsr_value weights)
{
    const int64_t *const shape = tsr_layout_shape(tsr_value_layout(p, weights));
    const int64_t repeated[] = {BLOCKS, shape[0], shape[1]};
    return tsr_op_redistribute(p, tsr_op_expand(p, weights, 3, repeated), "S(0)");
}

/* A layer: of x (block, node, member, feature), in which member 0 is the node, the weights times
 * the node's features and the mean of the others', concatenated. */
static tsr_value layer(tsr_program *p, tsr_value x, tsr_value weights)
{
    const int64_t members[] = {2};
    const tsr_value own = tsr_op_squeeze(p, tsr_op_narrow(p, x, 2, 0, 1), 1, members);
    const tsr_value others = tsr_op_mean(p, tsr_op_narrow(p, x, 2, 1, FANOUT), 1, members, 0);
    const tsr_value both[] = {own, others};
    const tsr_value operands[] = {tsr_op_concat(p, 2, both, 2), repeat_for_blocks(p, weights)};
    return tsr_op_einsum(p, "bni,boi->bno", 2, operands);
}

static tsr_value logits_of(tsr_program *p, tsr_value rows, const tsr_value *weights)
{
    const int64_t trees[] = {BLOCKS, BLOCK_NODES, MEMBERS, HIDDEN};
    const tsr_value h = tsr_op_relu(p, layer(p, rows, weights[0]));
    return layer(p, tsr_op_reshape(p, h, 4, trees), weights[1]);
}

/* How many nodes have their largest logit at their target. */
static tsr_value count_right(tsr_program *p, tsr_value logits, tsr_value targets)
{
    const tsr_value right = tsr_op_eq(p, tsr_op_argmax(p, logits, 2), targets);
    return tsr_op_all_reduce(p, tsr_op_sum(p, tsr_op_cast(p, right, TSR_I64), 0, NULL, 0), 0);
}

/* Adagrad: each weight's own sum of squared gradients makes its steps smaller. */
static void change(tsr_program *p, tsr_value weights, tsr_value sums, tsr_value gradient, double rate)
{
    const tsr_value sum = tsr_op_add(p, sums, tsr_op_square(p, gradient));
    const tsr_value epsilon = tsr_constant(p, EPSILON, tsr_value_layout(p, sum));
    const tsr_value step = tsr_op_div(p, gradient, tsr_op_add(p, tsr_op_sqrt(p, sum), epsilon));
    tsr_op_store(p, sums, sum, TSR_NONE);
    tsr_op_store(p, weights, tsr_op_sub(p, weights, tsr_op_scale(p, step, rate)), TSR_NONE);
}

/* What both programs begin with, and give. */
typedef struct recorded {
    tsr_value rows, logits, targets;
} recorded;

static recorded record_forward(tsr_program *p, const tsr_mesh *mesh, const tsr_value *weights)
{
    const int64_t rows[] = {BLOCKS, (int64_t)BLOCK_NODES * MEMBERS, MEMBERS, WIDTH}, targets[] = {BLOCKS, BLOCK_NODES};
    tsr_cross_entropy_options each = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    recorded r = {.rows = tsr_input(p, "rows", mesh, TSR_F32, 4, rows, "S(0)"),
                  .targets = tsr_input(p, "targets", mesh, TSR_I64, 2, targets, "S(0)")};
    each.reduction = TSR_LOSS_NONE;
    each.ignore_index = -1;
    r.logits = logits_of(p, r.rows, weights);
    tsr_output(p, "losses", tsr_op_cross_entropy(p, r.logits, r.targets, &each), NULL);
    tsr_output(p, "right", count_right(p, r.logits, r.targets), NULL);
    return r;
}

static void record_test(tsr_program *p, const tsr_mesh *mesh, const model *m)
{
    tsr_value weights[MODEL_WEIGHTS];
    for (int i = 0; i < MODEL_WEIGHTS; i++)
        weights[i] = tsr_parameter(p, names[i], tsr_dtensor_layout(m->weights[i]));
    record_forward(p, mesh, weights);
}

static void record_train(tsr_program *p, const tsr_mesh *mesh, const model *m, double rate)
{
    tsr_value of[MODEL_WEIGHTS + 1], sums[MODEL_WEIGHTS], gradients[MODEL_WEIGHTS + 1];
    tsr_cross_entropy_options all = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    for (int i = 0; i < MODEL_WEIGHTS; i++) {
        of[i] = tsr_state(p, names[i], tsr_dtensor_layout(m->weights[i]));
        sums[i] = tsr_state(p, sum_names[i], tsr_dtensor_layout(m->sums[i]));
    }
    const recorded r = record_forward(p, mesh, of);
    all.reduction = TSR_LOSS_SUM;
    all.ignore_index = -1;
    const tsr_value loss = tsr_op_cross_entropy(p, r.logits, r.targets, &all);
    of[MODEL_WEIGHTS] = r.rows;
    tsr_gradients(p, tsr_op_scale(p, loss, 1.0 / BATCH_NODES), MODEL_WEIGHTS + 1, of, gradients);
    tsr_output(p, "d_rows", gradients[MODEL_WEIGHTS], NULL);
    for (int i = 0; i < MODEL_WEIGHTS; i++)
        change(p, of[i], sums[i], gradients[i], rate);
}

/* Weights of (outputs, inputs) and their sums. */
static tsr_status make_weights(const tsr_mesh *mesh, int number, int64_t outputs, int64_t inputs, uint64_t seed,
                               model *m)
{
    const int64_t shape[] = {outputs, inputs};
    const tsr_random_key key = tsr_random_key_fold_in(tsr_random_key_threefry(seed), (uint64_t)number);
    tsr_layout *layout;
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, shape, TSR_F32, &layout));
    tsr_status status = tsr_xavier_uniform(layout, &key, 1, inputs, outputs, &m->weights[number]);
    if (status == TSR_OK)
        status = tsr_dtensor_create(layout, tsr_device_host(), &m->sums[number]);
    if (status == TSR_OK)
        status = tsr_dtensor_fill(m->sums[number], 0, NULL);
    tsr_layout_destroy(layout);
    return status;
}

/* Compiles what was recorded, binds what it asks for, and prepares it. Frees the program. */
static tsr_status make_executable(tsr_program *p, model *m, tsr_executable **out)
{
    const tsr_status status = tsr_compile(p, NULL, out);
    tsr_program_destroy(p);
    TSR_TRY(status);
    for (int i = 0; i < MODEL_WEIGHTS; i++) {
        TSR_TRY(tsr_executable_bind(*out, names[i], m->weights[i]));
        if (out == &m->train)
            TSR_TRY(tsr_executable_bind(*out, sum_names[i], m->sums[i]));
    }
    TSR_TRY(tsr_executable_prepare(*out, m->comm));
    const size_t bytes = tsr_executable_workspace_bytes(*out);
    m->workspace_bytes = bytes > m->workspace_bytes ? bytes : m->workspace_bytes;
    return TSR_OK;
}

tsr_status model_create(const tsr_mesh *mesh, int64_t classes, uint64_t seed, double rate, model *out)
{
    tsr_program *p;
    out->comm = tsr_mesh_comm(mesh);
    TSR_TRY(make_weights(mesh, 0, HIDDEN, (int64_t)2 * WIDTH, seed, out));
    TSR_TRY(make_weights(mesh, 1, classes, (int64_t)2 * HIDDEN, seed, out));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    record_train(p, mesh, out, rate); /* an error of recording is the program's, which compiling tells */
    TSR_TRY(make_executable(p, out, &out->train));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    record_test(p, mesh, out);
    TSR_TRY(make_executable(p, out, &out->test));
    return tsr_comm_alloc(out->comm, out->workspace_bytes, &out->workspace);
}

void model_destroy(model *m)
{
    if (m->workspace)
        tsr_comm_free(m->comm, m->workspace, m->workspace_bytes);
    tsr_executable_destroy(m->test);
    tsr_executable_destroy(m->train);
    for (int i = 0; i < MODEL_WEIGHTS; i++) {
        tsr_dtensor_destroy(m->sums[i]);
        tsr_dtensor_destroy(m->weights[i]);
    }
}

static tsr_status run_on(model *m, tsr_executable *executable, const model_run *run)
{
    const tsr_tensor inputs[] = {run->rows, run->targets}, outputs[] = {run->losses, run->right, run->d_rows};
    return tsr_executable_run(executable, m->comm, inputs, outputs, m->workspace, m->workspace_bytes, NULL);
}

tsr_status model_train(model *m, const model_run *run)
{
    return run_on(m, m->train, run);
}

tsr_status model_test(model *m, const model_run *run)
{
    return run_on(m, m->test, run);
}
