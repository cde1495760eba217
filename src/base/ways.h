/** The ways in which the host's kernels move bytes, by name, and how one of them is chosen. Pure. */
#ifndef TSR_BASE_WAYS_H
#define TSR_BASE_WAYS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Every way moves the same bytes. Ordinary stores leave the result in the cache; streaming stores bypass it. `ahead` fetches the source by
 * software before it is copied; `rows` copies four rows, or four pages of a long row, at once. The last two are no ways: they say how one
 * is chosen.
 */
typedef enum tsr_way {
    TSR_WAY_PLAIN,
    TSR_WAY_PLAIN_AHEAD,
    TSR_WAY_PLAIN_ROWS,
    TSR_WAY_STREAM,
    TSR_WAY_STREAM_AHEAD,
    TSR_WAY_STREAM_ROWS,
    TSR_WAYS,
    TSR_WAY_FIXED = TSR_WAYS, /**< by a rule: the same in every run */
    TSR_WAY_MEASURED,         /**< by timing the ways */
    TSR_WAY_END
} tsr_way;

/** All names, for sentences. */
#define TSR_WAY_NAMES "measured, fixed, plain, plain-ahead, plain-rows, stream, stream-ahead or stream-rows"

/** "plain", "stream-rows", "fixed", "measured". Static. */
const char *tsr_way_name(tsr_way way);

/** The way of a name of `length` characters; TSR_WAY_END: there is none. */
tsr_way tsr_way_find(const char *name, size_t length);

static inline bool tsr_way_streams(tsr_way way)
{
    return way >= TSR_WAY_STREAM;
}

static inline bool tsr_way_fetches_ahead(tsr_way way)
{
    return way == TSR_WAY_PLAIN_AHEAD || way == TSR_WAY_STREAM_AHEAD;
}

static inline bool tsr_way_interleaves(tsr_way way)
{
    return way == TSR_WAY_PLAIN_ROWS || way == TSR_WAY_STREAM_ROWS;
}

#endif
