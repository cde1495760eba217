#include "comm/threads/stall.h"

#include "base/checked.h"
#include "base/text.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/sys/log.h>
#include <unistd.h>

/* Ranks of which a sentence tells where they wait. */
#define RANKS_NAMED 3

/* Nanoseconds between two looks at least, and how often what a look took. */
#define BETWEEN_LOOKS_NS   INT64_C(200000000)
#define BETWEEN_LOOKS_LONG 20

/* How many threads this process has: the 20th field of a line whose second is a name in parentheses. 0: not known. */
static int64_t count_threads(void)
{
    char line[1024];
    const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    const ssize_t length = read(file, line, sizeof line - 1);
    close(file);
    line[length > 0 ? length : 0] = '\0';
    const char *at = strrchr(line, ')');
    for (int field = 2; at && field < 20; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at, NULL, 10) : 0;
}

static bool owns(const tsr_world *world, const tsr_bed *bed)
{
    const tsr_resident *resident = &world->residents[bed->rank];
    return resident->seated && pthread_equal(resident->owner, bed->thread);
}

/* What was told, and since when nothing changes, begins anew. */
static void stir(tsr_world *world)
{
    world->patient = tsr_deadline_in(world->stall_ms);
    world->told = false;
}

static void list(tsr_world *world, tsr_bed *bed)
{
    bed->thread = pthread_self();
    bed->listed = true;
    bed->next = world->beds;
    if (bed->next)
        bed->next->previous = bed;
    world->beds = bed;
    world->threads++;
    world->owners += owns(world, bed);
    if (world->owners == world->left)
        world->look = 0;
    stir(world);
}

static void unlist(tsr_world *world, tsr_bed *bed)
{
    if (bed->previous)
        bed->previous->next = bed->next;
    else
        world->beds = bed->next;
    if (bed->next)
        bed->next->previous = bed->previous;
    world->threads--;
    world->owners -= owns(world, bed);
    stir(world);
}

/* Nobody leaves its bed without the lock, so whoever is found to wait in vain does so until the last is found to. */
static bool all_sleep_in_vain(const tsr_world *world)
{
    if (world->owners < world->left)
        return false;
    for (const tsr_bed *bed = world->beds; bed; bed = bed->next)
        if (!tsr_rendezvous_is_waiting(bed->where, bed->arrival))
            return false;
    return true;
}

/* All threads of the process sleep here but the one that waits for them to end. */
static bool nobody_else_is_there(const tsr_world *world)
{
    return count_threads() == world->threads + 1;
}

static const tsr_bed *bed_of(const tsr_world *world, int rank)
{
    const tsr_bed *bed = world->beds;
    while (bed && (bed->rank != rank || !owns(world, bed)))
        bed = bed->next;
    return bed;
}

static void describe(const tsr_world *world, tsr_text *text)
{
    tsr_text_append(text, "ranks wait in different communicators, so that none can go on (");
    for (int r = 0, named = 0; r < world->count && named < RANKS_NAMED; r++) {
        const tsr_bed *bed = bed_of(world, r);
        if (bed)
            tsr_text_append(text, "%srank %d in one of %d ranks", named++ ? ", " : "", r, bed->where->count);
    }
    tsr_text_append(text, "): all must call in the same order");
}

static void break_all(const tsr_world *world)
{
    char reason[TSR_REASON_BYTES];
    tsr_text text = {reason, sizeof reason, 0};
    describe(world, &text);
    tsr_text_append(&text, " (where other threads are still to call for ranks, set stall_ms in tsr_threads_options to 0)");
    for (const tsr_bed *bed = world->beds; bed; bed = bed->next)
        tsr_rendezvous_break(bed->where, reason);
}

/* Under the lock. Words for the log, once; no words: nothing is to be told. */
static void judge(tsr_world *world, tsr_text *words)
{
    if (!all_sleep_in_vain(world))
        return;
    if (tsr_deadline_passed(world->patient) || nobody_else_is_there(world)) {
        break_all(world);
    } else if (!world->told) {
        describe(world, words);
        tsr_text_append(words, "; unless another thread calls for one of them they are given up after %lld ms", (long long)world->stall_ms);
        world->told = true;
    }
}

static void look(tsr_world *world, tsr_text *words)
{
    const tsr_deadline begin = tsr_deadline_now();
    if (begin < world->look)
        return;
    judge(world, words);
    const tsr_deadline end = tsr_deadline_now();
    world->look = end + tsr_max_i64(BETWEEN_LOOKS_NS, BETWEEN_LOOKS_LONG * (end - begin));
}

/* Files are read and the log is written here: neither is left by cancellation, with the lock or without. */
void tsr_stall_sleeps(void *arg, tsr_bed *bed)
{
    tsr_world *world = arg;
    char line[TSR_REASON_BYTES] = "";
    tsr_text words = {line, sizeof line, 0};
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&world->lock);
    if (!bed->listed)
        list(world, bed);
    look(world, &words);
    pthread_mutex_unlock(&world->lock);
    if (line[0])
        tsr_log(world->context, TSR_LOG_ERROR, "%s", line);
    pthread_setcancelstate(state, &state);
}

void tsr_stall_rises(void *arg, tsr_bed *bed)
{
    tsr_world *world = arg;
    pthread_mutex_lock(&world->lock);
    unlist(world, bed);
    pthread_mutex_unlock(&world->lock);
}

void tsr_stall_depart(tsr_world *world)
{
    world->left--;
    stir(world);
}
