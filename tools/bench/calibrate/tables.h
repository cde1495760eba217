/** Measures what a rank's own work costs by timed moves, and makes the tables of a profile from
 * them (tessera/profile.h). */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_TABLES_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_TABLES_H

#include "bench/moves/timed_moves.h"
#include "bench/run/size_range.h"

/** What to measure. */
typedef struct tables_request {
    int ranks;              /**< ranks that run */
    const int64_t *members; /**< the ranks, of one node, that take part in the moves; borrowed */
    int64_t member_count;   /**< at least 2 */
    tsr_mode mode;
    tsr_dtype dtype;
    size_range sizes;        /**< bytes of the larger shard of a rank; sizes below TABLES_LEAST_BYTES are skipped */
    bench_settings settings; /**< how each move is timed */
    tsr_profile *profile;    /**< for the planner; borrowed */
} tables_request;

/** Smaller sizes are skipped: small tensors are moved in another way, by copies of the sources that
 * peers read. */
#define TABLES_LEAST_BYTES 4096

/** The entry of a profile that a move measures. */
typedef enum table_topic { TABLE_STEP = 0, TABLE_PIECE, TABLE_MEETING, TABLE_WORK } table_topic;

/** A move, and what the cost model counts for it on each rank. */
typedef struct table_move {
    table_topic topic;
    tsr_work work;          /**< kind of work of TABLE_WORK */
    int64_t run;            /**< length of runs of TABLE_WORK in bytes, or TSR_RUN_WHOLE */
    int64_t ranks;          /**< ranks of its mesh */
    double touched, worked; /**< bytes read and written, and bytes of the measured work */
    double kept;            /**< bytes of its own source that a rank copies besides `worked` */
    int64_t pieces;         /**< boxes of a rank */
    int meetings;           /**< number of times that all its ranks meet */
    char *mesh;             /**< as text; on the heap */
    timed_move timed;
} table_move;

typedef struct tables {
    table_move *moves;
    timed_move **timed; /**< the `timed` of each of the moves, in order */
    size_t count, capacity;
} tables;

/** The number of moves of a request, by its member_count, sizes and dtype alone. */
int64_t tables_count(const tables_request *r);

/** Times the moves, and checks them if the settings say so; no moves if no size is large enough.
 * Collective over the place; every process gets the same result. `status` is this process's exit
 * status so far. Returns the tool's exit status; the caller calls tables_finish() in any case. */
int tables_measure(place *p, const tables_request *r, int status, tables *out);
void tables_finish(tables *t);

/** The number of wrong elements in the results of the moves. */
int64_t tables_wrong(const tables *t);

/** Makes a profile of `links` and the tables; the caller destroys it. Returns the tool's exit
 * status. */
int tables_fit(const tables *t, const tsr_cost_profile *links, tsr_profile **out);

#endif
