#include "sweep.h"

#include "actor.h"
#include "counted_memory.h"
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES_TO_SHOW = 5 };

/* The description of a case. */
typedef struct words {
    char text[3000];
    size_t length;
} words;

__attribute__((format(printf, 2, 3))) static void say(words *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(w->text + w->length, sizeof w->text - w->length, format, arguments);
    va_end(arguments);
    w->length += length > 0 ? (size_t)length : 0;
    w->length = w->length < sizeof w->text ? w->length : sizeof w->text - 1;
}

static void say_pair(words *w, const oracle_layout *src, const oracle_layout *dst)
{
    char mesh[300], other[300], shape[100], from[400], to[400];
    oracle_print_mesh(&src->mesh, mesh, sizeof mesh);
    oracle_print_mesh(&dst->mesh, other, sizeof other);
    say(w, "--mesh %s%s%s --shape %s --dtype %s --from \"%s\" --to \"%s\"", mesh,
        strcmp(mesh, other) != 0 ? " --to-mesh " : "", strcmp(mesh, other) != 0 ? other : "",
        oracle_print_shape(src->ndim, src->shape, shape, sizeof(shape)), oracle_dtype_name(src->dtype),
        oracle_print_placements(src->placements, src->mesh.ndim, from, sizeof from),
        oracle_print_placements(dst->placements, dst->mesh.ndim, to, sizeof to));
}

static void name_case(const sweep_case *c)
{
    static const char *const caps[] = {"", ", least workspace", ", little workspace"};
    words w = {.length = 0};
    say(&w, "tessera redistribute ");
    say_pair(&w, &c->src, &c->dst);
    say(&w, " --mode %s (%s%s%s%s%s, seed %llu)", c->mode == TSR_MODE_DIRECT ? "direct" : "message",
        c->way == WAY_DTENSORS ? "tsr_redistribute_into"
        : c->halves            ? "tsr_plan_start"
                               : "tsr_plan_execute",
        c->strided ? ", strided" : "", caps[c->cap], c->no_split ? ", no_split" : "", c->more > 0 ? ", a batch" : "",
        (unsigned long long)c->seed);
    for (int i = 1; i <= c->more; i++) {
        say(&w, "\n   with ");
        say_pair(&w, sweep_source(c, i), sweep_destination(c, i));
    }
    test_case("%s", w.text);
}

/* The oracle's figures for all tensors of a case together. */
typedef struct figures {
    bool exact, told; /* `exact`: `received` is known for each rank; `told`: so is `sent` */
    bool in_place;
    int64_t total, received[ORACLE_MAX_RANKS], sent[ORACLE_MAX_RANKS];
} figures;

static void figure(const stage *s, figures *f)
{
    int64_t total, received[ORACLE_MAX_RANKS], sent[ORACLE_MAX_RANKS];
    *f = (figures){
        .exact = true, .told = s->current.nodes.ranks_per_node == 0 && s->current.nodes.count == 0, .in_place = true};
    for (int i = 0; i <= s->current.more; i++) {
        const bool exact = oracle_lower_bound(&s->moves[i], s->sweep->world, &total, received);
        const bool told = oracle_sent(&s->moves[i], s->sweep->world, sent);
        f->exact = f->exact && exact;
        f->told = f->told && told;
        f->in_place = f->in_place && oracle_in_place(&s->moves[i]);
        f->total += total;
        for (int r = 0; r < s->sweep->world; r++) {
            f->received[r] += exact ? received[r] : 0;
            f->sent[r] += told ? sent[r] : 0;
        }
    }
}

/* Compares the figures of all ranks with the oracle's. Returns NULL or a message. */
static const char *wrong_figures(const stage *s, char *text, size_t capacity)
{
    int64_t received = 0, sent = 0;
    figures f;
    figure(s, &f);
    const bool least = s->current.objective == TSR_OBJECTIVE_BYTES;
    for (int r = 0; r < s->sweep->world; r++) {
        const verdict *v = &s->verdicts[r];
        received += v->received;
        sent += v->sent;
        snprintf(text, capacity, "rank %d: %lld bytes received, the bound is %lld", r, (long long)v->received,
                 (long long)f.received[r]);
        if (f.exact && v->received != f.received[r])
            return text;
        snprintf(text, capacity, "rank %d: %lld bytes sent, by the rule for senders it is %lld", r, (long long)v->sent,
                 (long long)f.sent[r]);
        if (f.told && v->sent != f.sent[r])
            return text;
        snprintf(text, capacity, "rank %d: tsr_plan_in_place() is %d", r, v->in_place);
        if (v->in_place != f.in_place)
            return text;
    }
    snprintf(text, capacity, "%lld bytes received in all, %lld sent, the bound is %lld", (long long)received,
             (long long)sent, (long long)f.total);
    return received == sent && received >= f.total && (received == f.total || !least) ? NULL : text;
}

static void judge(stage *s)
{
    char text[256];
    const char *wrong = NULL;
    for (int r = s->sweep->world - 1; r >= 0; r--)
        wrong = s->verdicts[r].failed ? s->verdicts[r].text : wrong;
    if (!wrong && s->current.way == WAY_PLAN)
        wrong = wrong_figures(s, text, sizeof text);
    s->sweep->ran++;
    if (!wrong)
        return;
    fprintf(stderr, "%s\n   %s\n", test_case_text(), wrong);
    s->stop = true;
}

static void set_next(stage *s)
{
    s->more = false;
    while (!s->stop && !s->more && s->next < s->sweep->count) {
        if (s->sweep->deadline > 0 && test_now() > s->sweep->deadline)
            return;
        memset(&s->current, 0, sizeof s->current);
        s->more = s->sweep->make(s->sweep->arg, s->next++, &s->current);
    }
    if (!s->more)
        return;
    if (s->sweep->engine != ENGINE_THREADS)
        s->current.mode = TSR_MODE_MESSAGE;
    s->current.no_split = s->current.no_split || s->sweep->engine == ENGINE_LENT;
    name_case(&s->current);
    for (int i = 0; i <= s->current.more; i++)
        oracle_move_make(sweep_source(&s->current, i), sweep_destination(&s->current, i), &s->moves[i]);
}

static void play(actor *a)
{
    stage *s = a->stage;
    for (;;) {
        if (a->rank == 0)
            set_next(s);
        pthread_barrier_wait(&s->barrier);
        if (!s->more)
            break;
        actor_play(a);
        pthread_barrier_wait(&s->barrier);
        if (a->rank == 0)
            judge(s);
    }
    actor_finish(a);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    actor a = {.stage = s, .comm = comm, .rank = tsr_comm_rank(comm)};
    a.verdict = &s->verdicts[a.rank];
    if (s->sweep->engine == ENGINE_MESSAGES)
        TSR_TRY(message_engine_create(comm, NULL, &a.comm));
    if (s->sweep->engine == ENGINE_LENT)
        TSR_TRY(lend(comm, &a.comm));
    play(&a);
    if (a.comm != comm)
        tsr_comm_destroy(a.comm);
    return TSR_OK;
}

/* Runs cases on one set of rank threads. A failed case ends the set, because it may have broken
 * the communicator. */
static bool run_once(stage *s)
{
    counted_memory memory = {0};
    tsr_context_options context_options = TSR_CONTEXT_OPTIONS_INIT;
    context_options.allocator = counted_allocator(&memory);
    tsr_context *context = NULL;
    s->stop = false;
    pthread_barrier_init(&s->barrier, NULL, (unsigned)s->sweep->world);
    tsr_status status = tsr_context_create(&context_options, &context);
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context;
    if (status == TSR_OK)
        status = (s->sweep->run ? s->sweep->run : tsr_threads_run)(s->sweep->world, run_rank, s, &options);
    if (status != TSR_OK) {
        fprintf(stderr, "the ranks: %s\n", tsr_status_message());
        s->stop = true;
    }
    tsr_context_destroy(context);
    if (!s->stop)
        assert_nothing_leaked(&memory);
    pthread_barrier_destroy(&s->barrier);
    return !s->stop;
}

int sweep_run(move_sweep *sweep)
{
    stage *s = calloc(1, sizeof *s);
    s->sweep = sweep;
    s->next = sweep->first;
    int failures = 0;
    while (failures < FAILURES_TO_SHOW && !run_once(s))
        failures++;
    free(s);
    return failures;
}
