/*
 * Times the sums of ggml's meta device: over Tessera's communicator, and as ggml adds tensors
 * itself where a library has no such functions. Both run in one process, in turns, on the same
 * devices. Each device scales a tensor, then all are added; the same without sums tells what the
 * scaling takes.
 *
 * usage: bench-ggml-sums [DEVICES..]    (2 and 4; at most 16)
 */
#include <ggml-alloc.h>
#include <ggml-backend-impl.h>
#include <ggml.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DEVICES = 16, SUMS = 8, WAYS = 4 };

typedef void *find_function(ggml_backend_reg_t reg, const char *name);

/* Who adds: Tessera; ggml, while devices compute at once; ggml, while they compute one after the
 * other, as all CPU backends of ggml do; nobody. */
typedef enum way { TESSERA, GGML, GGML_IN_TURN, NOBODY } way;

/* What the replaced registry answers by. */
static find_function *original;
static way chosen;

static bool refuse(void *comm, struct ggml_tensor **tensors)
{
    (void)comm, (void)tensors;
    return false;
}

static bool ignore(void *comm, struct ggml_tensor **tensors)
{
    (void)comm, (void)tensors;
    return true;
}

static void *find(ggml_backend_reg_t reg, const char *name)
{
    const ggml_backend_comm_allreduce_tensor_t replaced = chosen == GGML ? refuse : ignore;
    void *found = original(reg, name);
    if (chosen == GGML_IN_TURN && strcmp(name, "ggml_backend_comm_init") == 0)
        return NULL;
    if ((chosen == GGML || chosen == NOBODY) && strcmp(name, "ggml_backend_comm_allreduce_tensor") == 0)
        memcpy(&found, &replaced, sizeof found);
    return found;
}

/* Tensors named "term" are terms of a sum, all others are on all devices. */
static struct ggml_backend_meta_split_state split(const struct ggml_tensor *tensor, void *data)
{
    struct ggml_backend_meta_split_state state = {.axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED, .nr = {1}, .n_segments = 1};
    (void)data;
    if (strcmp(tensor->name, "term") == 0)
        state.axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL;
    return state;
}

/* A graph of SUMS sums of `elements` each, on a meta device. */
typedef struct stage {
    ggml_backend_t backend;
    struct ggml_context *constants, *nodes;
    ggml_backend_buffer_t buffer;
    ggml_gallocr_t allocator;
    struct ggml_cgraph *graph;
} stage;

static stage open_stage(ggml_backend_dev_t device, int64_t elements)
{
    const struct ggml_init_params params = {64 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    stage s = {ggml_backend_dev_init(device, NULL), ggml_init(params), ggml_init(params)};
    struct ggml_tensor *const term = ggml_new_tensor_1d(s.constants, GGML_TYPE_F32, elements);
    ggml_set_name(term, "term");
    s.buffer = ggml_backend_alloc_ctx_tensors_from_buft(s.constants, ggml_backend_get_default_buffer_type(s.backend));
    ggml_backend_buffer_clear(s.buffer, 0);
    s.graph = ggml_new_graph(s.nodes);
    for (int i = 0; i < SUMS; i++)
        ggml_build_forward_expand(s.graph, ggml_scale(s.nodes, ggml_scale(s.nodes, term, 1), 1));
    s.allocator = ggml_gallocr_new(ggml_backend_get_default_buffer_type(s.backend));
    ggml_gallocr_alloc_graph(s.allocator, s.graph);
    return s;
}

static void close_stage(stage *s)
{
    ggml_gallocr_free(s->allocator);
    ggml_backend_buffer_free(s->buffer);
    ggml_free(s->nodes);
    ggml_free(s->constants);
    ggml_backend_free(s->backend);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Prints what one sum and what it adds take by each way: the least of several rounds, in which
 * nobody disturbed it. */
static void run_size(ggml_backend_dev_t device, int devices, int64_t elements)
{
    stage stages[WAYS];
    double least[WAYS];
    const int repeats = elements < 100000 ? 10 : 1, rounds = elements < 1000000 ? 15 : 5;
    for (int w = 0; w < WAYS; w++) {
        chosen = (way)w;
        stages[w] = open_stage(device, elements);
    }
    for (int round = -1; round < rounds; round++)
        for (int w = 0; w < WAYS; w++) {
            const double begin = seconds();
            for (int i = 0; i < repeats; i++)
                if (ggml_backend_graph_compute(stages[w].backend, stages[w].graph) != GGML_STATUS_SUCCESS)
                    exit(1);
            const double took = (seconds() - begin) / (SUMS * repeats);
            if (round <= 0 || took < least[w])
                least[w] = took;
        }
    for (int w = 0; w < WAYS; w++)
        close_stage(&stages[w]);
    const double best = least[GGML] < least[GGML_IN_TURN] ? least[GGML] : least[GGML_IN_TURN];
    printf("%7d %9lld", devices, (long long)elements * 4 / 1024);
    for (int w = 0; w < WAYS; w++)
        printf(" %10.1f", least[w] * 1e6);
    printf(" %8.2f\n", best / least[TESSERA]);
    (void)fflush(stdout);
}

static void quiet(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR)
        (void)fputs(text, stderr);
}

static void run_devices(ggml_backend_reg_t reg, int devices)
{
    static const int64_t kib[] = {1, 16, 64, 1024, 16384};
    ggml_backend_dev_t members[MOST_DEVICES];
    for (int d = 0; d < devices; d++)
        members[d] = ggml_backend_reg_dev_get(reg, (size_t)d);
    for (size_t i = 0; i < sizeof kib / sizeof *kib; i++)
        run_size(ggml_backend_meta_device(members, (size_t)devices, split, NULL), devices, kib[i] * 256);
}

int main(int argc, char **argv)
{
    static const int usual[] = {2, 4};
    (void)setenv("TSR_GGML_DEVICES", "16", 0);
    ggml_log_set(quiet, NULL);
    const ggml_backend_reg_t reg = ggml_backend_load(GGML_TESSERA);
    if (!reg)
        return 1;
    original = reg->iface.get_proc_address;
    reg->iface.get_proc_address = find;
    printf("a tensor of f32 scaled on each device, and added over all, in us\n\n");
    printf("%7s %9s %10s %10s %10s %10s %8s\n", "devices", "KiB", "tessera", "ggml", "in turn", "no sum", "ratio");
    for (int i = 1; i < argc; i++)
        run_devices(reg, atoi(argv[i]));
    for (size_t i = 0; argc < 2 && i < sizeof usual / sizeof *usual; i++)
        run_devices(reg, usual[i]);
    return 0;
}
