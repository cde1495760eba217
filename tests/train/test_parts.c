/* Steps in parts (micro-batches), and steps that are skipped. */
#include "trainer.h"

#include <tessera/sys/status.h>

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 4, LENGTH = 12, ROOM = 1 << 20, MOST_TENSORS = 128 };

static const char model[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 24, \"intermediate_size\": 44, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 6, \"num_key_value_heads\": 3, \"head_dim\": 4, "
    "\"tie_word_embeddings\": false}";

static char text[] = "Plain words, of which a model learns which letter follows which: not much, but all of it. "
                     "Ranks share the work, and none of them may change what is learned.";

/* A run: what it is, and what rank 0 keeps of it. */
typedef struct trial {
    const char *mesh;
    int64_t batch, parts;
    tsr_dtype dtype;
    double loss_scale;
    int spoils; /* the rank of which a weight is spoilt in step 1; -1: none */
    double losses[STEPS], scales[STEPS];
    bool skipped[STEPS];
    int64_t bytes;
    size_t count;
    unsigned char *weights; /* and states, whole, after the last step; ROOM bytes */
} trial;

static size_t bytes_of(const tsr_tensor *t)
{
    int64_t count = 0;
    return tsr_tensor_count(t, &count) == TSR_OK ? (size_t)count * tsr_dtype_bytes(t->dtype) : 0;
}

/* Copies of a rank's weights and states. */
static void copy_all(const train_trainer *trainer, unsigned char **copies)
{
    assert_true(trainer->count <= MOST_TENSORS);
    for (size_t i = 0; i < trainer->count; i++) {
        const tsr_tensor local = tsr_dtensor_to_local(trainer->tensors[i]);
        copies[i] = malloc(bytes_of(&local) + 1);
        assert_non_null(copies[i]);
        memcpy(copies[i], local.data, bytes_of(&local));
    }
}

/* The weight of the logits. */
static size_t find_output(const train_trainer *trainer)
{
    size_t at = 0;
    while (strcmp(train_trainer_name(trainer, at), "lm_head.weight") != 0)
        at++;
    return at;
}

/* Takes a step in which a weight of one rank is so large that logits overflow. No rank changes
 * anything. */
static tsr_status take_spoilt_step(train_trainer *trainer, const train_batches *batches, int spoils, train_told *told)
{
    unsigned char *copies[MOST_TENSORS];
    int changed = 0;
    const bool is_spoilt = tsr_comm_rank(trainer->comm) == spoils;
    const size_t at = find_output(trainer);
    const tsr_tensor spoilt = tsr_dtensor_to_local(trainer->tensors[at]);
    copy_all(trainer, copies);
    for (size_t i = 0; i < bytes_of(&spoilt) / sizeof(float) && is_spoilt; i++)
        ((float *)spoilt.data)[i] = FLT_MAX;
    const tsr_status status = train_trainer_step(trainer, batches, 1, 1e-3, told);
    for (size_t i = 0; i < trainer->count; i++) {
        const tsr_tensor now = tsr_dtensor_to_local(trainer->tensors[i]);
        if (i == at && is_spoilt)
            memcpy(now.data, copies[i], bytes_of(&now));
        changed += memcmp(now.data, copies[i], bytes_of(&now)) != 0;
        free(copies[i]);
    }
    return changed ? tsr_status_set(TSR_ERROR_INTERNAL, "%d tensors have changed", changed) : status;
}

static tsr_status keep_all(const train_trainer *trainer, trial *t)
{
    for (size_t i = 0; i < trainer->count; i++) {
        tsr_dtensor *whole;
        TSR_TRY(tsr_full_tensor(trainer->tensors[i], &whole));
        const tsr_tensor local = tsr_dtensor_to_local(whole);
        if (tsr_comm_rank(trainer->comm) == 0) {
            assert_true(t->count + bytes_of(&local) <= ROOM);
            memcpy(t->weights + t->count, local.data, bytes_of(&local));
            t->count += bytes_of(&local);
        }
        tsr_dtensor_destroy(whole);
    }
    return TSR_OK;
}

static tsr_status train(train_trainer *trainer, trial *t)
{
    const train_data data = {.text = {text, sizeof text - 1, sizeof text - 1}, .count = sizeof text - 1};
    const train_batches batches = {&data, t->batch, LENGTH, false, 0};
    for (int64_t step = 0; step < STEPS; step++) {
        train_told told;
        TSR_TRY(step == 1 && t->spoils >= 0 ? take_spoilt_step(trainer, &batches, t->spoils, &told)
                                            : train_trainer_step(trainer, &batches, step, 1e-3, &told));
        if (told.is_skipped != (step == 1 && t->spoils >= 0))
            return tsr_status_set(TSR_ERROR_INTERNAL, "step %d is %sskipped", (int)step, told.is_skipped ? "" : "not ");
        if (tsr_comm_rank(trainer->comm) != 0)
            continue;
        t->losses[step] = told.loss;
        t->scales[step] = told.scale;
        t->bytes = trainer->bytes_received;
    }
    return keep_all(trainer, t);
}

static tsr_status rank_main(tsr_comm *comm, void *arg)
{
    trial *const t = arg;
    llama_config config;
    train_trainer *trainer;
    TSR_TRY(llama_config_parse("config.json", model, strlen(model), &config));
    const train_plan plan = {.config = &config,
                             .mesh = t->mesh,
                             .batch = t->batch,
                             .length = LENGTH,
                             .dtype = t->dtype,
                             .optimizer = TSR_ADAMW_INIT,
                             .clip = INFINITY,
                             .seed = 7,
                             .micro_batches = t->parts,
                             .loss_scale = t->loss_scale};
    TSR_TRY(train_trainer_create(comm, &plan, false, &trainer));
    const tsr_status status = train(trainer, t);
    train_trainer_destroy(trainer);
    return status;
}

static trial *try(const char *mesh, int ranks, trial of)
{
    trial *const t = malloc(sizeof *t);
    assert_non_null(t);
    *t = of;
    t->mesh = mesh;
    t->weights = malloc(ROOM);
    assert_non_null(t->weights);
    if (tsr_threads_run(ranks, rank_main, t, NULL) != TSR_OK)
        fail_msg("%s in %d parts: %s", mesh, (int)of.parts, tsr_status_message());
    return t;
}

static void forget(trial *t)
{
    free(t->weights);
    free(t);
}

static trial f64_of(int64_t batch, int64_t parts)
{
    return (trial){.batch = batch, .parts = parts, .dtype = TSR_F64, .spoils = -1};
}

/* Sums in f64 in another order: test_meshes.c compares gradients by their bounds. */
static void expect_losses(const trial *got, const trial *wanted)
{
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(got->losses[i] - wanted->losses[i]) <= 1e-11))
            fail_msg("%s in %d parts: the loss of step %d is %.17g, not %.17g", got->mesh, (int)got->parts, i,
                     got->losses[i], wanted->losses[i]);
}

/* Parts have 2, 2 and 1 windows, or ranks have none of a part. */
static void parts_give_the_losses_of_the_whole(void **state)
{
    static const struct {
        const char *mesh;
        int ranks, parts;
    } cases[] = {{"dp=1", 1, 2},   {"dp=1", 1, 5},        {"dp=2", 2, 3}, {"dp=3", 3, 5},
                 {"fsdp=3", 3, 2}, {"dp=2,fsdp=2", 4, 3}, {"tp=2", 2, 2}, {"cp=2,tp=2", 4, 4}};
    (void)state;
    trial *const wanted = try("dp=1", 1, f64_of(5, 1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trial *const got = try(cases[i].mesh, cases[i].ranks, f64_of(5, cases[i].parts));
        expect_losses(got, wanted);
        forget(got);
    }
    forget(wanted);
}

/* The terms of two ranks are those of two parts, and two terms have one sum. */
static void parts_give_the_bits_of_ranks(void **state)
{
    (void)state;
    trial *const ranks = try("dp=2", 2, f64_of(6, 1)), *const parts = try("dp=1", 1, f64_of(6, 2));
    assert_int_equal(parts->count, ranks->count);
    assert_memory_equal(parts->weights, ranks->weights, ranks->count);
    forget(parts);
    forget(ranks);
}

/* Gradients and the loss are summed once; weights that fsdp cuts are gathered for each part. */
static void bytes_do_not_grow_with_parts(void **state)
{
    (void)state;
    trial *const one = try("dp=2", 2, f64_of(6, 1));
    for (int64_t parts = 2; parts <= 6; parts++) {
        trial *const got = try("dp=2", 2, f64_of(6, parts));
        assert_int_equal(got->bytes, one->bytes);
        forget(got);
    }
    forget(one);
}

/* One rank overflows; all skip the step, as if it had not been but for the scale, and go on. */
static void ranks_skip_a_step_alike(void **state)
{
    static const struct {
        const char *mesh;
        int ranks, parts;
        tsr_dtype dtype;
    } cases[] = {{"dp=2", 2, 1, TSR_BF16}, {"dp=2,tp=2", 4, 3, TSR_BF16}, {"fsdp=2", 2, 2, TSR_F32}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int rank = 0; rank < cases[i].ranks; rank++) {
            const trial of = {
                .batch = 5, .parts = cases[i].parts, .dtype = cases[i].dtype, .loss_scale = 1024, .spoils = rank};
            trial *const t = try(cases[i].mesh, cases[i].ranks, of);
            assert_true(t->scales[0] == 1024 && t->scales[1] == 1024 && t->scales[2] == 512 && t->scales[3] == 512);
            assert_true(isfinite(t->losses[2]) && isfinite(t->losses[3]));
            forget(t);
        }
}

/* A power of two changes no bit. */
static void a_loss_scale_changes_no_bit(void **state)
{
    (void)state;
    const trial of = {.batch = 5, .parts = 2, .dtype = TSR_BF16, .spoils = -1};
    trial scaled = of;
    scaled.loss_scale = 65536;
    trial *const one = try("dp=2", 2, of), *const other = try("dp=2", 2, scaled);
    assert_int_equal(other->count, one->count);
    assert_memory_equal(other->weights, one->weights, one->count);
    forget(other);
    forget(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_give_the_losses_of_the_whole), cmocka_unit_test(parts_give_the_bits_of_ranks),
        cmocka_unit_test(bytes_do_not_grow_with_parts),       cmocka_unit_test(ranks_skip_a_step_alike),
        cmocka_unit_test(a_loss_scale_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
