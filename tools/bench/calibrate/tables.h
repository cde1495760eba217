/** What a rank's own work costs: moves that tell it by their times, and the tables of a profile that these come to (tessera/profile.h). */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_TABLES_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_TABLES_H

#include "bench/moves/timed_moves.h"
#include "bench/run/size_range.h"

/** What is asked for. */
typedef struct tables_request {
    int ranks;              /**< that run */
    const int64_t *members; /**< of them: those among which moves go; borrowed */
    int64_t member_count;   /**< 2 at least */
    tsr_mode mode;
    tsr_dtype dtype;
    size_range sizes;        /**< bytes of the larger shard of a rank; those below TABLES_LEAST_BYTES are passed over */
    bench_settings settings; /**< how each move is timed */
    tsr_profile *profile;    /**< by which the moves are planned; borrowed */
} tables_request;

/** Smaller tensors go in another way: copies of the sources lie where peers read them. */
#define TABLES_LEAST_BYTES 4096

/** What a move's time tells of: a row of the text of a profile. */
typedef enum table_topic { TABLE_STEP = 0, TABLE_PIECE, TABLE_MEETING, TABLE_WORK } table_topic;

/** A move, and what the model counts of it on each rank. */
typedef struct table_move {
    table_topic topic;
    tsr_work work; /**< of TABLE_WORK: with the run, the row */
    int64_t run;
    int64_t ranks;          /**< among which it goes */
    double touched, worked; /**< bytes */
    double kept;            /**< bytes that a rank copies of its own beside those */
    int64_t pieces;         /**< boxes */
    int meetings;           /**< of all its ranks */
    char *mesh;             /**< on the heap */
    timed_move timed;
} table_move;

typedef struct tables {
    table_move *moves;
    timed_move **timed; /**< the moves' own, in their order */
    size_t count, capacity;
} tables;

/** How many moves there are among so many ranks; the sizes and the dtype count. */
int64_t tables_count(const tables_request *r);

/** Collective over the place: times and checks the moves; every process finds the same. None where no size is large enough. `status` is
 * what came of this process so far. Returns the tool's exit status; the caller finishes the tables in any case. */
int tables_measure(place *p, const tables_request *r, int status, tables *out);
void tables_finish(tables *t);

/** Elements that are not what the moves must give. */
int64_t tables_wrong(const tables *t);

/** A profile of these links and what the tables come to; the caller destroys it. Returns the tool's exit status. */
int tables_fit(const tables *t, const tsr_cost_profile *links, tsr_profile **out);

#endif
