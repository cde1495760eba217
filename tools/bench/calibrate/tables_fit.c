#include "cli/text_buffer.h"
#include "fit.h"
#include "tables.h"

#include <stdlib.h>

/* The work that a move measures gets at least this share of its time, since the other costs, which
 * are subtracted, are not exact. */
#define LEAST_SHARE 0.1

static const char *const work_names[] = {[TSR_WORK_COPY] = "copy", [TSR_WORK_KEEP] = "keep", [TSR_WORK_SUM] = "sum"};

static double seconds_of(const table_move *m)
{
    return m->timed.seconds.median;
}

/* Seconds of the move that do not belong to what it measures, by the entries of the profile so
 * far. */
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

/* True if both moves belong to one row of the profile. */
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

/* The key of a point, before the colon: ranks of a meeting, bytes touched of work. */
static double key_of(const table_move *m)
{
    return m->topic == TABLE_MEETING ? (double)m->ranks : m->touched;
}

/* The value of a point, behind the colon: seconds, or bytes a second of work. */
static double value_of(const table_move *m, const tsr_profile *known)
{
    const double left = seconds_left(m, known);
    if (m->topic == TABLE_WORK)
        return m->worked / left;
    return m->topic == TABLE_PIECE ? left / (double)m->pieces : left;
}

typedef struct row {
    size_t count;
    double keys[FIT_POINTS], values[FIT_POINTS];
} row;

/* Adds a point. A move whose key is not greater than the last is skipped: several sizes may have
 * one key. */
static void add_point(row *r, const table_move *m, const tsr_profile *known)
{
    if (r->count == FIT_POINTS || (r->count > 0 && key_of(m) <= r->keys[r->count - 1]))
        return;
    r->keys[r->count] = key_of(m);
    r->values[r->count++] = value_of(m, known);
}

/* Raises a rate that is less than half of both neighbours' to the lower of them: the machine was
 * busy meanwhile. A fall over several sizes is kept. */
static void smooth(row *r)
{
    for (size_t i = 1; i + 1 < r->count; i++) {
        const double before = r->values[i - 1], after = r->values[i + 1], lower = before < after ? before : after;
        if (r->values[i] < lower / 2)
            r->values[i] = lower;
    }
}

static void write_row(text_buffer *text, const table_move *like, const row *r)
{
    begin_row(text, like);
    for (size_t i = 0; i < r->count; i++) {
        if (like->topic >= TABLE_MEETING)
            text_buffer_print(text, "%s%.0f:", i > 0 ? "," : "", r->keys[i]);
        text_buffer_print(text, "%.3e", r->values[i]);
    }
}

/* Writes the row that begins with the move at `first`; returns the number of its moves. */
static size_t add_row(text_buffer *text, const tables *t, size_t first, const tsr_profile *known)
{
    const table_move *const m = &t->moves[first];
    row r = {.count = 0};
    size_t count = 0;
    do
        add_point(&r, &m[count++], known);
    while (first + count < t->count && share_row(m, &m[count]));
    if (m->topic == TABLE_WORK)
        smooth(&r);
    write_row(text, m, &r);
    return count;
}

/* Replaces `*known` by the profile that is written so far. */
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
