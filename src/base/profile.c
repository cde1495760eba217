#include "base/profile.h"

#include "base/hash.h"
#include "base/profile_text.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool says_more_than_links(const tsr_profile_content *content)
{
    size_t rows = content->meeting.count;
    for (size_t kind = 0; kind < TSR_TABLE_KINDS; kind++)
        rows += content->work[kind].count;
    for (size_t i = 0; i < TSR_PROFILE_SPANS; i++)
        rows += content->has_spans[i];
    return rows > 0;
}

static bool knows_kernels(const tsr_profile_content *content)
{
    size_t rows = content->has_call + content->pass.count;
    for (size_t kind = 0; kind < TSR_PRODUCT_KINDS; kind++)
        rows += content->products[kind].count;
    return rows > 0;
}

static tsr_status write_text(tsr_profile *profile)
{
    tsr_text counted = {NULL, 0, 0};
    tsr_profile_append(&counted, &profile->content);
    tsr_text written = {malloc(counted.length + 1), counted.length + 1, 0};
    if (!written.buffer)
        return tsr_status_set(TSR_ERROR_MEMORY, "tsr_profile_parse: there is no memory for %zu bytes of text",
                              written.capacity);
    tsr_profile_append(&written, &profile->content);
    profile->text = written.buffer;
    profile->length = written.length;
    profile->hash = tsr_hash_text(TSR_HASH_SEED, profile->text);
    return TSR_OK;
}

tsr_status tsr_profile_parse(const char *text, tsr_profile **out)
{
    if (!text || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_profile_parse: %s is NULL", text ? "out" : "text");
    tsr_profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        return tsr_status_set(TSR_ERROR_MEMORY, "tsr_profile_parse: there is no memory for a profile of %zu bytes",
                              sizeof *profile);
    profile->references = 1;
    tsr_status status = tsr_profile_read(text, &profile->content);
    if (status == TSR_OK)
        status = write_text(profile);
    if (status != TSR_OK) {
        tsr_profile_destroy(profile);
        return status;
    }
    profile->has_tables = says_more_than_links(&profile->content);
    profile->has_kernels = knows_kernels(&profile->content);
    *out = profile;
    return TSR_OK;
}

size_t tsr_profile_print(const tsr_profile *profile, char *text, size_t capacity)
{
    if (capacity > 0) {
        const size_t kept = profile->length < capacity ? profile->length : capacity - 1;
        memcpy(text, profile->text, kept);
        text[kept] = '\0';
    }
    return profile->length;
}

tsr_profile *tsr_profile_retain(tsr_profile *profile)
{
    if (profile)
        tsr_references_add(&profile->references);
    return profile;
}

void tsr_profile_destroy(tsr_profile *profile)
{
    if (!profile || !tsr_references_drop(&profile->references))
        return;
    free(profile->text);
    free(profile);
}

tsr_cost_profile tsr_profile_links(const tsr_profile *profile)
{
    return profile->content.links;
}

int tsr_profile_has_tables(const tsr_profile *profile)
{
    return profile->has_tables;
}

int tsr_profile_has_kernels(const tsr_profile *profile)
{
    return profile->has_kernels;
}

/* About the logarithm to base 2, linear between powers of two. It uses only operations that every
 * processor rounds alike, because all ranks must come to the same plan. */
static double logarithm(double value)
{
    int exponent;
    const double fraction = frexp(value, &exponent);
    return (double)exponent + 2 * fraction - 2;
}

/* The place of `key` on a logarithmic scale: 0 at `below`, 1 at `above`, less or more outside. */
static double share_between(double below, double above, double key)
{
    return (logarithm(key) - logarithm(below)) / (logarithm(above) - logarithm(below));
}

static double between(double below, double above, double share)
{
    return below + share * (above - below);
}

/* Index of the last point of a row whose key is at most `key`; 0 if there is none. */
static size_t find_point(const tsr_row *row, double key)
{
    size_t point = 0;
    while (point + 1 < row->count && row->at[point + 1].key <= key)
        point++;
    return point;
}

double tsr_profile_step_seconds(const tsr_profile *profile, int64_t pieces)
{
    return profile->content.spans[0] + (double)pieces * profile->content.spans[1];
}

double tsr_profile_meeting_seconds(const tsr_profile *profile, int64_t ranks)
{
    const tsr_row *row = &profile->content.meeting;
    const double key = ranks > 1 ? (double)ranks : 1;
    if (row->count == 0)
        return profile->content.links.inside.latency;
    size_t point = find_point(row, key);
    if (row->count == 1 || key <= row->at[0].key)
        return row->at[0].value;
    point -= point + 1 == row->count;
    const double below = row->at[point].value, above = row->at[point + 1].value;
    const double share = share_between(row->at[point].key, row->at[point + 1].key, key);
    return share > 1 && above < below ? above : between(below, above, share);
}

/* Seconds per byte when `touched` bytes are touched, by one row. */
static double pace_of_row(const tsr_row *row, double touched)
{
    const size_t point = find_point(row, touched);
    const double pace = 1 / row->at[point].value;
    if (point + 1 == row->count || touched <= row->at[point].key)
        return pace;
    return between(pace, 1 / row->at[point + 1].value,
                   share_between(row->at[point].key, row->at[point + 1].key, touched));
}

/* Index of the last row of a table whose run is at most `run`; 0 if there is none. The table has a
 * row at least. */
static size_t find_row(const tsr_table *table, int64_t run)
{
    size_t row = 0;
    while (row + 1 < table->count && table->rows[row + 1].run <= run)
        row++;
    return row;
}

/* Seconds per byte, by a table. A whole box is not just a longer run: it is never packed. So
 * nothing is interpolated between the longest run and TSR_RUN_WHOLE. */
static double pace_of(const tsr_table *table, int64_t run, double touched)
{
    const size_t at = find_row(table, run);
    const tsr_row *row = &table->rows[at];
    const double pace = pace_of_row(row, touched);
    if (at + 1 == table->count || run <= row->run || row[1].run == TSR_RUN_WHOLE)
        return pace;
    return between(pace, pace_of_row(row + 1, touched),
                   share_between((double)row->run, (double)row[1].run, (double)run));
}

double tsr_profile_work_seconds(const tsr_profile *profile, tsr_work work, int64_t run, double touched, double bytes)
{
    if ((unsigned)work >= TSR_TABLE_KINDS || profile->content.work[work].count == 0)
        return bytes / profile->content.links.inside.bandwidth;
    return bytes * pace_of(&profile->content.work[work], run, touched);
}

double tsr_profile_call_seconds(const tsr_profile *profile)
{
    return profile->content.call;
}

double tsr_profile_pass_seconds(const tsr_profile *profile, double touched)
{
    if (profile->content.pass.count > 0)
        return touched * pace_of_row(&profile->content.pass, touched);
    /* A copy reads and writes each of its bytes, so it touches twice as many. */
    if (profile->content.work[TSR_WORK_KEEP].count > 0)
        return tsr_profile_work_seconds(profile, TSR_WORK_KEEP, TSR_RUN_WHOLE, touched, touched / 2);
    return touched / profile->content.links.inside.bandwidth;
}

/* What a product takes for each of the other two of its sizes together, by one row. */
static double seconds_of_row(const tsr_row *row, double touched)
{
    return (double)row->run * pace_of_row(row, touched);
}

double tsr_profile_product_seconds(const tsr_profile *profile, tsr_product product, int64_t least, double reach,
                                   double touched, double flops)
{
    const bool is_known = (unsigned)product < TSR_PRODUCT_KINDS;
    const tsr_table *const table = &profile->content.products[is_known ? product : TSR_PRODUCT_MULTIPLY];
    if (!is_known || table->count == 0) {
        const double memory = touched / profile->content.links.inside.bandwidth, work = flops / TSR_PROFILE_FLOPS;
        return memory > work ? memory : work;
    }
    const tsr_row *const row = &table->rows[find_row(table, least)];
    if (row + 1 == table->rows + table->count || least <= row->run)
        return flops * pace_of_row(row, reach);
    const double share = (double)(least - row->run) / (double)(row[1].run - row->run);
    return flops * between(seconds_of_row(row, reach), seconds_of_row(row + 1, reach), share) / (double)least;
}
