/* Checkpoints in other forms than the dtensors: PyTorch's boxes, fused, split and stacked tensors,
 * other dtypes; and what is refused, on all ranks. */
#include "checkpoint_support.h"
#include "comm_suite.h"

#include <tessera/checkpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 48 };

/* A dtensor of f32 over a mesh of one dim. */
typedef struct small {
    const char *name, *placements;
    int ndim;
    int64_t shape[3];
    float first; /* elements count up from here */
} small;

typedef struct smalls {
    tsr_mesh *mesh;
    int count;
    tsr_dtensor *x[8];
    const small *of[8];
} smalls;

static int64_t count_of(const small *s)
{
    int64_t count = 1;
    for (int i = 0; i < s->ndim; i++)
        count *= s->shape[i];
    return count;
}

static tsr_status make_smalls(tsr_comm *comm, const char *mesh, int count, const small *of, bool filled, smalls *out)
{
    *out = (smalls){.count = count};
    TSR_TRY(tsr_mesh_parse(comm, NULL, mesh, &out->mesh));
    for (int i = 0; i < count; i++) {
        float values[MOST] = {0};
        const tsr_tensor whole = tsr_tensor_contiguous(values, TSR_F32, of[i].ndim, of[i].shape);
        for (int64_t j = 0; j < count_of(&of[i]) && filled; j++)
            values[j] = of[i].first + (float)j;
        out->of[i] = &of[i];
        TSR_TRY(tsr_distribute(&whole, out->mesh, of[i].placements, &out->x[i]));
    }
    return TSR_OK;
}

static void free_smalls(smalls *s)
{
    for (int i = 0; i < s->count; i++)
        tsr_dtensor_destroy(s->x[i]);
    tsr_mesh_destroy(s->mesh);
}

/* Checks that the whole tensor has these values. */
static tsr_status check_values(const tsr_dtensor *x, const float *wanted)
{
    tsr_dtensor *full;
    int64_t count;
    TSR_TRY(tsr_full_tensor(x, &full));
    const tsr_tensor local = tsr_dtensor_to_local(full);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        CHECK(((const float *)local.data)[i] == wanted[i]);
    tsr_dtensor_destroy(full);
    return TSR_OK;
}

static tsr_status check_smalls(const smalls *s)
{
    for (int i = 0; i < s->count; i++) {
        float wanted[MOST];
        for (int64_t j = 0; j < count_of(s->of[i]); j++)
            wanted[j] = s->of[i]->first + (float)j;
        TSR_TRY(check_values(s->x[i], wanted));
    }
    return TSR_OK;
}

static tsr_status save_smalls(tsr_comm *comm, const char *folder, const smalls *s,
                              const tsr_checkpoint_save_options *options)
{
    tsr_safetensors_tensor tensors[8];
    for (int i = 0; i < s->count; i++)
        tensors[i] = (tsr_safetensors_tensor){s->of[i]->name, s->x[i], TSR_DTYPE_NONE};
    return tsr_checkpoint_save(comm, folder, (size_t)s->count, tensors, options);
}

static tsr_status load_smalls(tsr_comm *comm, const char *folder, const smalls *s, size_t map_count,
                              const tsr_checkpoint_map *map)
{
    tsr_safetensors_target targets[8];
    tsr_checkpoint_load_options options = TSR_CHECKPOINT_LOAD_OPTIONS_INIT;
    options.map_count = map_count;
    options.map = map;
    for (int i = 0; i < s->count; i++)
        targets[i] = (tsr_safetensors_target){s->of[i]->name, s->x[i]};
    return tsr_checkpoint_load(comm, folder, (size_t)s->count, targets, &options);
}

/* The tensors of tests/golden/make_checkpoint.py; they are read as f32. */
static const small golden_rows[] = {
    {"rows", "S(0)", 2, {5, 6}, 0}, {"columns", "S(0)", 2, {4, 7}, 0}, {"bias", "S(0)", 1, {3}, 0}};
static const small golden_columns[] = {{"columns", "S(1;interleave=2)", 2, {4, 7}, 0},
                                       {"rows", "S(1;sizes=1,3,2)", 2, {5, 6}, 0},
                                       {"bias", "R", 1, {3}, 0}};

static tsr_status load_golden(tsr_comm *comm, void *arg)
{
    const small *const kinds[] = {golden_rows, golden_columns};
    for (int i = 0; i < 2; i++) {
        smalls s;
        TSR_TRY(make_smalls(comm, "3", 3, kinds[i], false, &s));
        TSR_TRY(load_smalls(comm, arg, &s, 0, NULL));
        TSR_TRY(check_smalls(&s));
        free_smalls(&s);
    }
    return TSR_OK;
}

static void files_of_pytorch_are_read_on_other_ranks(void **state)
{
    (void)state;
    char folder[] = GOLDEN_DIR "/dcp";
    suite_run(3, load_golden, folder);
}

/* Saves the golden tensors in PyTorch's form, twice, and what that form lacks. */
static tsr_status save_boxes(tsr_comm *comm, void *arg)
{
    char folder[FOLDER_BYTES];
    smalls s;
    tsr_checkpoint_save_options options = TSR_CHECKPOINT_SAVE_OPTIONS_INIT;
    options.dcp = 1;
    name_folder(arg, folder);
    TSR_TRY(make_smalls(comm, "3", 3, golden_columns, true, &s));
    CHECK_ERROR(save_smalls(comm, folder, &s, &options), tsr_comm_rank(comm) == 2 ? TSR_ERROR_PEER : TSR_ERROR_ARGUMENT,
                "pieces along dim 1");
    free_smalls(&s);
    TSR_TRY(make_smalls(comm, "3", 3, golden_rows, true, &s));
    TSR_TRY(save_smalls(comm, folder, &s, &options));
    CHECK_ERROR(save_smalls(comm, folder, &s, &options), tsr_comm_rank(comm) == 0 ? TSR_ERROR_IO : TSR_ERROR_PEER,
                "must be a new or an empty folder");
    free_smalls(&s);
    return TSR_OK;
}

/* Rank 0 removes one file of boxes, so that a tensor lacks a part. */
static tsr_status load_boxes(tsr_comm *comm, void *arg)
{
    char folder[FOLDER_BYTES], path[2 * FOLDER_BYTES];
    smalls s;
    name_folder(arg, folder);
    TSR_TRY(load_golden(comm, folder));
    TSR_TRY(make_smalls(comm, "3", 3, golden_columns, true, &s));
    TSR_TRY(tsr_comm_barrier(comm));
    snprintf(path, sizeof path, "%s/shard-00002-model-00001-of-00001.safetensors", folder);
    if (tsr_comm_rank(comm) == 0)
        CHECK(unlink(path) == 0);
    TSR_TRY(tsr_comm_barrier(comm));
    CHECK_ERROR(load_smalls(comm, folder, &s, 0, NULL), TSR_ERROR_ARGUMENT,
                "tensor columns: no box has the elements [2:4, 0:7] of [0:4, 0:7]");
    TSR_TRY(check_smalls(&s));
    free_smalls(&s);
    return TSR_OK;
}

static void files_in_the_form_of_pytorch_are_written(void **state)
{
    (void)state;
    char kind[] = "dcp", folder[FOLDER_BYTES];
    name_folder(kind, folder);
    suite_run(3, save_boxes, kind);
    assert_int_equal(count_files(folder), 3);
    suite_run(3, load_boxes, kind);
    suite_run(1, remove_folder, kind);
}

/* Attention and two experts by themselves, and fused. Each fused tensor has the elements of the
 * others in the order of fused_values(). */
static const small apart[] = {
    {"q", "S(0)", 2, {2, 4}, 100},
    {"k", "S(1)", 2, {1, 4}, 200},
    {"v", "R", 2, {1, 4}, 300},
    {"experts.0.gate", "S(0)", 2, {3, 2}, 400},
    {"experts.0.up", "S(1)", 2, {3, 2}, 500},
    {"experts.1.gate", "S(0)", 2, {3, 2}, 600},
    {"experts.1.up", "R", 2, {3, 2}, 700},
};
static const small fused[] = {{"qkv", "S(1)", 2, {4, 4}, 0},
                              {"gate_up", "S(1;interleave=2)", 3, {2, 6, 2}, 0},
                              {"wide", "S(1;sizes=1,2,1)", 2, {3, 4}, 0}};

static const tsr_checkpoint_source of_qkv[] = {{"q", 0, 0, 0}, {"k", 0, 0, 0}, {"v", 0, 0, 0}};
static const tsr_checkpoint_source of_gate_up[] = {{"experts.*.gate", 0, 0, 0}, {"experts.*.up", 0, 0, 0}};
static const tsr_checkpoint_source of_wide[] = {{"experts.0.up", 0, 0, 0}, {"experts.1.gate", 0, 0, 0}};
static const tsr_checkpoint_map fusing[] = {
    {"qkv", 0, 3, of_qkv}, {"gate_up", 1, 2, of_gate_up}, {"wide", 1, 2, of_wide}};

static const tsr_checkpoint_source splits[] = {{"qkv", 0, 2, 0},     {"qkv", 2, 3, 0},  {"qkv", 3, 4, 0},
                                               {"gate_up", 0, 3, 0}, {"wide", 0, 2, 0}, {"gate_up", 0, 3, 1},
                                               {"gate_up", 3, 6, 1}};
static const tsr_checkpoint_map splitting[] = {
    {"q", 0, 1, &splits[0]},
    {"k", 0, 1, &splits[1]},
    {"v", 0, 1, &splits[2]},
    {"experts.0.gate", 0, 1, &splits[3]},
    {"experts.0.up", 1, 1, &splits[4]},
    {"experts.1.gate", 0, 1, &splits[5]},
    {"experts.1.up", 0, 1, &splits[6]},
};

static tsr_status check_fused(const smalls *s)
{
    float qkv[16], gate_up[24], wide[12];
    for (int i = 0; i < 16; i++)
        qkv[i] = i < 8 ? 100 + (float)i : i < 12 ? 200 + (float)(i - 8) : 300 + (float)(i - 12);
    for (int i = 0; i < 24; i++)
        gate_up[i] = 400 + 100 * (float)(i / 6) + (float)(i % 6);
    for (int i = 0; i < 12; i++)
        wide[i] = (i % 4 < 2 ? 500 : 600) + (float)(i / 4 * 2 + i % 2);
    TSR_TRY(check_values(s->x[0], qkv));
    TSR_TRY(check_values(s->x[1], gate_up));
    return check_values(s->x[2], wide);
}

static tsr_status fuse_and_split(tsr_comm *comm, void *arg)
{
    char folder[FOLDER_BYTES];
    smalls a, b, again;
    name_folder(arg, folder);
    TSR_TRY(make_smalls(comm, "3", 7, apart, true, &a));
    TSR_TRY(make_smalls(comm, "3", 3, fused, false, &b));
    TSR_TRY(make_smalls(comm, "3", 7, apart, false, &again));
    TSR_TRY(save_smalls(comm, folder, &a, NULL));
    TSR_TRY(load_smalls(comm, folder, &b, 3, fusing));
    TSR_TRY(check_fused(&b));
    TSR_TRY(save_smalls(comm, folder, &b, NULL));
    TSR_TRY(load_smalls(comm, folder, &again, 7, splitting));
    TSR_TRY(check_smalls(&again));
    free_smalls(&again);
    free_smalls(&b);
    free_smalls(&a);
    return TSR_OK;
}

static void projections_are_fused_split_stacked_and_unstacked(void **state)
{
    (void)state;
    char kind[] = "maps";
    suite_run(3, fuse_and_split, kind);
    suite_run(1, remove_folder, kind);
}

/* A map that only rank 1 gives wrongly: each rank hears of it, and no element is changed. */
static tsr_status refuse_map(tsr_comm *comm, const char *folder, const smalls *s, const tsr_checkpoint_map *wrong,
                             const char *part)
{
    const bool odd = tsr_comm_rank(comm) == 1;
    const char *const name = wrong->name ? wrong->name : "";
    tsr_checkpoint_map maps[] = {fusing[0], fusing[1], fusing[2]};
    if (odd)
        maps[strcmp(name, "qkv") == 0 ? 0 : strcmp(name, "gate_up") == 0 ? 1 : 2] = *wrong;
    CHECK_ERROR(load_smalls(comm, folder, s, 3, maps), odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, part);
    return TSR_OK;
}

static tsr_status refuse_maps(tsr_comm *comm, void *arg)
{
    static const tsr_checkpoint_source none = {"x", 0, 0, 0}, unnamed = {NULL, 0, 0, 0}, far = {"q", 1, 3, 0},
                                       q = {"q", 0, 0, 0}, stars = {"*.*", 0, 0, 0}, flat = {"experts.*.up", 0, 0, 0},
                                       mixed[] = {{"q", 0, 0, 0}, {"*", 0, 0, 0}}, high = {"gate_up", 0, 0, 2};
    static const struct {
        tsr_checkpoint_map map;
        const char *part;
    } wrong[] = {
        {{"qkv", 0, 1, &none}, "there is no tensor x for qkv"},
        {{"qkv", 0, 1, &unnamed}, "a source without a name"},
        {{"qkv", 0, 1, &far}, "indices 1 to 3 of q, which has 2"},
        {{"qkv", 0, 1, &q}, "2 indices along dim 0 together, but it has 4"},
        {{"qkv", 2, 1, &q}, "joins along dim 2 of 2"},
        {{"qkv", 0, 0, &q}, "has no sources"},
        {{"qkv", 0, 1, &stars}, "all sources or none have one *, as *.*"},
        {{"qkv", 0, 2, mixed}, "all sources or none have one *"},
        {{"gate_up", 0, 1, &flat}, "joins along dim 0, which is the stack's"},
        {{"gate_up", 1, 1, &q}, "tensor q has 2 dims, but for gate_up it should have 3"},
        {{"qkv", 0, 1, &high}, "there is no tensor gate_up"},
        {{"other", 0, 1, &q}, "is other, which is not a target's"},
        {{NULL, 0, 1, &q}, "is NULL, which is not a target's"},
    };
    char folder[FOLDER_BYTES];
    smalls a, b;
    name_folder(arg, folder);
    TSR_TRY(make_smalls(comm, "3", 7, apart, true, &a));
    TSR_TRY(make_smalls(comm, "3", 3, fused, true, &b));
    TSR_TRY(save_smalls(comm, folder, &a, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        TSR_TRY(refuse_map(comm, folder, &b, &wrong[i].map, wrong[i].part));
    TSR_TRY(check_smalls(&b));
    free_smalls(&b);
    free_smalls(&a);
    return suite_check_usable(comm);
}

static void maps_that_do_not_fit_are_refused_on_all_ranks(void **state)
{
    (void)state;
    char kind[] = "wrong-maps";
    suite_run(3, refuse_maps, kind);
    suite_run(1, remove_folder, kind);
}

/* Makes an empty file in the folder of a kind. */
static tsr_status touch(tsr_comm *comm, const char *folder, const char *name)
{
    char path[2 * FOLDER_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (tsr_comm_rank(comm) == 0) {
        mkdir(folder, 0777);
        FILE *const file = fopen(path, "wb");
        CHECK(file && fclose(file) == 0);
    }
    return tsr_comm_barrier(comm);
}

static tsr_status refuse_folders(tsr_comm *comm, void *arg)
{
    const bool odd = tsr_comm_rank(comm) == 1, first = tsr_comm_rank(comm) == 0;
    const tsr_status own = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, lost = odd ? TSR_ERROR_IO : TSR_ERROR_PEER;
    char folder[FOLDER_BYTES];
    smalls s;
    name_folder(arg, folder);
    TSR_TRY(make_smalls(comm, "3", 7, apart, true, &s));
    CHECK_ERROR(load_smalls(comm, folder, &s, 0, NULL), TSR_ERROR_IO, folder);
    TSR_TRY(touch(comm, folder, "__0_0.distcp"));
    CHECK_ERROR(load_smalls(comm, folder, &s, 0, NULL), TSR_ERROR_UNSUPPORTED, "Python pickles");
    CHECK_ERROR(load_smalls(comm, "/tmp/__0_0.distcp", &s, 0, NULL), TSR_ERROR_UNSUPPORTED, "a Python pickle");
    CHECK_ERROR(load_smalls(comm, odd ? NULL : folder, &s, 0, NULL), odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_UNSUPPORTED,
                odd ? "folder is NULL" : "Python pickles");
    TSR_TRY(save_smalls(comm, folder, &s, NULL));
    CHECK_ERROR(save_smalls(comm, odd ? NULL : folder, &s, NULL), own, "folder is NULL");
    CHECK_ERROR(save_smalls(comm, odd ? "/tmp" : folder, &s, NULL), TSR_ERROR_ARGUMENT, "ranks give different folders");
    CHECK_ERROR(load_smalls(comm, odd ? "/dev" : folder, &s, 0, NULL), lost, "has no checkpoint");
    CHECK_ERROR(save_smalls(comm, "/dev/null", &s, NULL), first ? TSR_ERROR_IO : TSR_ERROR_PEER, "not a folder");
    TSR_TRY(touch(comm, folder, "model.safetensors"));
    CHECK_ERROR(save_smalls(comm, folder, &s, NULL), first ? TSR_ERROR_IO : TSR_ERROR_PEER, "readers prefer");
    TSR_TRY(check_smalls(&s));
    free_smalls(&s);
    return suite_check_usable(comm);
}

static tsr_status refuse_arguments(tsr_comm *comm, void *arg)
{
    const bool odd = tsr_comm_rank(comm) == 1;
    const tsr_status own = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    tsr_checkpoint_save_options options = TSR_CHECKPOINT_SAVE_OPTIONS_INIT;
    tsr_checkpoint_load_options loading = TSR_CHECKPOINT_LOAD_OPTIONS_INIT;
    tsr_checkpoint_number step = {"step", 1}, twice[] = {{"step", 1}, {"step", 2}}, model = {"model", 0};
    const tsr_safetensors_text text = {"model", "small"};
    char folder[FOLDER_BYTES];
    smalls s;
    name_folder(arg, folder);
    TSR_TRY(make_smalls(comm, "3", 7, apart, true, &s));
    const tsr_safetensors_tensor tensor = {"q", s.x[0], TSR_DTYPE_NONE}, unnamed = {NULL, s.x[0], TSR_DTYPE_NONE};
    const tsr_safetensors_target target = {"q", s.x[0]}, none = {"q", NULL}, missing = {"z", s.x[0]},
                                 other = {"k", s.x[0]};
    tsr_checkpoint_saving *saving;
    CHECK_ERROR(tsr_checkpoint_save(NULL, folder, 1, &tensor, NULL), TSR_ERROR_ARGUMENT, "comm is NULL");
    CHECK_ERROR(tsr_checkpoint_load(NULL, folder, 1, &target, NULL), TSR_ERROR_ARGUMENT, "comm is NULL");
    CHECK_ERROR(tsr_checkpoint_finish(NULL), TSR_ERROR_ARGUMENT, "saving is NULL");
    CHECK_ERROR(tsr_checkpoint_start(comm, folder, 1, &tensor, NULL, odd ? NULL : &saving), own, "out is NULL");
    int written = 7;
    TSR_TRY(tsr_checkpoint_start(comm, folder, 1, &tensor, NULL, &saving));
    CHECK_ERROR(tsr_checkpoint_test(NULL, &written), TSR_ERROR_ARGUMENT, "saving is NULL");
    CHECK_ERROR(tsr_checkpoint_test(saving, odd ? NULL : &written), own, "written is NULL");
    CHECK(written == 7);
    TSR_TRY(tsr_checkpoint_finish(saving));
    CHECK_ERROR(tsr_checkpoint_save(comm, folder, 0, &tensor, NULL), TSR_ERROR_ARGUMENT, "count is 0");
    CHECK_ERROR(tsr_checkpoint_save(comm, folder, 1, odd ? NULL : &tensor, NULL), own, "tensors is NULL");
    CHECK_ERROR(tsr_checkpoint_save(comm, folder, 1, odd ? &unnamed : &tensor, NULL), own, "tensors[0].name is NULL");
    options.shard_bytes = odd ? -1 : 0;
    CHECK_ERROR(tsr_checkpoint_save(comm, folder, 1, &tensor, &options), own, "shard_bytes is -1");
    options = (tsr_checkpoint_save_options){sizeof options, 0, 0, NULL, 2, twice, 0};
    CHECK_ERROR(tsr_checkpoint_save(comm, folder, 1, &tensor, &options), TSR_ERROR_ARGUMENT, "\"step\" comes twice");
    options.numbers = odd ? NULL : &step;
    options.number_count = 1;
    CHECK_ERROR(tsr_checkpoint_save(comm, folder, 1, &tensor, &options), own, "options.numbers is NULL");
    options.numbers = &step;
    options.metadata_count = 1;
    options.metadata = &text;
    TSR_TRY(tsr_checkpoint_save(comm, folder, 1, &tensor, &options));
    CHECK_ERROR(tsr_checkpoint_load(comm, folder, 1, odd ? NULL : &target, NULL), own, "targets is NULL");
    CHECK_ERROR(tsr_checkpoint_load(comm, folder, 1, odd ? &none : &target, NULL), own, "targets[0].x is NULL");
    CHECK_ERROR(tsr_checkpoint_load(comm, folder, 1, odd ? &missing : &target, NULL), own, "there is no tensor z");
    CHECK_ERROR(tsr_checkpoint_load(comm, folder, 1, odd ? &other : &target, NULL), own, "there is no tensor k");
    loading.number_count = 1;
    loading.numbers = &model;
    CHECK_ERROR(tsr_checkpoint_load(comm, folder, 1, &target, &loading), TSR_ERROR_ARGUMENT, "which is not a number");
    model.key = "seed";
    CHECK_ERROR(tsr_checkpoint_load(comm, folder, 1, &target, &loading), TSR_ERROR_ARGUMENT, "has no number seed");
    TSR_TRY(check_smalls(&s));
    free_smalls(&s);
    return suite_check_usable(comm);
}

static void what_is_wrong_is_refused_on_all_ranks(void **state)
{
    (void)state;
    char folders[] = "folders", arguments[] = "arguments";
    suite_run(3, refuse_folders, folders);
    suite_run(1, remove_folder, folders);
    suite_run(3, refuse_arguments, arguments);
    suite_run(1, remove_folder, arguments);
}

/* A file of one f32 tensor "x" of this shape, and what its DCP_SHARDING_INFO says. */
typedef struct odd_file {
    const char *shape, *info;
    int bytes;
    tsr_status wanted;
    const char *part;
} odd_file;

static const odd_file odd_files[] = {
    {"[2,3]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0, 0]}}", 24, TSR_OK, NULL},
    {"[2,3]", "{x", 24, TSR_ERROR_ARGUMENT, "DCP_SHARDING_INFO: line 1"},
    {"[2,3]", "{}", 24, TSR_ERROR_ARGUMENT, "saved_offsets of tensor x, 2 whole numbers"},
    {"[2,3]", "[]", 24, TSR_ERROR_ARGUMENT, "saved_offsets of tensor x"},
    {"[2,3]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0]}}", 24, TSR_ERROR_ARGUMENT, "saved_offsets of tensor x"},
    {"[2,3]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0, -1]}}", 24, TSR_ERROR_ARGUMENT, "saved_offsets of tensor x"},
    {"[2,3]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0, 9223372036854775807]}}", 24, TSR_ERROR_ARGUMENT,
     "saved_offsets of"},
    {"[2,3]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0, 1]}}", 24, TSR_ERROR_ARGUMENT, "is not within the tensor"},
    {"[2,2]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0, 1]}}", 16, TSR_ERROR_ARGUMENT,
     "elements [0:2, 0:1] of [0:2, 0:3]"},
    {"[0,4611686018427387904,4611686018427387904]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0, 0, 0]}}", 0,
     TSR_ERROR_ARGUMENT, "tensor x has 3 dims"},
    {"[0,4611686018427387904]", "{\\\"x\\\": {\\\"saved_offsets\\\": [0, 0]}}", 0, TSR_ERROR_ARGUMENT,
     "elements [0:2, 0:3]"},
};

static tsr_status write_odd(const char *folder, const odd_file *odd)
{
    char path[2 * FOLDER_BYTES], text[512] = {0};
    const int length = snprintf(text + 8, sizeof text - 8,
                                "{\"__metadata__\":{\"DCP_SHARDING_INFO\":\"%s\"},"
                                "\"x\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,%d]}}",
                                odd->info, odd->shape, odd->bytes);
    text[0] = (char)(length % 256);
    text[1] = (char)(length / 256);
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/shard.safetensors", folder);
    FILE *const file = fopen(path, "wb");
    const size_t bytes = 8 + (size_t)length + (size_t)odd->bytes;
    CHECK(file && fwrite(text, 1, bytes, file) == bytes && fclose(file) == 0);
    return TSR_OK;
}

static tsr_status read_odd(tsr_comm *comm, void *arg)
{
    static const small x = {"x", "S(0)", 2, {2, 3}, 0};
    char folder[FOLDER_BYTES];
    smalls s;
    name_folder(arg, folder);
    TSR_TRY(make_smalls(comm, "2", 1, &x, true, &s));
    for (size_t i = 0; i < sizeof odd_files / sizeof *odd_files; i++) {
        const odd_file *const odd = &odd_files[i];
        if (tsr_comm_rank(comm) == 0)
            TSR_TRY(write_odd(folder, odd));
        TSR_TRY(tsr_comm_barrier(comm));
        if (odd->wanted == TSR_OK)
            TSR_TRY(load_smalls(comm, folder, &s, 0, NULL));
        else
            CHECK_ERROR(load_smalls(comm, folder, &s, 0, NULL), odd->wanted, odd->part);
        TSR_TRY(tsr_comm_barrier(comm));
    }
    free_smalls(&s);
    return suite_check_usable(comm);
}

static void what_files_say_of_boxes_is_not_trusted(void **state)
{
    (void)state;
    char kind[] = "odd";
    suite_run(2, read_odd, kind);
    suite_run(1, remove_folder, kind);
}

/* A shape that differs, and a Partial, whose terms are added up. */
static tsr_status reduce_and_misfit(tsr_comm *comm, void *arg)
{
    static const small sum = {"sum", "P(sum)", 2, {2, 3}, 5}, wide = {"sum", "S(0)", 2, {2, 4}, 5},
                       flat = {"sum", "R", 1, {6}, 5};
    char folder[FOLDER_BYTES];
    smalls p, w, f;
    name_folder(arg, folder);
    TSR_TRY(make_smalls(comm, "3", 1, &sum, true, &p));
    TSR_TRY(make_smalls(comm, "3", 1, &wide, true, &w));
    TSR_TRY(make_smalls(comm, "3", 1, &flat, true, &f));
    TSR_TRY(save_smalls(comm, folder, &p, NULL));
    CHECK_ERROR(load_smalls(comm, folder, &w, 0, NULL), TSR_ERROR_ARGUMENT,
                "size 3 along dim 1, but the dtensor has 4");
    CHECK_ERROR(load_smalls(comm, folder, &f, 0, NULL), TSR_ERROR_ARGUMENT, "tensor sum has 2 dims");
    TSR_TRY(check_smalls(&w));
    TSR_TRY(load_smalls(comm, folder, &p, 0, NULL));
    TSR_TRY(check_smalls(&p));
    free_smalls(&f);
    free_smalls(&w);
    free_smalls(&p);
    return TSR_OK;
}

static void terms_are_added_up_and_shapes_compared(void **state)
{
    (void)state;
    char kind[] = "partial";
    suite_run(3, reduce_and_misfit, kind);
    suite_run(1, remove_folder, kind);
}

int main(int count, char **arguments)
{
    suite_start(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_pytorch_are_read_on_other_ranks),
        cmocka_unit_test(files_in_the_form_of_pytorch_are_written),
        cmocka_unit_test(projections_are_fused_split_stacked_and_unstacked),
        cmocka_unit_test(maps_that_do_not_fit_are_refused_on_all_ranks),
        cmocka_unit_test(what_is_wrong_is_refused_on_all_ranks),
        cmocka_unit_test(what_files_say_of_boxes_is_not_trusted),
        cmocka_unit_test(terms_are_added_up_and_shapes_compared),
    };
    return cmocka_run_group_tests_name("checkpoints in other forms", tests, NULL, NULL);
}
