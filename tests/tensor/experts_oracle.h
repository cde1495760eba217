/** Tokens that follow from small numbers, and the rows that experts must get of them, by plain
 * lists that each rank makes for all ranks. */
#ifndef TESTS_TENSOR_EXPERTS_ORACLE_H
#define TESTS_TENSOR_EXPERTS_ORACLE_H

#include <tessera/experts.h>

#include <stdbool.h>

/** The most ranks, experts, tokens of a rank, slots, and rows of a rank. */
enum { EXPERTS_RANKS = 8, EXPERTS_MOST = 12, EXPERTS_TOKENS = 9, EXPERTS_SLOTS = 3, EXPERTS_ROWS = 216 };

/** Experts on a mesh. */
typedef struct experts_site {
    int ranks;
    const char *mesh, *placements;
    const char *roles; /**< of each mesh dim: e deals out experts, t cuts them, r has replicas */
    int64_t experts;
} experts_site;

/** A row: the token's rank, the token and the slot; and its expert. */
typedef struct experts_row {
    int rank;
    int64_t token, slot, expert;
} experts_row;

/** What all ranks bring in a round. */
typedef struct experts_round {
    const experts_site *site;
    const tsr_layout *layout;
    int round;
    int64_t slots;
    int64_t capacity; /**< of an expert; 0: any */
    int64_t room;     /**< of a rank: room + rank % 3; -1: enough for all */
} experts_round;

/** The number of tokens of a rank; the expert of a slot, -1 for some; its weight, 1 or 2. */
int64_t experts_tokens(const experts_round *r, int rank);
int64_t experts_id(const experts_round *r, int rank, int64_t token, int64_t slot);
double experts_weight(const experts_round *r, int rank, int64_t token, int64_t slot);

/** An element of a token: 0 to 3. */
double experts_x(const experts_round *r, int rank, int64_t token, int64_t column);

/** What part `part` of an expert multiplies by. */
double experts_factor(int64_t expert, int64_t part);

/** The room of a rank. */
int64_t experts_room(const experts_round *r, int rank);

/** The number of parts of an expert, and the part that a rank has. */
int64_t experts_parts(const experts_round *r);
int64_t experts_part(const experts_round *r, int rank);

/** Lists the rows of a rank, in order. `sizes`: of its experts, whose number is `*experts`.
 * `needed`: how many there were before some were dropped. Returns their number. */
int64_t experts_list(const experts_round *r, int rank, experts_row *rows, int64_t *sizes, int64_t *experts,
                     int64_t *needed);

/** True if a slot has a row. */
bool experts_keeps(const experts_round *r, int rank, int64_t token, int64_t slot);

#endif
