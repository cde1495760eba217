/* A training on meshes of 1 to 8 ranks against one rank, all in f64: the loss and all gradients of
 * step 0, and the losses of 50 steps, or of 8 if TSR_TEST_THIN is set. The argument "all" takes
 * every mesh, or one in four of them. */
#include "trainer.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 50, FEW_STEPS = 8, BATCH = 5, LENGTH = 12, MOST_ELEMENTS = 1 << 16, MOST_WEIGHTS = 64 };

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

/* The part of elements that is dropped, of each model: masks agree where losses do. */
static const double dropouts[] = {0, 0.2, 0.1};

static char text[] = "Plain words, of which a model learns which letter follows which: not much, but all of it. "
                     "Ranks share the work, and none of them may change what is learned.";

/* What rank 0 of a run keeps. */
typedef struct record {
    double losses[STEPS], norm, router;       /* the last two of step 0; router NAN: there is no such loss */
    size_t weights, begins[MOST_WEIGHTS + 1]; /* of each weight's gradient */
    double gradients[MOST_ELEMENTS];
} record;

/* A run, shared by its ranks. */
typedef struct work {
    train_plan plan;
    train_batches batches;
    int64_t steps;
    record *out;
} work;

/* Keeps the gradients of the last step, whole. */
static void keep(const train_trainer *trainer, record *out)
{
    const size_t scalars = trainer->plan->config->mixture.balance > 0 ? 3 : 2;
    const size_t outputs = tsr_executable_output_count(trainer->step.executable);
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
    for (int64_t step = 0; step < w->steps && status == TSR_OK; step++) {
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

static record *train(size_t model, const char *mesh, int ranks, int64_t steps)
{
    llama_config *const config = calloc(1, sizeof *config);
    record *const out = calloc(1, sizeof *out);
    const tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    const train_data data = {.text = {text, sizeof text - 1, sizeof text - 1}, .count = sizeof text - 1};
    assert_non_null(config);
    assert_non_null(out);
    if (llama_config_parse("config.json", models[model], strlen(models[model]), config) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    work w = {.plan = {.config = config,
                       .mesh = mesh,
                       .batch = BATCH,
                       .length = LENGTH,
                       .dtype = TSR_F64,
                       .optimizer = adamw,
                       .clip = INFINITY,
                       .seed = 7,
                       .dropout = dropouts[model],
                       .shards_states = true,
                       .keeps_gradients = true},
              .batches = {&data, BATCH, LENGTH, false, 0},
              .steps = steps,
              .out = out};
    if (tsr_threads_run(ranks, rank_main, &w, NULL) != TSR_OK)
        fail_msg("%s: %s", mesh, tsr_status_message());
    free(config);
    return out;
}

/*
 * A gradient's element is a sum over tokens of products of sums over features. On another mesh all
 * sums have another order: one of n terms then differs by at most n u times the sum of the terms'
 * sizes (u = 2^-53). Behind one another a gradient passes two sums over the features of each
 * product, forward and backward, of the logits over the vocabulary, and one over the batch's
 * tokens. The terms' sizes are at most some times the largest element of the gradient; 8 allows for
 * what cancels out.
 */
static double bound_of(const llama_config *c, double largest)
{
    const int64_t layer = 4 * c->hidden_size + 2 * c->heads * c->head_dim + 2 * c->intermediate_size + 2 * LENGTH;
    const int64_t terms = 2 * c->layers * layer + 2 * (c->vocab_size + c->hidden_size) + (int64_t)BATCH * LENGTH;
    return 8 * (double)terms * (DBL_EPSILON / 2) * largest;
}

static double largest_of(const double *x, size_t begin, size_t end)
{
    double largest = 0;
    for (size_t i = begin; i < end; i++)
        largest = fmax(largest, fabs(x[i]));
    return largest;
}

/* Steps that a mesh is compared for: fewer if TSR_TEST_THIN is set. */
static int64_t compared_steps(void)
{
    return getenv("TSR_TEST_THIN") ? FEW_STEPS : STEPS;
}

static void compare(const llama_config *c, const char *mesh, const record *got, const record *wanted)
{
    assert_true(wanted->weights > 0);
    assert_int_equal(got->weights, wanted->weights);
    if (!(fabs(got->losses[0] - wanted->losses[0]) <= bound_of(c, wanted->losses[0])))
        fail_msg("%s: the first loss is %.17g, not %.17g", mesh, got->losses[0], wanted->losses[0]);
    if (!(fabs(got->norm - wanted->norm) <= bound_of(c, wanted->norm)))
        fail_msg("%s: the norm is %.17g, not %.17g", mesh, got->norm, wanted->norm);
    if (!isnan(wanted->router) && !(fabs(got->router - wanted->router) <= bound_of(c, wanted->router)))
        fail_msg("%s: the router's loss is %.17g, not %.17g", mesh, got->router, wanted->router);
    for (size_t w = 0; w < wanted->weights; w++) {
        assert_int_equal(got->begins[w + 1], wanted->begins[w + 1]);
        const double bound = bound_of(c, largest_of(wanted->gradients, wanted->begins[w], wanted->begins[w + 1]));
        for (size_t i = wanted->begins[w]; i < wanted->begins[w + 1]; i++)
            if (!(fabs(got->gradients[i] - wanted->gradients[i]) <= bound))
                fail_msg("%s: element %zu of the gradient of weight %zu is %.17g, not %.17g within %g", mesh,
                         i - wanted->begins[w], w, got->gradients[i], wanted->gradients[i], bound);
    }
    for (int step = 0; step < (int)compared_steps(); step++)
        if (!(fabs(got->losses[step] - wanted->losses[step]) <= 1e-9))
            fail_msg("%s: the loss of step %d is %.17g, not %.17g", mesh, step, got->losses[step],
                     wanted->losses[step]);
}

static void check(size_t model, const char *mesh, int ranks, const record *wanted)
{
    llama_config *const config = calloc(1, sizeof *config);
    assert_non_null(config);
    if (llama_config_parse("config.json", models[model], strlen(models[model]), config) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    record *const got = train(model, mesh, ranks, compared_steps());
    compare(config, mesh, got, wanted);
    free(got);
    free(config);
}

static void a_training_learns(void **state)
{
    (void)state;
    for (size_t model = 0; model < sizeof models / sizeof *models; model++) {
        record *const r = train(model, "dp=1", 1, STEPS);
        assert_true(r->losses[0] > 5.4 && r->losses[0] < 5.7); /* that of 256 even chances is 5.545 */
        assert_true(r->losses[STEPS - 1] < r->losses[0] - 0.5);
        free(r);
    }
}

static void some_meshes_give_the_gradients_and_losses_of_one_rank(void **state)
{
    static const struct {
        const char *mesh;
        int ranks;
    } cases[] = {{"dp=2", 2},        {"fsdp=3", 3}, {"tp=5", 5},      {"cp=3", 3},
                 {"tp=2,fsdp=2", 4}, {"dp=7", 7},   {"cp=2,dp=2", 4}, {"dp=2,fsdp=2,tp=2", 8}};
    (void)state;
    for (size_t model = 0; model < sizeof models / sizeof *models; model++) {
        record *const wanted = train(model, "dp=1", 1, compared_steps());
        for (size_t i = model; i<sizeof cases / sizeof *cases; i += model> 0 ? 2 : 1)
            check(model, cases[i].mesh, cases[i].ranks, wanted);
        free(wanted);
    }
}

static void every_mesh_gives_the_gradients_and_losses_of_one_rank(void **state)
{
    const int by = getenv("TSR_TEST_THIN") ? 4 : 1;
    int meshes = 0;
    (void)state;
    for (size_t model = 0; model < sizeof models / sizeof *models; model++) {
        record *const wanted = train(model, "dp=1", 1, compared_steps());
        for (int dp = 1; dp <= 8; dp++)
            for (int fsdp = 1; fsdp * dp <= 8; fsdp++)
                for (int tp = 1; tp * fsdp * dp <= 8; tp++)
                    for (int cp = 1; cp * tp * fsdp * dp <= 8; cp++) {
                        char mesh[64];
                        if (meshes++ % by)
                            continue;
                        snprintf(mesh, sizeof mesh, "dp=%d,fsdp=%d,tp=%d,cp=%d", dp, fsdp, tp, cp);
                        check(model, mesh, dp * fsdp * tp * cp, wanted);
                    }
        free(wanted);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest quick[] = {cmocka_unit_test(a_training_learns),
                                       cmocka_unit_test(some_meshes_give_the_gradients_and_losses_of_one_rank)};
    const struct CMUnitTest all[] = {cmocka_unit_test(every_mesh_gives_the_gradients_and_losses_of_one_rank)};
    return argc > 1 && strcmp(argv[1], "all") == 0 ? cmocka_run_group_tests(all, NULL, NULL)
                                                   : cmocka_run_group_tests(quick, NULL, NULL);
}
