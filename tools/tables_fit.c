#include "tables.h"

#include "text_buffer.h"

#include <stdlib.h>

/** What is left of a time when all else is taken away is at least this share of it: times are not exact. */
#define LEAST_SHARE 0.1

static const char *const work_names[] = {[TSR_WORK_COPY] = "copy", [TSR_WORK_KEEP] = "keep", [TSR_WORK_SUM] = "sum"};

static double seconds_of(const table_move *m)
{
    return samples_spread(&m->timed.loops).median;
}

/** What the move takes beside that of which it tells, by what is known so far. */
static double seconds_beside(const table_move *m, const tsr_profile *known)
{
    double seconds = tsr_profile_step_seconds(known, m->topic == TABLE_PIECE ? 0 : m->pieces);
    if (m->topic == TABLE_STEP)
        return 0;
    if (m->topic == TABLE_WORK)
        seconds += m->meetings * tsr_profile_meeting_seconds(known, m->ranks);
    if (m->kept > 0)
        seconds += tsr_profile_work_seconds(known, TSR_WORK_KEEP, m->run, m->touched, m->kept);
    return seconds;
}

static double seconds_left(const table_move *m, const tsr_profile *known)
{
    const double seconds = seconds_of(m), left = seconds - seconds_beside(m, known), least = LEAST_SHARE * seconds;
    return left > least ? left : least;
}

/** Whether the two stand in one row. */
static bool share_row(const table_move *a, const table_move *b)
{
    return a->topic == b->topic && a->topic >= TABLE_MEETING && a->work == b->work && a->run == b->run;
}

static void begin_row(text_buffer *text, const table_move *m)
{
    if (m->topic == TABLE_STEP)
        text_buffer_add(text, "\nstep=");
    else if (m->topic == TABLE_PIECE)
        text_buffer_add(text, " piece=");
    else if (m->topic == TABLE_MEETING)
        text_buffer_add(text, "\nmeeting=");
    else if (m->run == TSR_RUN_WHOLE)
        text_buffer_print(text, "\n%s@whole=", work_names[m->work]);
    else
        text_buffer_print(text, "\n%s@%lld=", work_names[m->work], (long long)m->run);
}

static void add_point(text_buffer *text, const table_move *m, const tsr_profile *known)
{
    const double left = seconds_left(m, known);
    if (m->topic == TABLE_MEETING)
        text_buffer_print(text, "%lld:%.3e", (long long)m->ranks, left);
    else if (m->topic == TABLE_WORK)
        text_buffer_print(text, "%.0f:%.3e", m->touched, m->worked / left);
    else
        text_buffer_print(text, "%.3e", left / (m->topic == TABLE_PIECE ? (double)m->pieces : 1));
}

/** The next row, from the move at `first` on; returns how many it takes. Sizes that come to one key have one point. */
static size_t add_row(text_buffer *text, const tables *t, size_t first, const tsr_profile *known)
{
    const table_move *const m = &t->moves[first];
    size_t count = 1;
    begin_row(text, m);
    add_point(text, m, known);
    for (; first + count < t->count && share_row(m, &m[count]); count++) {
        const table_move *const before = &m[count - 1], *const now = &m[count];
        const bool grows = m->topic == TABLE_MEETING ? now->ranks > before->ranks : now->touched > before->touched;
        if (!grows)
            continue;
        text_buffer_add(text, ",");
        add_point(text, now, known);
    }
    return count;
}

/** The profile that is written so far, in the place of the one before. */
static int read_back(const text_buffer *text, tsr_profile **known)
{
    tsr_profile *profile;
    if (text->failed)
        return complain(EXIT_REFUSED, "there is no memory for the text of a profile");
    if (tsr_profile_parse(text->text, &profile) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    tsr_profile_destroy(*known);
    *known = profile;
    return EXIT_DONE;
}

static void begin_text(text_buffer *text, const tsr_cost_profile *links)
{
    char line[128];
    tsr_cost_print(links, line, sizeof line);
    text_buffer_add(text, line);
}

int tables_fit(const tables *t, const tsr_cost_profile *links, tsr_profile **out)
{
    text_buffer text = {0};
    tsr_profile *known = NULL;
    begin_text(&text, links);
    int status = read_back(&text, &known);
    for (size_t i = 0; i < t->count && status == EXIT_DONE;) {
        i += add_row(&text, t, i, known);
        status = read_back(&text, &known);
    }
    free(text_buffer_take(&text, NULL));
    if (status == EXIT_DONE)
        *out = known;
    else
        tsr_profile_destroy(known);
    return status;
}
