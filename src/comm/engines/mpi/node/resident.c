
#include "comm/engines/mpi/node/resident.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A chain of sleepers, each waiting for the next, is followed for at most this many. */
#define MOST_STEPS 64

/* A sentence says of at most this many ranks where they wait. */
#define RANKS_NAMED 3

/* Flag in `verdict` while `words` are written. */
#define BUSY (UINT64_C(1) << 63)

/* Numbers of fields in /proc/PID/stat behind the name, which ends with the last parenthesis: see
 * proc(5). */
#define STATE_FIELD 3
#define START_FIELD 22

/* Reads /proc/PID/stat; returns how many bytes. Below 0: there is no such process. */
static ssize_t read_stat(int process, char *text, size_t capacity)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    const ssize_t count = read(file, text, capacity - 1);
    close(file);
    text[count > 0 ? count : 0] = '\0';
    return count;
}

/* False if the text does not have the expected form. */
static bool parse_stat(const char *text, char *state, uint64_t *start)
{
    const char *at = strrchr(text, ')');
    for (int field = STATE_FIELD; at && field <= START_FIELD; field++) {
        at = strchr(at, ' ');
        at += at != NULL;
        if (at && field == STATE_FIELD)
            *state = *at;
    }
    if (at)
        *start = strtoull(at, NULL, 10);
    return at != NULL;
}

void tsr_mpi_resident_introduce(tsr_mpi_resident *resident, int name)
{
    char text[1024], state;
    *resident = (tsr_mpi_resident){.name = name, .process = (int32_t)getpid()};
    if (read_stat((int)getpid(), text, sizeof text) > 0)
        parse_stat(text, &state, &resident->start);
}

tsr_mpi_life tsr_mpi_resident_life(const tsr_mpi_resident *resident)
{
    char text[1024], state = 'R';
    uint64_t start = 0;
    if (resident->start == 0)
        return TSR_MPI_RUNS;
    if (read_stat(resident->process, text, sizeof text) <= 0)
        return access("/proc/self/stat", R_OK) == 0 ? TSR_MPI_DEAD : TSR_MPI_RUNS;
    if (!parse_stat(text, &state, &start))
        return TSR_MPI_RUNS;
    if (start != resident->start || strchr("ZXx", state))
        return TSR_MPI_DEAD;
    return strchr("Tt", state) ? TSR_MPI_STOPPED : TSR_MPI_RUNS;
}

void tsr_mpi_resident_lie_down(tsr_mpi_resident *resident, int awaited, int ranks, const _Atomic(uint64_t) *count,
                               uint64_t goal, const _Atomic(int32_t) *state)
{
    atomic_store(&resident->awaited, awaited);
    atomic_store(&resident->ranks, ranks);
    atomic_store(&resident->count, (uintptr_t)count);
    atomic_store(&resident->state, (uintptr_t)state);
    atomic_store(&resident->goal, goal);
    atomic_fetch_add(&resident->naps, 1);
}

void tsr_mpi_resident_get_up(tsr_mpi_resident *resident)
{
    atomic_fetch_add(&resident->naps, 1);
}

/* True if the entry's process is in nap `nap` and the awaited rank has not come. The pointers are
 * followed only if they belong to this nap; then what they point to exists. */
static bool sleeps_in_vain(tsr_mpi_resident *resident, uint64_t nap)
{
    const _Atomic(uint64_t) *const count = (const void *)atomic_load(&resident->count);
    const _Atomic(int32_t) *const state = (const void *)atomic_load(&resident->state);
    const uint64_t goal = atomic_load(&resident->goal);
    return nap % 2 == 1 && atomic_load(&resident->naps) == nap && atomic_load(count) < goal && atomic_load(state) == 0;
}

static tsr_mpi_resident *at(tsr_mpi_residents all, int place)
{
    return (tsr_mpi_resident *)(all.first + (size_t)place * all.stride);
}

tsr_mpi_resident *tsr_mpi_resident_find(tsr_mpi_residents all, int name)
{
    for (int r = 0; r < all.count; r++)
        if (at(all, r)->name == name)
            return at(all, r);
    return NULL;
}

typedef struct step {
    tsr_mpi_resident *resident;
    uint64_t nap;
} step;

/* Follows each sleeper to the one that it waits for, until one comes again; returns how many
 * `steps` that took. 0: one of them is awake, or they are too many. */
static int follow_sleepers(tsr_mpi_residents all, tsr_mpi_resident *resident, step *steps)
{
    for (int count = 0; resident && count < MOST_STEPS; count++) {
        for (int i = 0; i < count; i++)
            if (steps[i].resident == resident)
                return count;
        steps[count] = (step){resident, atomic_load(&resident->naps)};
        const int next = atomic_load(&resident->awaited);
        if (!sleeps_in_vain(resident, steps[count].nap))
            return 0;
        resident = tsr_mpi_resident_find(all, next);
    }
    return 0;
}

static void describe_circle(const step *steps, int count, char *words)
{
    size_t used = (size_t)snprintf(words, TSR_MPI_VERDICT_BYTES,
                                   "ranks wait in different communicators, so that none can go on (");
    for (int i = 0; i < count && i < RANKS_NAMED; i++)
        used += (size_t)snprintf(words + used, TSR_MPI_VERDICT_BYTES - used, "%srank %d in one of %d ranks",
                                 i ? ", " : "", steps[i].resident->name, atomic_load(&steps[i].resident->ranks));
    snprintf(words + used, TSR_MPI_VERDICT_BYTES - used, "): all must call in the same order");
}

static void tell_verdict(const step *one, const char *words)
{
    uint64_t before = atomic_load(&one->resident->verdict);
    if ((before & ~BUSY) == one->nap ||
        !atomic_compare_exchange_strong(&one->resident->verdict, &before, one->nap | BUSY))
        return;
    memcpy(one->resident->words, words, TSR_MPI_VERDICT_BYTES);
    atomic_store(&one->resident->verdict, one->nap);
}

/*
 * Two rounds: since no nap has changed, there is a moment between them at which all slept. A rank
 * that waits in vain in the second round did so at that moment too, for a count that was reached
 * stays reached. From that moment on no rank of the circle can let another go on.
 */
static int find_circle(tsr_mpi_residents all, tsr_mpi_resident *sleeper, step *steps)
{
    const int count = follow_sleepers(all, sleeper, steps);
    for (int i = 0; i < count; i++)
        if (!sleeps_in_vain(steps[i].resident, steps[i].nap))
            return 0;
    return count;
}

void tsr_mpi_resident_check_stall(tsr_mpi_residents all, tsr_mpi_resident *sleeper)
{
    step steps[MOST_STEPS], others[MOST_STEPS];
    char words[TSR_MPI_VERDICT_BYTES] = "";
    const int count = find_circle(all, sleeper, steps);
    if (count == 0)
        return;
    describe_circle(steps, count, words);
    for (int r = 0; r < all.count; r++)
        if (at(all, r) != sleeper && find_circle(all, at(all, r), others) > 0)
            tell_verdict(&others[0], words);
    tell_verdict(&steps[0], words);
}

const char *tsr_mpi_resident_verdict(const tsr_mpi_resident *resident)
{
    return atomic_load(&resident->verdict) == atomic_load(&resident->naps) ? resident->words : NULL;
}
