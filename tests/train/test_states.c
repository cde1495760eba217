/* The loss scale and the count of skipped steps are part of a training's state. */
#include "run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char model[] = "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 8, "
                            "\"intermediate_size\": 6, \"num_hidden_layers\": 1, \"num_attention_heads\": 2}";

typedef struct work {
    llama_config config;
    const char *mesh;
    char folder[64], path[80];
    bool saves;
    tsr_loss_scale scale; /* with which the trainer begins */
    tsr_loss_scale wanted;
} work;

static tsr_status save_or_resume(train_trainer *trainer, const work *w)
{
    const train_numbers none = {0};
    train_saver saver = {.trainer = trainer, .settings = &none, .folder = w->folder, .config = w->path};
    int64_t step = 0;
    trainer->scale = w->scale;
    trainer->skipped = w->saves ? 3 : 0;
    if (w->saves)
        return train_saver_save(&saver, 10);
    const tsr_status status = train_resume(trainer, w->folder, &step);
    if (status == TSR_OK) {
        assert_int_equal(step, 10);
        assert_int_equal(trainer->skipped, 3);
        assert_true(trainer->scale.scale == w->wanted.scale);
        assert_int_equal(trainer->scale.finite_runs, w->wanted.finite_runs);
    }
    return status;
}

static tsr_status rank_main(tsr_comm *comm, void *arg)
{
    const work *const w = arg;
    const train_plan plan = {.config = &w->config,
                             .mesh = w->mesh,
                             .batch = 2,
                             .length = 3,
                             .dtype = TSR_F32,
                             .optimizer = TSR_SGD_INIT,
                             .clip = INFINITY};
    train_trainer *trainer;
    tsr_status status = train_trainer_create(comm, &plan, false, &trainer);
    if (status != TSR_OK)
        return status;
    status = save_or_resume(trainer, w);
    train_trainer_destroy(trainer);
    return status;
}

static void run(work *w, const char *mesh, int ranks)
{
    w->mesh = mesh;
    if (tsr_threads_run(ranks, rank_main, w, NULL) != TSR_OK)
        fail_msg("%s: %s", mesh, tsr_status_message());
}

static void a_loss_scale_goes_on_on_any_mesh(void **state)
{
    work *const w = calloc(1, sizeof *w);
    const tsr_loss_scale saved = {3.5e-3, 41}, first = {65536, 0}, none = {0, 0};
    (void)state;
    assert_non_null(w);
    strcpy(w->folder, "/tmp/tessera-states-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/config.json", w->folder);
    FILE *const file = fopen(w->path, "w");
    assert_non_null(file);
    fputs(model, file);
    fclose(file);
    assert_int_equal(llama_config_load(w->path, &w->config), TSR_OK);
    w->saves = true;
    w->scale = saved;
    run(w, "dp=2", 2);
    w->saves = false;
    w->scale = first;
    w->wanted = saved;
    run(w, "fsdp=3", 3);
    w->scale = w->wanted = none; /* a run that scales no losses */
    run(w, "dp=1", 1);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", w->folder);
    assert_int_equal(system(command), 0);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_loss_scale_goes_on_on_any_mesh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
