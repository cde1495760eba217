/* A training on meshes of 1 to 8 ranks, in f64: the loss and all gradients of step 0 against a
 * dense model of plain loops, whose bounds follow from the lengths of sums (number.h), and the
 * losses of 50 steps, or of 8 if TSR_TEST_THIN is set, against those of one rank. The argument
 * "all" takes 8 steps on every mesh, with dropout on each for one of the models; on one mesh in 4
 * if TSR_TEST_THIN is set, and 3 steps on one in 16 if it is 2. */
#include "reference.h"
#include "trainer.h"
#include "weights.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    STEPS = 50,
    FEW_STEPS = 8,
    FEWEST_STEPS = 3,
    BATCH = 5,
    LENGTH = 12,
    MOST_ELEMENTS = 1 << 16,
    MOST_WEIGHTS = 64
};

/* Heads, inner features, experts, vocabulary and batch fit none of the meshes. */
static const char *const models[] = {
    "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 24, \"intermediate_size\": 44, "
    "\"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 6, \"num_key_value_heads\": 3, \"head_dim\": 4, \"attention_bias\": true, \"mlp_bias\": "
    "true, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"qwen3\", \"vocab_size\": 256, \"hidden_size\": 20, \"intermediate_size\": 33, "
    "\"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 1, \"head_dim\": 6, \"use_sliding_window\": true, "
    "\"sliding_window\": 5, \"max_window_layers\": 1, \"tie_word_embeddings\": true}",
    "{\"model_type\": \"qwen3_moe\", \"vocab_size\": 256, \"hidden_size\": 20, \"intermediate_size\": 33, "
    "\"num_hidden_layers\": 3, \"mlp_only_layers\": [1], \"head_dim\": 4, \"num_attention_heads\": 3, "
    "\"num_key_value_heads\": 3, "
    "\"num_experts\": 3, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 11, \"norm_topk_prob\": true, "
    "\"output_router_logits\": true, \"router_aux_loss_coef\": 0.1}",
};

#define MODELS (sizeof models / sizeof *models)

static char text[] = "Plain words, of which a model learns which letter follows which: not much, but all of it. "
                     "Ranks share the work, and none of them may change what is learned.";

/* What rank 0 of a run keeps; all but the losses is of step 0. */
typedef struct record {
    int64_t steps;                            /* that losses has */
    double losses[STEPS], norm, router;       /* router NAN: there is no such loss */
    size_t weights, begins[MOST_WEIGHTS + 1]; /* of each weight's gradient */
    char names[MOST_WEIGHTS][96];
    double gradients[MOST_ELEMENTS];
} record;

/* A run, shared by its ranks. */
typedef struct work {
    train_plan plan;
    train_batches batches;
    record *out;
    reference *dense; /* gets the weights of step 0 of a single rank; NULL: not wanted */
} work;

static void add_weights(const train_trainer *trainer, reference *dense)
{
    for (size_t i = 0; i < trainer->count; i++) {
        int64_t count;
        const tsr_tensor local = tsr_dtensor_to_local(trainer->tensors[i]);
        assert_int_equal(tsr_tensor_count(&local, &count), TSR_OK);
        if (train_is_weight(train_trainer_name(trainer, i)))
            reference_add(dense, train_trainer_name(trainer, i), count, local.data);
    }
}

/* Keeps the gradients of the last step, whole. */
static void keep(const train_trainer *trainer, record *out)
{
    const size_t scalars = trainer->plan->config->mixture.balance > 0 ? 3 : 2;
    const size_t outputs = tsr_executable_output_count(trainer->step);
    for (size_t i = 0; i + scalars < outputs; i++) {
        tsr_dtensor *whole;
        int64_t count;
        assert_int_equal(tsr_full_tensor(trainer->outputs[i], &whole), TSR_OK);
        const tsr_tensor local = tsr_dtensor_to_local(whole);
        assert_int_equal(tsr_tensor_count(&local, &count), TSR_OK);
        if (tsr_comm_rank(trainer->comm) == 0) {
            const size_t begin = out->begins[out->weights];
            assert_true(begin + (size_t)count <= MOST_ELEMENTS && out->weights < MOST_WEIGHTS);
            memcpy(out->gradients + begin, local.data, (size_t)count * sizeof(double));
            snprintf(out->names[out->weights], sizeof out->names[0], "%s",
                     tsr_executable_output_name(trainer->step, i) + strlen("d."));
            out->begins[++out->weights] = begin + (size_t)count;
        }
        tsr_dtensor_destroy(whole);
    }
}

static tsr_status rank_main(tsr_comm *comm, void *arg)
{
    const work *const w = arg;
    train_trainer *trainer;
    train_told told;
    tsr_status status = train_trainer_create(comm, &w->plan, false, &trainer);
    if (status != TSR_OK)
        return status;
    if (w->dense)
        add_weights(trainer, w->dense);
    for (int64_t step = 0; step < w->out->steps && status == TSR_OK; step++) {
        status = train_trainer_step(trainer, &w->batches, step, 1e-3, &told);
        if (status == TSR_OK && step == 0)
            keep(trainer, w->out);
        if (status == TSR_OK && tsr_comm_rank(comm) == 0) {
            w->out->losses[step] = told.loss;
            w->out->norm = step == 0 ? told.norm : w->out->norm;
            w->out->router = step == 0 ? told.router : w->out->router;
        }
    }
    train_trainer_destroy(trainer);
    return status;
}

/* 0: all is tested; larger: the less of it. */
static int thinning(void)
{
    const char *const thin = getenv("TSR_TEST_THIN");
    return thin ? atoi(thin) : 0;
}

/* Steps that some meshes are compared for. */
static int64_t compared_steps(void)
{
    return thinning() > 0 ? FEW_STEPS : STEPS;
}

/* Steps that every mesh is compared for. */
static int64_t few_steps(void)
{
    return thinning() > 1 ? FEWEST_STEPS : FEW_STEPS;
}

static llama_config *parse(size_t model)
{
    llama_config *const config = calloc(1, sizeof *config);
    assert_non_null(config);
    if (llama_config_parse("config.json", models[model], strlen(models[model]), config) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    return config;
}

static record *train(const llama_config *config, double dropout, const char *mesh, int ranks, int64_t steps,
                     reference *dense)
{
    record *const out = calloc(1, sizeof *out);
    const tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    const train_data data = {.text = {text, sizeof text - 1, sizeof text - 1}, .count = sizeof text - 1};
    assert_non_null(out);
    out->steps = steps;
    work w = {.plan = {.config = config,
                       .mesh = mesh,
                       .batch = BATCH,
                       .length = LENGTH,
                       .dtype = TSR_F64,
                       .optimizer = adamw,
                       .clip = INFINITY,
                       .seed = 7,
                       .dropout = dropout,
                       .shards_states = true,
                       .keeps_gradients = true},
              .batches = {&data, BATCH, LENGTH, false, 0},
              .out = out,
              .dense = dense};
    if (tsr_threads_run(ranks, rank_main, &w, NULL) != TSR_OK)
        fail_msg("%s: %s", mesh, tsr_status_message());
    return out;
}

/* A run on one rank, and what plain loops make of its first step. */
typedef struct goal {
    llama_config *config;
    record *run;
    reference dense;
    number norm;
    int64_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
} goal;

static goal *want(size_t model, int64_t steps)
{
    goal *const w = calloc(1, sizeof *w);
    const train_data data = {.text = {text, sizeof text - 1, sizeof text - 1}, .count = sizeof text - 1};
    const train_batches batches = {&data, BATCH, LENGTH, false, 0};
    number squares = {0, 0};
    assert_non_null(w);
    w->config = parse(model);
    w->dense =
        (reference){.config = w->config, .batch = BATCH, .length = LENGTH, .tokens = w->tokens, .targets = w->targets};
    for (int64_t i = 0; i < BATCH * LENGTH; i++) {
        const int64_t at = train_batches_begin(&batches, 0, i / LENGTH) + i % LENGTH;
        w->tokens[i] = train_data_token(&data, at);
        w->targets[i] = train_data_token(&data, at + 1);
    }
    w->run = train(w->config, 0, "dp=1", 1, steps, &w->dense);
    reference_run(&w->dense);
    for (int i = 0; i < w->dense.count; i++) {
        const reference_weight *const of = &w->dense.weights[i];
        squares = number_add(squares, number_dot(of->count, of->gradients, 1, of->gradients, 1));
    }
    w->norm = number_function(sqrt(squares.value), 0.5 / sqrt(squares.value), squares);
    return w;
}

static void forget(goal *w)
{
    reference_finish(&w->dense);
    free(w->config);
    free(w->run);
    free(w);
}

/* Two computations of one number differ by at most twice the bound of its error. */
static void compare_number(const char *mesh, const char *what, size_t index, double got, number wanted)
{
    if (!(fabs(got - wanted.value) <= 2 * wanted.error))
        fail_msg("%s: element %zu of %s is %.17g, not %.17g within %g", mesh, index, what, got, wanted.value,
                 2 * wanted.error);
}

static void compare(const char *mesh, const record *got, goal *wanted)
{
    compare_number(mesh, "the first loss", 0, got->losses[0], wanted->dense.loss);
    compare_number(mesh, "the norm", 0, got->norm, wanted->norm);
    if (!isnan(wanted->run->router))
        compare_number(mesh, "the router's loss", 0, got->router, wanted->dense.router);
    assert_int_equal(got->weights, wanted->dense.count);
    for (size_t w = 0; w < got->weights; w++) {
        const reference_weight *const of = reference_find(&wanted->dense, got->names[w]);
        assert_int_equal(got->begins[w + 1] - got->begins[w], of->count);
        for (int64_t i = 0; i < of->count; i++)
            compare_number(mesh, of->name, (size_t)i, got->gradients[got->begins[w] + (size_t)i], of->gradients[i]);
    }
    for (int step = 0; step < (int)got->steps; step++)
        if (!(fabs(got->losses[step] - wanted->run->losses[step]) <= 1e-9))
            fail_msg("%s: the loss of step %d is %.17g, not %.17g", mesh, step, got->losses[step],
                     wanted->run->losses[step]);
}

static void check(const char *mesh, int ranks, goal *wanted)
{
    record *const got = train(wanted->config, 0, mesh, ranks, wanted->run->steps, NULL);
    compare(mesh, got, wanted);
    free(got);
}

/* Masks agree where losses do. */
static void check_masks(const llama_config *config, const char *mesh, int ranks, const record *wanted)
{
    record *const got = train(config, 0.2, mesh, ranks, wanted->steps, NULL);
    for (int step = 0; step < (int)got->steps; step++)
        if (!(fabs(got->losses[step] - wanted->losses[step]) <= 1e-9))
            fail_msg("%s: with dropout the loss of step %d is %.17g, not %.17g", mesh, step, got->losses[step],
                     wanted->losses[step]);
    free(got);
}

static void a_training_learns(void **state)
{
    (void)state;
    for (size_t model = 0; model < MODELS; model++) {
        goal *const w = want(model, compared_steps());
        assert_true(w->run->losses[0] > 5.4 && w->run->losses[0] < 5.7); /* that of 256 even chances is 5.545 */
        if (compared_steps() == STEPS)
            assert_true(w->run->losses[STEPS - 1] < w->run->losses[0] - 0.5);
        compare("dp=1", w->run, w);
        forget(w);
    }
}

static const struct {
    const char *mesh;
    int ranks;
} cases[] = {{"dp=2", 2},        {"fsdp=3", 3}, {"tp=5", 5},      {"cp=3", 3},
             {"tp=2,fsdp=2", 4}, {"dp=7", 7},   {"cp=2,dp=2", 4}, {"dp=2,fsdp=2,tp=2", 8}};

static void some_meshes_give_the_gradients_and_losses_of_one_rank(void **state)
{
    (void)state;
    for (size_t model = 0; model < MODELS; model++) {
        goal *const w = want(model, compared_steps());
        for (size_t i = model; i<sizeof cases / sizeof *cases; i += model> 0 ? 2 : 1)
            check(cases[i].mesh, cases[i].ranks, w);
        forget(w);
    }
}

static void masks_are_the_same_on_some_meshes(void **state)
{
    (void)state;
    llama_config *const config = parse(0);
    record *const one = train(config, 0.2, "dp=1", 1, compared_steps(), NULL);
    for (size_t i = 1; i < sizeof cases / sizeof *cases; i += 2)
        check_masks(config, cases[i].mesh, cases[i].ranks, one);
    free(one);
    free(config);
}

static void every_mesh_gives_the_gradients_and_losses_of_one_rank(void **state)
{
    const size_t by = (size_t)1 << 2 * thinning();
    size_t meshes = 0;
    (void)state;
    for (size_t model = 0; model < MODELS; model++) {
        goal *const w = want(model, few_steps());
        record *const dropped = train(w->config, 0.2, "dp=1", 1, few_steps(), NULL);
        for (int dp = 1; dp <= 8; dp++)
            for (int fsdp = 1; fsdp * dp <= 8; fsdp++)
                for (int tp = 1; tp * fsdp * dp <= 8; tp++)
                    for (int cp = 1; cp * tp * fsdp * dp <= 8; cp++) {
                        char mesh[64];
                        const size_t place = meshes++;
                        if (place % by)
                            continue;
                        snprintf(mesh, sizeof mesh, "dp=%d,fsdp=%d,tp=%d,cp=%d", dp, fsdp, tp, cp);
                        check(mesh, dp * fsdp * tp * cp, w);
                        if (place / by % MODELS == model)
                            check_masks(w->config, mesh, dp * fsdp * tp * cp, dropped);
                    }
        free(dropped);
        forget(w);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest quick[] = {cmocka_unit_test(a_training_learns),
                                       cmocka_unit_test(some_meshes_give_the_gradients_and_losses_of_one_rank),
                                       cmocka_unit_test(masks_are_the_same_on_some_meshes)};
    const struct CMUnitTest all[] = {cmocka_unit_test(every_mesh_gives_the_gradients_and_losses_of_one_rank)};
    return argc > 1 && strcmp(argv[1], "all") == 0 ? cmocka_run_group_tests(all, NULL, NULL)
                                                   : cmocka_run_group_tests(quick, NULL, NULL);
}
