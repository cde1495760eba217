/* Memory that a training takes: what the library's allocator gives a rank at a time, against what
 * was told before. */
#include "counted_memory.h"
#include "told.h"
#include "trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 4, STEPS = 2, BATCH = 16, LENGTH = 128 };

/* Bytes that a rank has, and the most that it had. */
typedef struct rank_bytes {
    atomic_llong now, most;
} rank_bytes;

/* Stands in front of the caller's bytes. */
typedef struct block {
    void *memory;
    rank_bytes *owner; /* NULL: allocated by no rank */
    long long bytes;
} block;

/* Whose allocations this thread makes; NULL: no rank's. */
static _Thread_local rank_bytes *mine;

static void count(rank_bytes *owner, long long bytes)
{
    if (!owner)
        return;
    const long long now = atomic_fetch_add(&owner->now, bytes) + bytes;
    long long most = atomic_load(&owner->most);
    while (now > most && !atomic_compare_exchange_weak(&owner->most, &most, now))
        ;
}

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    void *memory;
    const size_t front = alignment > 64 ? alignment : 64;
    (void)user;
    if (posix_memalign(&memory, front, front + bytes) != 0)
        return NULL;
    char *const at = (char *)memory + front;
    ((block *)at)[-1] = (block){memory, mine, (long long)bytes};
    count(mine, (long long)bytes);
    return at;
}

static void release(void *user, void *memory, size_t bytes)
{
    const block front = ((block *)memory)[-1];
    (void)user;
    (void)bytes;
    count(front.owner, -front.bytes);
    free(front.memory);
}

/* Tensors that are much larger than the lists of a program. */
static const char model[] = "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": %d, "
                            "\"intermediate_size\": %d, \"num_hidden_layers\": %d, \"num_attention_heads\": 4}";

static char text[1024];

static void read_model(int layers, int width, llama_config *out)
{
    char json[sizeof model + 16];
    snprintf(json, sizeof json, model, width, 2 * width, layers);
    assert_int_equal(llama_config_parse("config.json", json, strlen(json), out), TSR_OK);
}

/* A training, shared by its ranks. */
typedef struct work {
    train_plan plan;
    train_batches batches;
    bool validates;
    rank_bytes ranks[MOST_RANKS];
    int64_t told;
} work;

static tsr_status run(train_trainer *trainer, work *w)
{
    train_told told;
    double loss;
    if (tsr_comm_rank(trainer->comm) == 0)
        w->told = trainer->most_bytes;
    for (int64_t step = 0; step < STEPS; step++) {
        const tsr_status status = train_trainer_step(trainer, &w->batches, step, 1e-3, &told);
        if (status != TSR_OK)
            return status;
    }
    return w->validates ? train_trainer_validate(trainer, &w->batches, 1, &loss) : TSR_OK;
}

static tsr_status rank_main(tsr_comm *comm, void *arg)
{
    work *const w = arg;
    train_trainer *trainer;
    mine = &w->ranks[tsr_comm_rank(comm)];
    tsr_status status = train_trainer_create(comm, &w->plan, w->validates, &trainer);
    if (status == TSR_OK) {
        status = run(trainer, w);
        train_trainer_destroy(trainer);
    }
    mine = NULL;
    return status;
}

/* How a training is cut. */
typedef struct cutting {
    const char *mesh;
    int ranks;
    bool shards_states, by_elements, validates;
    int64_t micro_batches;
} cutting;

static train_plan plan_of(const llama_config *config, const cutting *c)
{
    const tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    return (train_plan){.config = config,
                        .mesh = c->mesh,
                        .batch = BATCH,
                        .length = LENGTH,
                        .dtype = TSR_F32,
                        .optimizer = adamw,
                        .clip = INFINITY,
                        .by_elements = c->by_elements,
                        .shards_states = c->shards_states,
                        .micro_batches = c->micro_batches};
}

static void check_peak(const cutting *c)
{
    static llama_config config;
    const train_data data = {.text = {text, sizeof text, sizeof text}, .count = sizeof text};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    long long most = 0;
    /* Of micro-batches there are two programs. */
    read_model(2, c->micro_batches > 1 ? 192 : 128, &config);
    work w = {.plan = plan_of(&config, c), .batches = {&data, BATCH, LENGTH, false, 0}, .validates = c->validates};
    options.allocator = (tsr_allocator){allocate, release, NULL};
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    if (tsr_threads_run(c->ranks, rank_main, &w, &threads) != TSR_OK)
        fail_msg("%s: %s", c->mesh, tsr_status_message());
    tsr_context_destroy(threads.context);
    for (int i = 0; i < c->ranks; i++)
        most = atomic_load(&w.ranks[i].most) > most ? atomic_load(&w.ranks[i].most) : most;
    if (llabs(most - (long long)w.told) > w.told / 20)
        fail_msg("%s: a rank takes %lld bytes, but %lld were told", c->mesh, most, (long long)w.told);
}

static void peaks_are_within_5_percent_of_what_was_told(void **state)
{
    static const cutting cases[] = {{"dp=1", 1, false, false, false, 1},        {"dp=2", 2, false, false, true, 1},
                                    {"dp=2", 2, true, false, false, 1},         {"fsdp=2", 2, false, false, false, 1},
                                    {"fsdp=3", 3, false, true, true, 1},        {"tp=2", 2, false, false, false, 1},
                                    {"dp=2,fsdp=2", 4, false, false, false, 1}, {"dp=2", 2, true, false, true, 3},
                                    {"fsdp=2", 2, false, true, false, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_peak(&cases[i]);
}

/* What rank 0 of an abstract mesh takes. */
static train_memory tell(int layers, const cutting *c)
{
    static llama_config config;
    train_memory m;
    tsr_context *context;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    read_model(layers, 128, &config);
    const train_plan plan = plan_of(&config, c);
    assert_int_equal(train_tell(&plan, context, false, &m), TSR_OK);
    tsr_context_destroy(context);
    return m;
}

/* A layer's weights are gathered while the one before it is at work, and dropped: two layers' are
 * there at a time, however many layers there are. */
static void gathered_weights_are_dropped(void **state)
{
    static const cutting fsdp = {"fsdp=4", 4, false, false, false, 1},
                         by_elements = {"fsdp=4", 4, false, true, false, 1}, dp = {"dp=4", 4, false, false, false, 1};
    const int64_t layer = 4 * 128 * 128 + 3 * 128 * 256 + 2 * 128, table = 256 * 128;
    (void)state;
    for (int layers = 2; layers <= 6; layers += 2) {
        const train_memory by_rows = tell(layers, &fsdp), elements = tell(layers, &by_elements),
                           whole = tell(layers, &dp);
        assert_true(by_rows.gathered <= (2 * layer + 2 * table) * (int64_t)sizeof(float) + 4096);
        assert_true(elements.gathered <= (2 * layer + 2 * table) * (int64_t)sizeof(float) + 4096);
        assert_int_equal(whole.gathered, 0);
    }
}

/* Parameters and states by stage, of sizes that divide; constants are beside. */
static void each_stage_cuts_what_it_says(void **state)
{
    static const cutting stages[] = {{"dp=4", 4, false, false, false, 1},
                                     {"dp=4", 4, true, false, false, 1},
                                     {"fsdp=4", 4, false, false, false, 2},
                                     {"dp=2,fsdp=2", 4, false, false, false, 1}};
    static const int parameters[] = {1, 1, 4, 2}, states[] = {1, 4, 4, 2};
    const int64_t count = 2 * (4 * 128 * 128 + 3 * 128 * 256 + 2 * 128) + 2 * 256 * 128 + 128;
    (void)state;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        const train_memory m = tell(2, &stages[i]);
        assert_int_equal(m.optimizer, 2 * count * (int64_t)sizeof(float) / states[i]);
        assert_true(m.weights >= count * (int64_t)sizeof(float) / parameters[i]);
        assert_true(m.weights <= count * (int64_t)sizeof(float) / parameters[i] + 1024);
    }
}

/* Compiles a step while the n-th allocation fails; a bias must not be left out, nor a weight. */
static tsr_status compile_in_want(const train_plan *plan, tsr_context *context, counted_memory *memory, size_t n)
{
    train_layouts layouts;
    train_shapes shapes = {0};
    tsr_executable *x = NULL;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    options.rank = 0;
    assert_int_equal(train_plan_lay(plan, NULL, context, &layouts), TSR_OK);
    memory->fail_at = n ? memory->allocations + n : 0;
    const tsr_status status = train_plan_compile(plan, &layouts, &shapes, context, TRAIN_STEP, &options, &x);
    memory->fail_at = 0;
    tsr_executable_destroy(x);
    train_shapes_finish(&shapes);
    train_layouts_finish(&layouts);
    return status;
}

static void a_lack_of_memory_is_called_one(void **state)
{
    static const cutting fsdp = {"fsdp=2", 2, false, true, false, 1};
    static llama_config config;
    counted_memory memory = {0};
    tsr_context *const context = counted_context(&memory);
    (void)state;
    read_model(1, 128, &config);
    config.attention_bias = true;
    const train_plan plan = plan_of(&config, &fsdp);
    size_t count = memory.allocations;
    assert_int_equal(compile_in_want(&plan, context, &memory, 0), TSR_OK);
    count = memory.allocations - count;
    for (size_t n = 1; n < count; n += n < 150 ? 1 : count / 8)
        assert_int_equal(compile_in_want(&plan, context, &memory, n), TSR_ERROR_MEMORY);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_are_within_5_percent_of_what_was_told),
        cmocka_unit_test(gathered_weights_are_dropped),
        cmocka_unit_test(each_stage_cuts_what_it_says),
        cmocka_unit_test(a_lack_of_memory_is_called_one),
    };
    memset(text, 'a', sizeof text);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
