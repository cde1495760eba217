/* Checkpoints that some ranks save and others load: the bits of every tensor on other meshes and in
 * other layouts, numbers, names that differ, and what is refused, on all ranks. */
#include "checkpoint_support.h"
#include "comm_suite.h"

#include <tessera/checkpoint.h>
#include <tessera/values.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tensor, and its layouts on the meshes "a=2,b=2", "3", and "1" or "2@1", which leaves ranks
 * out. */
typedef struct tensor_case {
    const char *name;
    tsr_dtype dtype;
    int ndim;
    int64_t shape[3];
    const char *square, *three, *one;
} tensor_case;

static const tensor_case cases[] = {
    {"rows", TSR_F32, 2, {13, 6}, "S(0),R", "S(0)", "R"},
    {"columns", TSR_F32, 2, {13, 6}, "S(1),S(0)", "S(1)", "R"},
    {"interleaved", TSR_F32, 2, {12, 9}, "S(0;interleave=3),S(1)", "S(1;interleave=3)", "R"},
    {"uneven", TSR_F64, 2, {13, 5}, "S(0;sizes=9,4),R", "S(0;sizes=5,0,8)", "R"},
    {"cube", TSR_BF16, 3, {4, 6, 5}, "S(1),S(2)", "S(0)", "R"},
    {"bias", TSR_F16, 1, {7, 0, 0}, "R,S(0)", "R", "S(0)"},
    {"step", TSR_I64, 0, {0}, "R,R", "R", "R"},
    {"empty", TSR_F32, 2, {0, 4}, "R,S(1)", "S(0)", "R"},
    {"large", TSR_F32, 2, {160, 161}, "R,R", "S(1)", "R"},
    {"narrow", TSR_F32, 2, {60, 70}, "R,S(1)", "S(1;interleave=5)", "R"},
};

enum { CASES = sizeof cases / sizeof *cases, MOST_ELEMENTS = 160 * 161, MOST_BYTES = MOST_ELEMENTS * 8 };

static tsr_tensor whole_of(const tensor_case *c, void *data)
{
    return tsr_tensor_contiguous(data, c->dtype, c->ndim, c->shape);
}

/* Bytes that tell where they belong, as numbers of any dtype. */
static void fill_whole(int which, unsigned char *bytes)
{
    for (int i = 0; i < MOST_BYTES; i++)
        bytes[i] = (unsigned char)((i * 7 + which * 31 + i / 251) % 113);
}

typedef struct model {
    tsr_mesh *mesh;
    tsr_dtensor *x[CASES];
} model;

static tsr_status make_model(tsr_comm *comm, const char *mesh, bool filled, model *m)
{
    unsigned char *const data = calloc(1, MOST_BYTES);
    CHECK(data);
    TSR_TRY(tsr_mesh_parse(comm, NULL, mesh, &m->mesh));
    for (int i = 0; i < CASES; i++) {
        const tensor_case *const c = &cases[i];
        const char *const placements = mesh[0] == '3'                     ? c->three
                                       : mesh[0] == '1' || mesh[1] == '@' ? c->one
                                                                          : c->square;
        const tsr_tensor local = whole_of(c, data);
        if (filled)
            fill_whole(i, data);
        TSR_TRY(tsr_distribute(&local, m->mesh, placements, &m->x[i]));
    }
    free(data);
    return TSR_OK;
}

static void free_model(model *m)
{
    for (int i = 0; i < CASES; i++)
        tsr_dtensor_destroy(m->x[i]);
    tsr_mesh_destroy(m->mesh);
}

/* Checks the bits of a dtensor's whole tensor, on the ranks that have it. */
static tsr_status check_whole(const tsr_dtensor *x, int which)
{
    tsr_dtensor *full;
    int64_t count;
    unsigned char *const wanted = malloc(MOST_BYTES);
    CHECK(wanted);
    TSR_TRY(tsr_full_tensor(x, &full));
    const tsr_tensor local = tsr_dtensor_to_local(full);
    TSR_TRY(tsr_tensor_count(&local, &count));
    fill_whole(which, wanted);
    CHECK(memcmp(local.data ? local.data : wanted, wanted, (size_t)count * tsr_dtype_bytes(local.dtype)) == 0);
    tsr_dtensor_destroy(full);
    free(wanted);
    return TSR_OK;
}

static tsr_status check_model(const model *m)
{
    for (int i = 0; i < CASES; i++)
        TSR_TRY(check_whole(m->x[i], i));
    return TSR_OK;
}

static void list_tensors(const model *m, tsr_safetensors_tensor *out)
{
    for (int i = 0; i < CASES; i++)
        out[i] = (tsr_safetensors_tensor){cases[i].name, m->x[i], TSR_DTYPE_NONE};
}

static void list_targets(const model *m, tsr_safetensors_target *out)
{
    for (int i = 0; i < CASES; i++)
        out[i] = (tsr_safetensors_target){cases[i].name, m->x[i]};
}

/* How a checkpoint is saved. */
typedef struct way {
    const char *mesh;
    const char *folder;
    int64_t shard_bytes;
    bool apart; /* by start and finish */
    int64_t step;
} way;

static tsr_status save(tsr_comm *comm, void *arg)
{
    const way *const w = arg;
    char folder[FOLDER_BYTES];
    model m;
    tsr_safetensors_tensor tensors[CASES];
    tsr_checkpoint_save_options options = TSR_CHECKPOINT_SAVE_OPTIONS_INIT;
    const tsr_checkpoint_number numbers[] = {{"step", w->step}, {"seed", INT64_MIN}};
    const tsr_safetensors_text texts[] = {{"model", "small"}};
    options.shard_bytes = w->shard_bytes;
    options.number_count = 2;
    options.numbers = numbers;
    options.metadata_count = 1;
    options.metadata = texts;
    name_folder(w->folder, folder);
    TSR_TRY(make_model(comm, w->mesh, true, &m));
    list_tensors(&m, tensors);
    if (w->apart) {
        tsr_checkpoint_saving *saving;
        TSR_TRY(tsr_checkpoint_start(comm, folder, CASES, tensors, &options, &saving));
        for (int i = 0; i < CASES; i++) /* training goes on */
            TSR_TRY(tsr_dtensor_fill(m.x[i], 3, NULL));
        TSR_TRY(suite_check_usable(comm));
        for (int written = 0; !written;)
            TSR_TRY(tsr_checkpoint_test(saving, &written));
        TSR_TRY(tsr_checkpoint_finish(saving));
    } else {
        TSR_TRY(tsr_checkpoint_save(comm, folder, CASES, tensors, &options));
    }
    free_model(&m);
    return TSR_OK;
}

/* Checks that the folder is a model as other programs have them. */
static tsr_status check_folder(const char *folder)
{
    tsr_safetensors *file;
    TSR_TRY(tsr_safetensors_open(folder, &file));
    CHECK(tsr_safetensors_count(file) == CASES);
    for (int i = 0; i < CASES; i++) {
        const tsr_safetensors_entry *const entry = tsr_safetensors_find(file, cases[i].name);
        CHECK(entry && entry->dtype == cases[i].dtype && entry->ndim == cases[i].ndim);
        CHECK(memcmp(entry->shape, cases[i].shape, (size_t)entry->ndim * sizeof *entry->shape) == 0);
    }
    CHECK(strcmp(tsr_safetensors_metadata(file, "model"), "small") == 0);
    CHECK(strcmp(tsr_safetensors_metadata(file, "format"), "pt") == 0);
    CHECK(strcmp(tsr_safetensors_metadata(file, "seed"), "-9223372036854775808") == 0);
    tsr_safetensors_destroy(file);
    return TSR_OK;
}

static tsr_status load(tsr_comm *comm, void *arg)
{
    const way *const w = arg;
    char folder[FOLDER_BYTES];
    model m;
    tsr_safetensors_target targets[CASES];
    tsr_checkpoint_load_options options = TSR_CHECKPOINT_LOAD_OPTIONS_INIT;
    tsr_checkpoint_number numbers[] = {{"seed", 1}, {"step", 1}};
    int64_t bytes_read = -1;
    options.number_count = 2;
    options.numbers = numbers;
    options.bytes_read = &bytes_read;
    name_folder(w->folder, folder);
    TSR_TRY(make_model(comm, w->mesh, false, &m));
    list_targets(&m, targets);
    TSR_TRY(tsr_checkpoint_load(comm, folder, CASES, targets, &options));
    TSR_TRY(check_model(&m));
    TSR_TRY(check_folder(folder));
    CHECK(numbers[0].value == INT64_MIN && numbers[1].value == w->step);
    int64_t owned = 0;
    for (int i = 0; i < CASES; i++) {
        size_t some;
        TSR_TRY(tsr_layout_local_bytes(tsr_dtensor_layout(m.x[i]), NULL, &some));
        owned += (int64_t)some;
    }
    CHECK(bytes_read == owned);
    free_model(&m);
    return TSR_OK;
}

static void checkpoints_are_loaded_on_other_ranks_than_saved_them(void **state)
{
    (void)state;
    static way square = {"a=2,b=2", "x", 0, false, 7}, again = {"a=2,b=2", "x", 1000, true, 8};
    static way three = {"3", "x", 1, false, 9}, one = {"1", "x", 0, true, 10}, some = {"2@1", "x", 0, true, 11};
    way *const all[] = {&square, &again, &three, &one, &some};
    static const int ranks[] = {4, 4, 3, 1, 4}, files[] = {1, 5, CASES, 1, 1};
    char folder[FOLDER_BYTES];
    name_folder("x", folder);
    for (int i = 0; i < 5; i++) {
        suite_run(ranks[i], save, all[i]);
        assert_int_equal(count_files(folder), files[i] + 1); /* older ones are gone */
        for (int j = 0; j < 5; j++) {
            way reading = *all[j];
            reading.step = all[i]->step;
            suite_run(ranks[j], load, &reading);
        }
    }
    suite_run(1, remove_folder, "x");
}

int main(int count, char **arguments)
{
    suite_start(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_loaded_on_other_ranks_than_saved_them),
    };
    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
