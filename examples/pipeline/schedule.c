#include "schedule.h"

#include <stdio.h>

/* The turns from one stage's work on a micro-batch to its neighbour's. */
static int64_t turns_between(const schedule *s)
{
    return s->travels ? 2 : 1;
}

static int64_t check(const schedule *s, int64_t micro_batch)
{
    return micro_batch >= 0 && micro_batch < s->micro_batches ? micro_batch : SCHEDULE_NONE;
}

int64_t schedule_turns(const schedule *s)
{
    return s->micro_batches + 2 * turns_between(s) * (s->stages - 1);
}

int64_t schedule_forward(const schedule *s, int64_t turn, int stage)
{
    return check(s, turn - turns_between(s) * stage);
}

/* A micro-batch goes through all stages, and back from the last one. */
int64_t schedule_backward(const schedule *s, int64_t turn, int stage)
{
    return check(s, turn - turns_between(s) * (2 * (s->stages - 1) - stage));
}

int64_t schedule_kept_sent(const schedule *s)
{
    return turns_between(s);
}

int64_t schedule_kept(const schedule *s, int stage)
{
    return turns_between(s) * (2 * (s->stages - 1 - stage) + 1);
}

/* What travels while the stages compute in a turn. */
static void print_travelling(const schedule *s, int64_t turn)
{
    for (int stage = 0; s->travels && turn > 0 && stage + 1 < s->stages; stage++) {
        const int64_t activation = schedule_forward(s, turn - 1, stage);
        const int64_t gradient = schedule_backward(s, turn - 1, stage + 1);
        if (activation != SCHEDULE_NONE)
            printf(" A%lld:%d>%d", (long long)activation, stage, stage + 1);
        if (gradient != SCHEDULE_NONE)
            printf(" G%lld:%d>%d", (long long)gradient, stage + 1, stage);
    }
}

static void print_work(const schedule *s, int64_t turn, int stage)
{
    char forward[24] = "", backward[24] = "";
    const int64_t f = schedule_forward(s, turn, stage), b = schedule_backward(s, turn, stage);
    if (f != SCHEDULE_NONE)
        snprintf(forward, sizeof forward, "F%lld", (long long)f);
    if (b != SCHEDULE_NONE)
        snprintf(backward, sizeof backward, "B%lld", (long long)b);
    printf(" | %-4s %-4s", forward, backward);
}

void schedule_print(const schedule *s)
{
    printf("turn");
    for (int stage = 0; stage < s->stages; stage++)
        printf(" | stage %-3d", stage);
    printf(" | on the way meanwhile\n");
    for (int64_t turn = 0; turn < schedule_turns(s); turn++) {
        printf("%4lld", (long long)turn);
        for (int stage = 0; stage < s->stages; stage++)
            print_work(s, turn, stage);
        printf(" |");
        print_travelling(s, turn);
        printf("\n");
    }
}
