/* The steps of a training: over an engine that overlaps, sums of gradients and gathers of weights
 * travel while products are computed; gathered weights are dropped; and placements alone decide
 * what a rank keeps. Nothing runs. */
#include "message_engine.h"
#include "step.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The weights of a layer fill some exchanges. */
enum {
    LAYERS = 3,
    HIDDEN = 256,
    INNER = 512,
    LAYER_BYTES = (4 * HIDDEN * HIDDEN + 3 * HIDDEN * INNER + 2 * HIDDEN) * 4
};

/* What is compiled. */
typedef struct request {
    const char *mesh;
    bool shards_states;
    bool is_part; /* of a step, not the last one */
    bool in_parts;
    int64_t layers, windows, length;
} request;

static tsr_status compile(const request *r, tsr_comm *comm, tsr_context *context, tsr_program **p, tsr_executable **x)
{
    char text[400];
    llama_config config;
    train_layouts layouts;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    train_update update = {TSR_ADAMW_INIT, INFINITY, false, false};
    snprintf(text, sizeof text,
             "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": %d, \"intermediate_size\": %d, "
             "\"num_hidden_layers\": %d, \"num_attention_heads\": 4, \"tie_word_embeddings\": true}",
             HIDDEN, INNER, (int)r->layers);
    TSR_TRY(llama_config_parse("config.json", text, strlen(text), &config));
    TSR_TRY(train_layouts_init(&layouts, &config, comm, context, r->mesh));
    const int64_t whole = r->in_parts ? 2 * r->windows : r->windows;
    const train_model model = {.config = &config,
                               .layouts = &layouts,
                               .batch = r->windows,
                               .length = r->length,
                               .dtype = TSR_F32,
                               .whole = whole};
    if (r->shards_states)
        update.optimizer.shard_over = 1U << layouts.dims[TRAIN_DP];
    options.rank = comm ? TSR_RANK_DEFAULT : 0;
    TSR_TRY(tsr_program_create(tsr_mesh_context(layouts.mesh), p));
    TSR_TRY(r->is_part ? train_state_part(&model, &update, *p) : train_state_step(&model, &update, *p));
    TSR_TRY(tsr_compile(*p, &options, x));
    train_layouts_finish(&layouts);
    return TSR_OK;
}

static bool is_sum(const tsr_executable_step *step)
{
    bool found = false;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(step->operand_layouts[0])); k++)
        found |= tsr_layout_placements(step->operand_layouts[0])[k].kind == TSR_PARTIAL;
    return found;
}

/* True if products are computed while a step is at work. */
static bool is_hidden(const tsr_executable *x, const tsr_executable_step *step)
{
    bool found = false;
    for (size_t i = step->first; i < step->last; i++) {
        tsr_executable_step other;
        assert_int_equal(tsr_executable_step_at(x, i, &other), TSR_OK);
        found |= other.flops > 0;
    }
    return found;
}

/* Exchanges of matrices, and how many are hidden. */
typedef struct tally {
    int sums, hidden_sums, gathers, hidden_gathers;
    int late; /* steps that read a sum before it is finished */
} tally;

static int count_late(const tsr_executable *x, const tsr_executable_step *move)
{
    int late = 0;
    for (size_t i = 0; i < move->last; i++) {
        tsr_executable_step other;
        assert_int_equal(tsr_executable_step_at(x, i, &other), TSR_OK);
        for (int k = 0; k < other.operand_count; k++)
            late += !other.is_view && other.operands[k] == move->results[0];
    }
    return late;
}

static tally count(const tsr_executable *x)
{
    tally t = {0};
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        if (strcmp(step.op, "move") != 0 || step.bytes_received == 0 || tsr_layout_ndim(step.result_layouts[0]) != 2)
            continue;
        const bool hidden = is_hidden(x, &step), sum = is_sum(&step);
        t.sums += sum;
        t.hidden_sums += sum && hidden;
        t.gathers += !sum;
        t.hidden_gathers += !sum && hidden;
        t.late += count_late(x, &step);
    }
    return t;
}

/* What rank 0 finds. */
typedef struct overlapped {
    request of;
    tally found;
} overlapped;

static tsr_status rank_main(tsr_comm *carrier, void *arg)
{
    overlapped *const o = arg;
    message_engine_tally calls = {0};
    tsr_comm *comm;
    tsr_program *p;
    tsr_executable *x;
    TSR_TRY(message_engine_create_own(carrier, NULL, &calls, MESSAGE_ENGINE_PLAIN, &comm));
    TSR_TRY(compile(&o->of, comm, NULL, &p, &x));
    if (tsr_comm_rank(comm) == 0)
        o->found = count(x);
    tsr_executable_destroy(x);
    tsr_program_destroy(p);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static tally find(request of, int ranks)
{
    overlapped o = {.of = of};
    if (tsr_threads_run(ranks, rank_main, &o, NULL) != TSR_OK)
        fail_msg("%s: %s", of.mesh, tsr_status_message());
    assert_int_equal(o.found.late, 0);
    return o.found;
}

/* Of the sums of all matrices only those of the last two exchanges have no product left: five
 * matrices of the first layer at most. */
static void sums_of_gradients_overlap_with_the_backward(void **state)
{
    (void)state;
    static const bool shards[] = {false, true};
    for (size_t i = 0; i < 2; i++)
        for (size_t in_parts = 0; in_parts < 2; in_parts++) {
            const tally t = find((request){"dp=2", shards[i], false, in_parts == 1, LAYERS, 8, 64}, 2);
            assert_int_equal(t.sums, 7 * LAYERS + 1);
            assert_in_range(t.hidden_sums, 7 * LAYERS + 1 - 5, 7 * LAYERS);
        }
}

/* Matrices are gathered once in the forward, the next layer's while a layer is computed, and once
 * more in the backward, each while those behind it are used. Before the first product are the
 * embedding's, the first layer's and one of the next layer; in the backward a sum may have the only
 * product there is at the begin of a layer. */
static void gathers_of_weights_overlap_with_products(void **state)
{
    (void)state;
    const tally t = find((request){"fsdp=2", false, false, false, LAYERS, 8, 64}, 2);
    assert_int_equal(t.sums, 7 * LAYERS + 1);
    assert_in_range(t.hidden_sums, 7 * LAYERS + 1 - 5, 7 * LAYERS);
    /* The embedding's table is used by two ops of the forward, and by one of the backward. */
    assert_in_range(t.gathers, 2 * 7 * LAYERS + 2, 2 * 7 * LAYERS + 3);
    assert_in_range(t.hidden_gathers, t.gathers - 9 - (LAYERS - 1), t.gathers - 8);
}

/* No gradient is summed in a part that is not the last one. */
static void parts_sum_nothing(void **state)
{
    (void)state;
    tally t = find((request){"dp=2", false, true, true, LAYERS, 8, 64}, 2);
    assert_int_equal(t.sums + t.gathers, 0);
    t = find((request){"fsdp=2", false, true, true, LAYERS, 8, 64}, 2);
    assert_int_equal(t.sums, 0);
}

static tsr_executable_figures figures_of(request of)
{
    tsr_context *context;
    tsr_program *p;
    tsr_executable *x;
    tsr_executable_figures f;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    if (compile(&of, NULL, context, &p, &x) != TSR_OK)
        fail_msg("%s: %s", of.mesh, tsr_status_message());
    assert_int_equal(tsr_executable_figures_of(x, &f), TSR_OK);
    tsr_executable_destroy(x);
    tsr_program_destroy(p);
    tsr_context_destroy(context);
    return f;
}

/* With one token a rank there are hardly activations: what a layer more needs in the workspace are
 * the rows of its gradients, and no gathered weight. */
static void gathered_weights_are_dropped(void **state)
{
    (void)state;
    const size_t few = figures_of((request){"fsdp=8", false, false, false, 4, 8, 1}).workspace_bytes;
    const size_t many = figures_of((request){"fsdp=8", false, false, false, 8, 8, 1}).workspace_bytes;
    assert_in_range(many - few, 0, 4 * (LAYER_BYTES / 8 + 64 * 1024));
    /* Two layers are there at one time, and the next exchange. */
    assert_in_range(few, LAYER_BYTES, 3 * LAYER_BYTES + (4 * LAYER_BYTES + 256 * HIDDEN * 4) / 8);
}

/* A part's gradients are added to those before it while the backward goes on, so that they need no
 * memory until its end. */
static void gradients_of_parts_are_dropped(void **state)
{
    (void)state;
    const size_t few = figures_of((request){"dp=2", false, true, true, 4, 2, 1}).workspace_bytes;
    const size_t many = figures_of((request){"dp=2", false, true, true, 8, 2, 1}).workspace_bytes;
    assert_in_range(many - few, 0, 4 * 64 * 1024);
}

/* ZeRO-2: terms of gradients are dropped when they are summed, to a rank's rows. */
static void terms_of_gradients_are_dropped(void **state)
{
    (void)state;
    const size_t few = figures_of((request){"dp=8", true, false, false, 4, 8, 1}).workspace_bytes;
    const size_t many = figures_of((request){"dp=8", true, false, false, 8, 8, 1}).workspace_bytes;
    assert_in_range(many - few, 0, 4 * (LAYER_BYTES / 8 + LAYER_BYTES / 8 + 64 * 1024));
}

/* What a rank keeps is decided by placements: weights, and two states of each. */
static void hybrids_keep_weights_once_in_each_group(void **state)
{
    (void)state;
    const size_t whole = figures_of((request){"dp=4", false, false, false, LAYERS, 8, 64}).parameter_bytes;
    const size_t hybrid = figures_of((request){"dp=2,fsdp=2", false, false, false, LAYERS, 8, 64}).parameter_bytes;
    const size_t sharded = figures_of((request){"fsdp=4", false, false, false, LAYERS, 8, 64}).parameter_bytes;
    const size_t zero = figures_of((request){"dp=2,fsdp=2", true, false, false, LAYERS, 8, 64}).parameter_bytes;
    const size_t elements = (size_t)LAYERS * LAYER_BYTES / 4 + (256 + 1) * HIDDEN, bytes = elements * 3 * 4;
    /* Constants are some bytes more. */
    assert_in_range(whole, bytes, bytes + 4096);
    assert_in_range(hybrid, bytes / 2, bytes / 2 + 4096);
    assert_in_range(sharded, bytes / 4, bytes / 4 + 4096);
    assert_in_range(zero, bytes / 3 / 2 + bytes / 3 * 2 / 4, bytes / 3 / 2 + bytes / 3 * 2 / 4 + 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_gradients_overlap_with_the_backward),
        cmocka_unit_test(gathers_of_weights_overlap_with_products),
        cmocka_unit_test(parts_sum_nothing),
        cmocka_unit_test(gathered_weights_are_dropped),
        cmocka_unit_test(gradients_of_parts_are_dropped),
        cmocka_unit_test(terms_of_gradients_are_dropped),
        cmocka_unit_test(hybrids_keep_weights_once_in_each_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
