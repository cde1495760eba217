/* What tsr_sync_create() and tsr_sync_run() refuse, on all ranks, and names. */
#include "comm_suite.h"

#include <tessera/sync.h>
#include <tessera/values.h>

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 5, SIDE = 4, MOST = 4 };

/* Lists of layouts on "3" and "2@3". */
typedef struct stage {
    tsr_comm *comm;
    int rank;
    tsr_mesh *from, *to;
    tsr_layout *f32, *i32, *wide, *bf16, *f32_there; /* `wide` has another shape */
} stage;

static tsr_status raise_stage(tsr_comm *comm, stage *s)
{
    const int64_t square[] = {SIDE, SIDE}, other[] = {SIDE, SIDE + 1};
    s->comm = comm;
    s->rank = tsr_comm_rank(comm);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &s->from));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@3", &s->to));
    TSR_TRY(tsr_layout_parse(s->from, "S(0)", 2, square, TSR_F32, &s->f32));
    TSR_TRY(tsr_layout_parse(s->from, "S(0)", 2, square, TSR_I32, &s->i32));
    TSR_TRY(tsr_layout_parse(s->from, "R", 2, other, TSR_F32, &s->wide));
    TSR_TRY(tsr_layout_parse(s->to, "S(1)", 2, square, TSR_BF16, &s->bf16));
    return tsr_layout_parse(s->to, "S(1)", 2, square, TSR_F32, &s->f32_there);
}

static void strike(const stage *s)
{
    tsr_layout_destroy(s->f32_there);
    tsr_layout_destroy(s->bf16);
    tsr_layout_destroy(s->wide);
    tsr_layout_destroy(s->i32);
    tsr_layout_destroy(s->f32);
    tsr_mesh_destroy(s->to);
    tsr_mesh_destroy(s->from);
}

/* Fails on all ranks, or on rank `odd` alone, of which the others are told. */
typedef struct refusal {
    const char *sources[MOST], *destinations[MOST]; /* names; the first character says the layout */
    tsr_sync_rule rules[2];
    tsr_status status;
    const char *part;
} refusal;

static char too_long[300];

static const refusal refusals[] = {
    {{"fa"}, {"bb"}, {{0}}, TSR_ERROR_ARGUMENT, "destination \"bb\" has no source: none of the 1 sources has its name"},
    {{"fx.1"},
     {"by.1"},
     {{"fz.*", "by.*"}},
     TSR_ERROR_ARGUMENT,
     "destination \"by.1\" has no source: by rule \"fz.*\" to \"by.*\" it would be \"fz.1\", which is not among the 1"},
    {{"fa", "fa"}, {"ba"}, {{"f*", "b*"}}, TSR_ERROR_ARGUMENT, "source \"fa\" comes twice"},
    {{"fa"}, {"ba", "bb", "ba"}, {{"f*", "b*"}}, TSR_ERROR_ARGUMENT, "destination \"ba\" comes twice"},
    {{"fa"}, {"ba"}, {{"f*", "b"}}, TSR_ERROR_ARGUMENT, "both need the same number of '*'"},
    {{"fa"}, {"ba"}, {{"f*", ""}}, TSR_ERROR_ARGUMENT, "the destination of rule 0: its name \"\" must have 1 to 255"},
    {{"wa"},
     {"ba"},
     {{"w*", "b*"}},
     TSR_ERROR_ARGUMENT,
     "destination \"ba\" is bf16 4x4 S(1) on mesh 2@3, source \"wa\" is f32 4x5 R on mesh 3: both must have the same"},
    {{"ia"},
     {"ba"},
     {{"i*", "b*"}},
     TSR_ERROR_UNSUPPORTED,
     "\"ba\" is bf16, source \"ia\" is i32: only floating types"},
    {{"fa"}, {too_long}, {{0}}, TSR_ERROR_ARGUMENT, "destination 0: its name \"bbbb"},
    {{"fa", ""}, {"ba"}, {{"f*", "b*"}}, TSR_ERROR_ARGUMENT, "source 1: its name \"\" must have 1 to 255 characters"},
    {{"fa"}, {NULL}, {{0}}, TSR_ERROR_ARGUMENT, "destination_count is 0"},
    {{"na"}, {"ba"}, {{"n*", "b*"}}, TSR_ERROR_ARGUMENT, "source \"na\": its layout is NULL"},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

static size_t list(const stage *s, const char *const *names, tsr_sync_tensor *out)
{
    size_t count = 0;
    for (; count < MOST && names[count]; count++) {
        const char kind = names[count][0];
        const tsr_layout *const layout = kind == 'f'   ? s->f32
                                         : kind == 'i' ? s->i32
                                         : kind == 'w' ? s->wide
                                         : kind == 'n' ? NULL
                                         : kind == 't' ? s->f32_there
                                                       : s->bf16;
        out[count] = (tsr_sync_tensor){names[count], layout};
    }
    return count;
}

static tsr_status create(const stage *s, const refusal *r, tsr_sync **out)
{
    tsr_sync_tensor sources[MOST], destinations[MOST];
    tsr_sync_options options = TSR_SYNC_OPTIONS_INIT;
    options.rules = r->rules;
    while (options.rule_count < 2 && r->rules[options.rule_count].from)
        options.rule_count++;
    const size_t source_count = list(s, r->sources, sources), count = list(s, r->destinations, destinations);
    return tsr_sync_create(s->comm, source_count, sources, count, destinations, &options, out);
}

static const refusal good = {{"fa", "fb"}, {"ba", "bb"}, {{"f*", "b*"}}, TSR_OK, NULL};
static const refusal wider = {{"fa", "fb"}, {"ba", "tb"}, {{"fa", "ba"}, {"f*", "t*"}}, TSR_OK, NULL};

static tsr_status refuse_lists(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_sync *sync = NULL;
    (void)arg;
    TSR_TRY(raise_stage(comm, &s));
    for (int i = 0; i < REFUSALS; i++) {
        const refusal *const r = &refusals[i];
        CHECK_ERROR(create(&s, r, &sync), r->status, r->part);
        CHECK_ERROR(create(&s, s.rank == i % RANKS ? r : &good, &sync),
                    s.rank == i % RANKS ? r->status : TSR_ERROR_PEER, r->part);
        CHECK(!sync);
    }
    CHECK_ERROR(create(&s, s.rank == 2 ? &wider : &good, &sync), TSR_ERROR_ARGUMENT,
                "a sync of 2 sources and 2 destinations");
    CHECK_ERROR(create(&s, &good, s.rank == 1 ? NULL : &sync), s.rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tsr_sync_create: out is NULL");
    CHECK_ERROR(tsr_sync_create(NULL, 0, NULL, 0, NULL, NULL, &sync), TSR_ERROR_ARGUMENT, "comm is NULL");
    CHECK_ERROR(tsr_sync_create(comm, 2, NULL, 1, &(tsr_sync_tensor){"a", s.bf16}, NULL, &sync), TSR_ERROR_ARGUMENT,
                "the list of 2 sources is NULL");
    tsr_sync_destroy(NULL);
    strike(&s);
    return TSR_OK;
}

static void lists_are_refused_on_all_ranks(void **state)
{
    (void)state;
    memset(too_long, 'b', sizeof too_long - 1);
    suite_run(RANKS, refuse_lists, NULL);
}

typedef struct tensors {
    tsr_dtensor *x[2], *y[2], *other;
} tensors;

static tsr_status make_tensors(const stage *s, tensors *t)
{
    for (int i = 0; i < 2; i++) {
        TSR_TRY(tsr_dtensor_create(s->f32, tsr_device_host(), &t->x[i]));
        TSR_TRY(tsr_dtensor_create(s->bf16, tsr_device_host(), &t->y[i]));
        TSR_TRY(tsr_dtensor_fill(t->x[i], 1.5 + i, NULL));
    }
    return tsr_dtensor_create(s->f32_there, tsr_device_host(), &t->other);
}

static tsr_status check_filled(const tensors *t, int factor)
{
    for (int i = 0; i < 2; i++) {
        const tsr_tensor y = tsr_dtensor_to_local(t->y[i]);
        int64_t count;
        TSR_TRY(tsr_tensor_count(&y, &count));
        for (int64_t k = 0; k < count; k++)
            CHECK(((const uint16_t *)y.data)[k] == (i == 0 ? 0x3fc0 : 0x4020) + factor);
    }
    return TSR_OK;
}

/* A source is missing on rank 1, then a destination of rank 3 has another dtype; each time the next
 * run serves. */
static tsr_status refuse_tensors(tsr_comm *comm, void *arg)
{
    stage s;
    tensors t;
    tsr_sync *sync = NULL;
    (void)arg;
    TSR_TRY(raise_stage(comm, &s));
    TSR_TRY(make_tensors(&s, &t));
    TSR_TRY(create(&s, &good, &sync));
    const tsr_dtensor *const sources[] = {t.x[0], t.x[1]}, *const missing[] = {t.x[0], NULL};
    tsr_dtensor *const destinations[] = {t.y[0], t.y[1]}, *const other[] = {t.other, t.y[1]};
    for (int round = 0; round < 3; round++) {
        CHECK_ERROR(tsr_sync_run(sync, s.rank == 1 ? missing : sources, destinations, NULL),
                    s.rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                    "tsr_sync_run: source 1 is NULL, but this rank is in its mesh");
        TSR_TRY(tsr_sync_run(sync, s.rank < 3 ? sources : NULL, s.rank < 3 ? NULL : destinations, NULL));
        TSR_TRY(check_filled(&t, 0));
        const tsr_status started = tsr_sync_start(sync, sources, s.rank == 3 ? other : destinations, NULL);
        CHECK_ERROR(started == TSR_OK ? tsr_sync_finish(sync) : started,
                    s.rank == 3 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                    "tsr_sync_start: destination 0 is f32 4x4 S(1) on mesh 2@3, but the sync was created for bf16 4x4");
    }
    CHECK_ERROR(tsr_sync_run(NULL, sources, destinations, NULL), TSR_ERROR_ARGUMENT, "tsr_sync_run: sync is NULL");
    CHECK_ERROR(tsr_sync_start(NULL, sources, destinations, NULL), TSR_ERROR_ARGUMENT, "tsr_sync_start: sync is NULL");
    CHECK_ERROR(tsr_sync_finish(NULL), TSR_ERROR_ARGUMENT, "tsr_sync_finish: sync is NULL");
    TSR_TRY(tsr_sync_run(sync, sources, destinations, NULL));
    TSR_TRY(check_filled(&t, 0));
    tsr_sync_destroy(sync);
    for (int i = 0; i < 2; i++) {
        tsr_dtensor_destroy(t.y[i]);
        tsr_dtensor_destroy(t.x[i]);
    }
    tsr_dtensor_destroy(t.other);
    strike(&s);
    return TSR_OK;
}

static void a_rank_with_wrong_tensors_tells_the_others(void **state)
{
    (void)state;
    suite_run(RANKS, refuse_tensors, NULL);
}

/* A destination, the source that rules find, and those that they must not take for it. */
typedef struct naming {
    tsr_sync_rule rule;
    const char *destination, *source;
} naming;

static const naming namings[] = {
    {{"model.layers.*.q.weight", "blocks.*.wq"}, "blocks.12.wq", "model.layers.12.q.weight"},
    {{"model.*", "*"}, "layers.0.w", "model.layers.0.w"},
    {{"*.*", "*/*"}, "a/b/c", "a.b/c"},
    {{"a*b*c", "x*y*z"}, "xxyyyzz", "axbyyzc"},
    {{"embed", "head"}, "head", "embed"},
    {{"a*", "*"}, "a", "aa"},
    {{"a*", "b*"}, "b", "b"},
    {{"x*", "*aab"}, "aaab", "xa"},
};

static tsr_status find_sources(tsr_comm *comm, void *arg)
{
    stage s;
    (void)arg;
    TSR_TRY(raise_stage(comm, &s));
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        const naming *const n = &namings[i];
        const tsr_sync_tensor sources[] = {{"not", s.i32}, {n->source, s.f32}}, destination = {n->destination, s.bf16};
        tsr_sync_options options = TSR_SYNC_OPTIONS_INIT;
        tsr_sync *sync = NULL;
        size_t source = 0;
        options.rule_count = 1;
        options.rules = &n->rule;
        TSR_TRY(tsr_sync_create(comm, 2, sources, 1, &destination, &options, &sync));
        TSR_TRY(tsr_sync_source_of(sync, 0, &source));
        CHECK(source == 1);
        tsr_sync_destroy(sync);
    }
    strike(&s);
    return TSR_OK;
}

static void rules_find_sources(void **state)
{
    (void)state;
    suite_run(RANKS, find_sources, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_refused_on_all_ranks),
        cmocka_unit_test(a_rank_with_wrong_tensors_tells_the_others),
        cmocka_unit_test(rules_find_sources),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
