/** Names for the ways in which the host's kernels move bytes, and for how a way is chosen. Pure. */
#ifndef TSR_BASE_WAYS_H
#define TSR_BASE_WAYS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Every way moves the same bytes. `plain` uses ordinary stores, which leave the result in the
 * cache; `stream` uses stores that bypass it. `ahead` fetches the source by software before it is
 * copied; `rows` copies four rows, or four pages of a long row, at once. The last two values are
 * not ways: they say how a way is chosen.
 */
typedef enum tsr_way {
    TSR_WAY_PLAIN,
    TSR_WAY_PLAIN_AHEAD,
    TSR_WAY_PLAIN_ROWS,
    TSR_WAY_STREAM,
    TSR_WAY_STREAM_AHEAD,
    TSR_WAY_STREAM_ROWS,
    TSR_WAYS,
    TSR_WAY_FIXED = TSR_WAYS, /**< a rule chooses: the same way in every run */
    TSR_WAY_MEASURED,         /**< the ways are timed, and the fastest is taken */
    TSR_WAY_END
} tsr_way;

/** All names, for error sentences. */
#define TSR_WAY_NAMES "measured, fixed, plain, plain-ahead, plain-rows, stream, stream-ahead or stream-rows"

/** The name: "plain", .., "stream-rows", "fixed" or "measured". Static text. */
const char *tsr_way_name(tsr_way way);

/** The way whose name is the `length` characters at `name`; TSR_WAY_END: there is none. */
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
