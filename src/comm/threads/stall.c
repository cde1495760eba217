#include "comm/threads/stall.h"

#include "base/text.h"

/* Ranks of which a sentence tells where they wait. */
#define RANKS_NAMED 3

/* Both are of the nap that was seen, or the member may be of another team: that is known only after both were read. */
static bool sleeps_in_vain(tsr_bed *bed)
{
    tsr_rendezvous *where = atomic_load(&bed->where);
    const int member = atomic_load(&bed->member);
    return atomic_load(&bed->naps) == bed->seen && tsr_rendezvous_is_waiting(where, member);
}

/*
 * Under the world's lock, so that no team goes away. Two rounds over all who are left: between them there is a moment at which all slept,
 * since nobody's count of naps has changed; and whoever still waits in vain in the second round did so at that moment. From there on nobody
 * can wake anybody.
 */
static bool all_sleep_in_vain(tsr_world *world)
{
    for (int r = 0; r < world->count; r++) {
        tsr_bed *bed = &world->beds[r];
        bed->seen = atomic_load(&bed->naps);
        if (!bed->gone && (!bed->shown || bed->seen % 2 == 0 || !sleeps_in_vain(bed)))
            return false;
    }
    for (int r = 0; r < world->count; r++) {
        tsr_bed *bed = &world->beds[r];
        if (!bed->gone && !sleeps_in_vain(bed))
            return false;
    }
    return true;
}

static void describe(tsr_world *world, char *words, size_t capacity)
{
    tsr_text text = {words, capacity, 0};
    tsr_text_append(&text, "ranks wait in different communicators, so that none can go on (");
    int named = 0;
    for (int r = 0; r < world->count && named < RANKS_NAMED; r++)
        if (!world->beds[r].gone)
            tsr_text_append(&text, "%srank %d in one of %d ranks", named++ ? ", " : "", r, atomic_load(&world->beds[r].where)->count);
    tsr_text_append(&text, "): all must call in the same order");
}

void tsr_world_check_stall(void *arg)
{
    tsr_world *world = arg;
    char reason[TSR_REASON_BYTES];
    pthread_mutex_lock(&world->lock);
    if (all_sleep_in_vain(world)) {
        describe(world, reason, sizeof reason);
        for (int r = 0; r < world->count; r++)
            if (!world->beds[r].gone)
                tsr_rendezvous_break(atomic_load(&world->beds[r].where), reason);
    }
    pthread_mutex_unlock(&world->lock);
}
