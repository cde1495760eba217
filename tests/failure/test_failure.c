/*
 * Failures of one rank, which all ranks must report: the n-th allocation fails for every n, the
 * k-th call of the engine fails for every k, a rank leaves at every step, a rank passes other
 * arguments at every step. No rank hangs, nothing leaks, and outputs stay unwritten.
 */
#include "counted_memory.h"
#include "message_engine.h"
#include "script.h"
#include "support.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 3, MAIN_THREAD = -1 };

/* What goes wrong on one rank. After a failed allocation and after other arguments the communicator
 * stays usable. */
typedef enum trouble { ALLOCATION, OTHER_ARGUMENTS, DEPARTURE, ENGINE } trouble;

/* The end of one rank's run. */
typedef struct ending {
    int step; /* the first step that failed, or the script's length */
    tsr_status status, barrier;
    char sentence[1024];
} ending;

typedef struct trial {
    trouble kind;
    int victim;
    int messages; /* the engine has only messages */
    int at;       /* allocation number, step, or number of an engine's call */
    ending endings[RANKS];
} trial;

static void run_script(actor *a, const trial *t, ending *end)
{
    for (end->step = 0; end->step < script_length; end->step++) {
        const int strange = a->rank == t->victim && end->step == t->at;
        if (strange && t->kind == DEPARTURE)
            return;
        end->status = script[end->step].run(a, strange && t->kind == OTHER_ARGUMENTS);
        if (end->status == TSR_OK)
            continue;
        snprintf(end->sentence, sizeof end->sentence, "%s", tsr_status_message());
        return;
    }
}

static int all_arrive_at(const ending *end)
{
    return end->step < script_length && script[end->step].collective;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    trial *t = arg;
    actor a;
    int calls = t->at;
    tsr_comm *messages = NULL;
    if (t->messages)
        TSR_TRY(message_engine_create(comm, t->kind == ENGINE && t->victim == tsr_comm_rank(comm) ? &calls : NULL,
                                      &messages));
    actor_start(&a, messages ? messages : comm);
    ending *end = &t->endings[a.rank];
    counted_fail_here(t->kind == ALLOCATION && t->victim == a.rank ? (size_t)t->at : 0, false);
    run_script(&a, t, end);
    counted_fail_here(0, false);
    /* A failure in the middle of a collective call leaves the communicator usable. */
    end->barrier = all_arrive_at(end) && t->kind < DEPARTURE ? tsr_comm_barrier(comm) : TSR_OK;
    actor_finish(&a);
    tsr_comm_destroy(messages);
    if (end->status != TSR_OK)
        return tsr_status_set(end->status, "%s", end->sentence);
    return TSR_OK;
}

static tsr_status run_trial(trial *t)
{
    counted_memory memory = {0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.context = counted_context(&memory);
    memset(t->endings, 0, sizeof t->endings);
    counted_fail_here(t->victim == MAIN_THREAD ? (size_t)t->at : 0, false);
    const tsr_status status = tsr_threads_run(RANKS, run_rank, t, &threads);
    counted_fail_here(0, false);
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
    return status;
}

static const char *step_name(int at)
{
    return at < script_length ? script[at].name : "the end";
}

static void say(const trial *t, const char *what)
{
    for (int r = 0; r < RANKS; r++)
        fprintf(stderr, "   rank %d ended at %s: %s (%s), barrier %s\n", r, step_name(t->endings[r].step),
                tsr_status_name(t->endings[r].status), t->endings[r].sentence, tsr_status_name(t->endings[r].barrier));
    fail_msg("%s\ncase: %s", what, test_case_text());
}

static int names_rank(const ending *end, int rank)
{
    char text[16];
    snprintf(text, sizeof text, "rank %d", rank);
    return strstr(end->sentence, text) != NULL;
}

/* The victim returns a lack of memory. The others hear of it in the call that all make together, or
 * when the victim leaves. */
static void judge_allocation(const trial *t)
{
    const ending *victim = &t->endings[t->victim];
    if (victim->status != TSR_OK && victim->status != TSR_ERROR_MEMORY)
        say(t, "the rank without memory says something else");
    for (int r = 0; r < RANKS; r++) {
        const ending *end = &t->endings[r];
        if (r == t->victim || victim->status == TSR_OK) {
            if (victim->status == TSR_OK && end->status != TSR_OK)
                say(t, "nobody failed, but a rank did");
            continue;
        }
        if (end->status != TSR_ERROR_PEER || !names_rank(end, t->victim))
            say(t, "a peer is not told which rank failed");
        if (all_arrive_at(victim) && end->step != victim->step)
            say(t, "a peer fails at another step");
    }
    if (all_arrive_at(victim))
        for (int r = 0; r < RANKS; r++)
            if (t->endings[r].barrier != TSR_OK)
                say(t, "the communicator is broken by a local failure");
}

static void every_allocation_of_every_rank_fails_once(void **state)
{
    (void)state;
    for (int run = 0; run < 2 * RANKS; run++) {
        const int victim = run / 2, messages = run % 2;
        int failures = 0, quiet = 0;
        for (int n = 1; quiet == 0; n++) {
            trial t = {.kind = ALLOCATION, .victim = victim, .messages = messages, .at = n};
            test_case("allocation %d of rank %d fails%s", n, victim, messages ? ", over messages" : "");
            const tsr_status status = run_trial(&t);
            judge_allocation(&t);
            failures += status == TSR_ERROR_MEMORY;
            quiet = t.endings[victim].status == TSR_OK;
        }
        /* The script makes at least a mesh, two layouts, a dtensor and a plan. */
        assert_true(failures >= 8);
    }
}

static void every_allocation_of_the_start_fails_once(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        trial t = {.kind = ALLOCATION, .victim = MAIN_THREAD, .at = n};
        test_case("allocation %d of tsr_threads_run fails", n);
        const tsr_status status = run_trial(&t);
        if (status == TSR_OK) {
            assert_true(n > 1);
            break;
        }
        assert_int_equal(status, TSR_ERROR_MEMORY);
    }
}

static void a_rank_that_leaves_is_named_to_all_others(void **state)
{
    (void)state;
    for (int victim = 0; victim < RANKS; victim++) {
        for (int at = 0; at < script_length; at++) {
            if (!script[at].can_be_left)
                continue;
            trial t = {.kind = DEPARTURE, .victim = victim, .at = at};
            test_case("rank %d returns before %s", victim, script[at].name);
            (void)run_trial(&t);
            for (int r = 0; r < RANKS; r++)
                if (r != victim && (t.endings[r].status != TSR_ERROR_PEER || !names_rank(&t.endings[r], victim)))
                    say(&t, "a peer is not told who left");
        }
    }
}

static void a_rank_with_other_arguments_is_named_to_all(void **state)
{
    (void)state;
    for (int victim = 0; victim < RANKS; victim++) {
        for (int at = 0; at < script_length; at++) {
            if (!script[at].can_be_odd)
                continue;
            trial t = {.kind = OTHER_ARGUMENTS, .victim = victim, .at = at};
            test_case("rank %d calls %s with other arguments", victim, script[at].name);
            (void)run_trial(&t);
            for (int r = 0; r < RANKS; r++) {
                const ending *end = &t.endings[r];
                if (end->status != TSR_ERROR_ARGUMENT || end->step != at || !names_rank(end, victim == 0 ? 1 : victim))
                    say(&t, "the lowest rank that differs from rank 0 is not named to all");
                if (end->barrier != TSR_OK)
                    say(&t, "the communicator is broken by a disagreement");
            }
        }
    }
}

/* The engine of one rank fails at its k-th call and that rank leaves with the error; the others are
 * released. */
static void every_call_of_an_engine_fails_once(void **state)
{
    (void)state;
    for (int victim = 0; victim < RANKS; victim++) {
        int failures = 0;
        for (int k = 1;; k++) {
            trial t = {.kind = ENGINE, .victim = victim, .messages = 1, .at = k};
            test_case("call %d of the engine of rank %d fails", k, victim);
            const tsr_status status = run_trial(&t);
            if (status == TSR_OK)
                break;
            if (t.endings[victim].status != TSR_ERROR_DEVICE ||
                !strstr(t.endings[victim].sentence, "the engine of rank"))
                say(&t, "the engine's own error is lost");
            for (int r = 0; r < RANKS; r++)
                if (r != victim && t.endings[r].status != TSR_ERROR_PEER)
                    say(&t, "a peer is not told");
            failures++;
        }
        assert_true(failures >= 8);
    }
}

static void without_trouble_the_script_runs_through(void **state)
{
    (void)state;
    trial t = {.kind = DEPARTURE, .victim = RANKS, .at = 0};
    test_case("no trouble");
    if (run_trial(&t) != TSR_OK)
        say(&t, "it does not");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_trouble_the_script_runs_through),
        cmocka_unit_test(every_allocation_of_every_rank_fails_once),
        cmocka_unit_test(every_allocation_of_the_start_fails_once),
        cmocka_unit_test(every_call_of_an_engine_fails_once),
        cmocka_unit_test(a_rank_that_leaves_is_named_to_all_others),
        cmocka_unit_test(a_rank_with_other_arguments_is_named_to_all),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
