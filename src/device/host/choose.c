#include "device/host/choose.h"

#include "base/context.h"
#include "base/memory/memory.h"
#include "base/settings.h"

#include <string.h>
#include <time.h>

/* A stretch that goes in another way than the stretch before is not timed for its first WARMING
 * bytes, because they meet what the old way left in the caches. */
#define STRETCH   ((size_t)4 << 20)
#define WARMING   ((size_t)1 << 20)
#define LEAST     ((size_t)1 << 20) /* bytes that a sample must cover */
#define MIB       ((size_t)1 << 20)
#define FIRST     3 /* samples of every way before one is chosen */
#define HOPELESS  2 /* samples after which a way that takes 1.5 times the best is given up */
#define RIVAL     8 /* stretches before a rival is tried; this wait doubles each time */
#define RESTART   32
#define MOST_WAIT (UINT32_C(1) << 20)

#define GET(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

static const size_t run_begins[TSR_RUN_CLASSES] = {TSR_SHORTEST_RUN, 1024, 4096, (size_t)32 << 10, (size_t)1 << 20};
static const size_t size_begins[TSR_SIZE_CLASSES] = {0, (size_t)32 << 20, (size_t)128 << 20};

size_t tsr_run_class_begin(int index)
{
    return index < TSR_RUN_CLASSES ? run_begins[index] : SIZE_MAX;
}

size_t tsr_size_class_begin(int index)
{
    return index == 0 ? TSR_LARGE_CALL : index < TSR_SIZE_CLASSES ? size_begins[index] : SIZE_MAX;
}

/* This thread's CPU time: the time that other threads take on its core says nothing about the
 * ways. */
static uint64_t read_clock(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

tsr_status tsr_kernel_choices_create(tsr_context *context, tsr_kernel_choices **out)
{
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_kernel_choices_create: out is NULL");
    tsr_context *held;
    void *memory;
    TSR_TRY(tsr_context_resolve(context, &held));
    const tsr_way way = tsr_context_settings(held)->way;
    const size_t classes = way == TSR_WAY_MEASURED ? TSR_TASKS * TSR_RUN_CLASSES * TSR_SIZE_CLASSES : 0;
    const tsr_status status =
        tsr_allocate_zeroed(held, 2 * sizeof(tsr_kernel_choices) + classes * sizeof(tsr_way_class), &memory);
    if (status != TSR_OK) {
        tsr_context_destroy(held);
        return status;
    }
    tsr_kernel_choices *const made = memory;
    *made =
        (tsr_kernel_choices){.references = 1, .context = held, .way = way, .large = TSR_LARGE_CALL, .now = read_clock};
    made->parts = made + 1;
    made->at = classes > 0 ? (tsr_way_class *)(made + 2) : NULL;
    made[1] = (tsr_kernel_choices){.way = way, .large = TSR_LARGE_PART, .whole = made};
    *out = made;
    return TSR_OK;
}

tsr_kernel_choices *tsr_choices_retain(tsr_kernel_choices *choices)
{
    if (choices)
        tsr_references_add(&choices->references);
    return choices;
}

void tsr_kernel_choices_destroy(tsr_kernel_choices *choices)
{
    if (!choices || !tsr_references_drop(&choices->references))
        return;
    tsr_context *const context = choices->context;
    tsr_release(context, choices);
    tsr_context_destroy(context);
}

tsr_kernel_choices *tsr_choices_pinned(tsr_way way)
{
#define ROW(name) [name] = {.references = 1, .way = (name), .large = TSR_LARGE_CALL }
    static const tsr_kernel_choices rows[TSR_WAYS] = {ROW(TSR_WAY_PLAIN),        ROW(TSR_WAY_PLAIN_AHEAD),
                                                      ROW(TSR_WAY_PLAIN_ROWS),   ROW(TSR_WAY_STREAM),
                                                      ROW(TSR_WAY_STREAM_AHEAD), ROW(TSR_WAY_STREAM_ROWS)};
#undef ROW
    /* The cast is safe: choices that measure nothing are only read. */
    return way < TSR_WAYS ? (tsr_kernel_choices *)&rows[way] : NULL;
}

const tsr_kernel_choices *tsr_choices_of_parts(const tsr_kernel_choices *self)
{
    static const tsr_kernel_choices by_rule = {.way = TSR_WAY_FIXED, .large = TSR_LARGE_PART};
    if (!self)
        return &by_rule;
    return self->parts ? self->parts : self;
}

static int find_class(const size_t *begins, int count, size_t bytes)
{
    int index = count - 1;
    while (index > 0 && bytes < begins[index])
        index--;
    return index;
}

tsr_way_class *tsr_way_class_find(const tsr_kernel_choices *choices, tsr_task task, size_t run, size_t total)
{
    const int runs = find_class(run_begins, TSR_RUN_CLASSES, run),
              sizes = find_class(size_begins, TSR_SIZE_CLASSES, total);
    return &choices->at[((int)task * TSR_RUN_CLASSES + runs) * TSR_SIZE_CLASSES + sizes];
}

uint32_t tsr_way_class_estimate(const tsr_way_class *choice, tsr_way way)
{
    uint32_t sorted[TSR_SAMPLES];
    const int count = GET(choice->counts[way]), end = GET(choice->places[way]);
    for (int i = 0; i < count; i++) {
        const uint32_t sample = GET(choice->samples[way][(end + TSR_SAMPLES - 1 - i) % TSR_SAMPLES]);
        int at = i;
        for (; at > 0 && sorted[at - 1] > sample; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = sample;
    }
    return count > 0 ? sorted[(count - 1) / 3] : 0;
}

/* The way with the least estimate among ways with at least `least` samples; TSR_WAYS: there is
 * none. */
static tsr_way find_best(const tsr_way_class *c, int least)
{
    tsr_way best = TSR_WAYS;
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++)
        if (GET(c->counts[way]) >= least &&
            (best == TSR_WAYS || tsr_way_class_estimate(c, way) < tsr_way_class_estimate(c, best)))
            best = way;
    return best;
}

/* True if the way needs another sample before the fastest way is chosen. */
static bool is_wanted(const tsr_way_class *c, tsr_way way)
{
    const int count = GET(c->counts[way]);
    const tsr_way best = find_best(c, HOPELESS);
    if (count < HOPELESS || best == TSR_WAYS)
        return count < FIRST;
    return count < FIRST &&
           2 * (uint64_t)tsr_way_class_estimate(c, way) <= 3 * (uint64_t)tsr_way_class_estimate(c, best);
}

/* The way with the fewest samples among the wanted ones, so that they take turns; TSR_WAYS: no way
 * is wanted. Every second turn goes in the other order: a way that always follows one which leaves
 * its lines in the caches would look slow. */
static tsr_way find_wanted(const tsr_way_class *c)
{
    tsr_way found = TSR_WAYS;
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++) {
        const int count = GET(c->counts[way]), fewest = found < TSR_WAYS ? GET(c->counts[found]) : count + 1;
        if (is_wanted(c, way) && (count < fewest || (count == fewest && count % 2 == 1)))
            found = way;
    }
    return found;
}

/* The rival to try: in turn the two fastest ways after the best, if they take at most a quarter
 * more than it; TSR_WAYS: there is none. */
static tsr_way find_rival(const tsr_way_class *c)
{
    const tsr_way best = GET(c->way);
    const uint64_t most = (uint64_t)tsr_way_class_estimate(c, best) * 5 / 4;
    tsr_way near[2] = {TSR_WAYS, TSR_WAYS};
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++) {
        const uint32_t estimate = tsr_way_class_estimate(c, way);
        if (way == best || GET(c->counts[way]) == 0 || estimate > most)
            continue;
        if (near[0] == TSR_WAYS || estimate < tsr_way_class_estimate(c, near[0])) {
            near[1] = near[0];
            near[0] = way;
        } else if (near[1] == TSR_WAYS || estimate < tsr_way_class_estimate(c, near[1]))
            near[1] = way;
    }
    if (near[1] == TSR_WAYS)
        return near[0];
    return near[(GET(c->places[near[0]]) + GET(c->places[near[1]])) % 2];
}

static void settle_way(tsr_way_class *c, tsr_way way)
{
    const uint32_t estimate = tsr_way_class_estimate(c, way);
    SET(c->way, (uint8_t)way);
    SET(c->tried, estimate);
    SET(c->reference, estimate);
}

static void count_up(uint8_t *count)
{
    if (GET(*count) < UINT8_MAX)
        SET(*count, (uint8_t)(GET(*count) + 1));
}

/* Forgets all samples, so that all ways are tried again. */
static void restart(tsr_way_class *c)
{
    const uint32_t wait = GET(c->restart_wait);
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++)
        SET(c->counts[way], 0);
    SET(c->settled, 0);
    SET(c->restart_wait, wait < MOST_WAIT ? 4 * wait : wait);
    count_up(&c->restarts);
}

/* All ways have been tried: the fastest is taken from now on. */
static void begin_use(tsr_way_class *c)
{
    settle_way(c, find_best(c, 1));
    SET(c->settled, 1);
    SET(c->stretches, 0);
    SET(c->next_rival, RIVAL);
    if (GET(c->restart_wait) == 0)
        SET(c->restart_wait, RESTART);
}

/* True if `way`, which takes `takes`, has become so much slower or faster that the estimates of the
 * other ways, which few or no stretches went since, say nothing of them any more. It becomes faster
 * when a program uses memory again for which it first had to wait: while the system clears new
 * pages, which leaves their lines in the cache, other ways are the fastest. */
static bool has_changed(const tsr_way_class *c, uint64_t takes)
{
    return 2 * takes > 3 * (uint64_t)GET(c->reference) || 3 * takes < 2 * (uint64_t)GET(c->tried);
}

/* After a sample in use: takes another way if that is faster by more than 3 %, or tries all ways
 * again if the speed of the best has changed. */
static void review(tsr_way_class *c)
{
    const tsr_way way = GET(c->way), best = find_best(c, 1);
    const uint64_t takes = tsr_way_class_estimate(c, way),
                   least = best < TSR_WAYS ? tsr_way_class_estimate(c, best) : takes;
    SET(c->stretches, GET(c->stretches) + 1);
    if (100 * least < 97 * takes) {
        settle_way(c, best);
        count_up(&c->changes);
        return;
    }
    if (takes < GET(c->reference))
        SET(c->reference, (uint32_t)takes);
    if (has_changed(c, takes) && GET(c->stretches) > GET(c->restart_wait))
        restart(c);
}

static void add_sample(tsr_way_class *c, tsr_way way, uint64_t nanoseconds, size_t bytes)
{
    const uint64_t sample = nanoseconds * MIB / bytes;
    const int place = GET(c->places[way]), count = GET(c->counts[way]);
    SET(c->samples[way][place % TSR_SAMPLES], sample == 0 ? 1 : sample < UINT32_MAX ? (uint32_t)sample : UINT32_MAX);
    SET(c->places[way], (uint8_t)((place + 1) % TSR_SAMPLES));
    if (count < TSR_SAMPLES)
        SET(c->counts[way], (uint8_t)(count + 1));
    if (GET(c->settled))
        review(c);
    else if (find_wanted(c) == TSR_WAYS)
        begin_use(c);
}

static tsr_way pick(tsr_way_class *c)
{
    if (!GET(c->settled)) {
        const tsr_way wanted = find_wanted(c);
        return wanted < TSR_WAYS ? wanted : TSR_WAY_STREAM;
    }
    if (GET(c->stretches) < GET(c->next_rival))
        return GET(c->way);
    const uint32_t stretches = GET(c->stretches);
    SET(c->next_rival, stretches < MOST_WAIT ? 2 * stretches + 1 : stretches + MOST_WAIT);
    const tsr_way rival = find_rival(c);
    return rival < TSR_WAYS ? rival : GET(c->way);
}

/* Ends the stretch; its time becomes a sample if it covers at least LEAST bytes. */
static void close_stretch(tsr_stretch *s, uint64_t now)
{
    if (s->timed >= LEAST && now > s->since)
        add_sample(s->choice, s->way, now - s->since, s->timed);
    s->bytes = s->timed = 0;
    s->since = 0;
}

/* TSR_WAY_STREAM if the fastest way of the largest settled class of calls streams, else
 * TSR_WAY_PLAIN; TSR_WAYS: no class has settled. */
static tsr_way find_whole(const tsr_kernel_choices *whole, tsr_task task, size_t run)
{
    for (int size = TSR_SIZE_CLASSES - 1; size >= 0 && whole->at; size--) {
        const tsr_way_class *const choice = tsr_way_class_find(whole, task, run, size_begins[size]);
        if (GET(choice->settled))
            return tsr_way_streams(GET(choice->way)) ? TSR_WAY_STREAM : TSR_WAY_PLAIN;
    }
    return TSR_WAYS;
}

tsr_way tsr_choices_rule(const tsr_kernel_choices *choices, size_t run)
{
    if (run < TSR_SHORTEST_RUN)
        return TSR_WAY_PLAIN;
    if (choices && choices->way < TSR_WAYS)
        return choices->way;
    return run >= TSR_STREAMED_RUN ? TSR_WAY_STREAM : TSR_WAY_PLAIN;
}

static void enter_choice(tsr_stretch *s, tsr_way_class *choice)
{
    if (s->choice == choice)
        return;
    tsr_stretch_end(s);
    s->choice = choice;
    s->bytes = s->timed = 0;
    s->since = 0;
    if (choice)
        s->way = pick(choice);
}

void tsr_stretch_enter_run(tsr_stretch *s, size_t run)
{
    const tsr_kernel_choices *const choices = s->choices;
    if (run >= TSR_SHORTEST_RUN && choices && choices->at) {
        enter_choice(s, tsr_way_class_find(choices, s->task, run, s->total));
        return;
    }
    enter_choice(s, NULL);
    const tsr_way whole =
        choices && choices->whole && run >= TSR_SHORTEST_RUN ? find_whole(choices->whole, s->task, run) : TSR_WAYS;
    s->way = whole < TSR_WAYS ? whole : tsr_choices_rule(choices, run);
}

tsr_way tsr_stretch_time(tsr_stretch *s, size_t bytes)
{
    const tsr_kernel_choices *const choices = s->choices;
    if (s->bytes >= STRETCH) {
        const uint64_t now = choices->now(choices->user);
        const tsr_way before = s->way;
        close_stretch(s, now);
        s->way = pick(s->choice);
        if (s->way == before)
            s->since = now;
    } else if (s->since == 0 && s->bytes >= WARMING)
        s->since = choices->now(choices->user);
    s->bytes += bytes;
    if (s->since != 0)
        s->timed += bytes;
    return s->way;
}

void tsr_stretch_end(tsr_stretch *s)
{
    if (s->choice)
        close_stretch(s, s->choices->now(s->choices->user));
    s->choice = NULL;
}
