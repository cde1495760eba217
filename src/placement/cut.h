/**
 * One cut: how a mesh dim of size n divides a piece of length L into n parts. Pure integers;
 * nothing allocates.
 *
 * Every cut is a map between positions of the piece and (part, position in the part). Both
 * directions are answered by a *run*: from a position on, the longest stretch in which the part
 * stays the same and both positions advance together. Shapes, offsets, intervals and overlaps of
 * two layouts are all read off runs.
 */
#ifndef TSR_PLACEMENT_CUT_H
#define TSR_PLACEMENT_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A modifier that the placement leaves out has its neutral value: interleave 1, unit 1, no
 * starts. */
typedef struct tsr_cut {
    int64_t parts;
    int balanced;
    int64_t interleave;
    int64_t unit;
    const int64_t *size_starts;  /**< parts + 1 ascending numbers from 0, or NULL; borrowed */
    const int64_t *block_starts; /**< block_count + 1 ascending numbers from 0, or NULL; borrowed */
    size_t block_count;
} tsr_cut;

/** Positions [begin, begin + length) of the piece are positions [local, local + length) of part
 * `part`. */
typedef struct tsr_cut_run {
    int64_t part, local, begin, length;
} tsr_cut_run;

/** The last look-up of one part: it has `before` positions in the blocks before block `index`.
 * Begins as all zero. */
typedef struct tsr_cut_mark {
    int64_t index, before;
} tsr_cut_mark;

/** Parts [begin, end) have `length` positions each. */
typedef struct tsr_cut_stretch {
    int64_t begin, end, length;
} tsr_cut_stretch;

/** The most stretches that tsr_cut_stretches() finds. */
#define TSR_CUT_STRETCHES 3

/* What a kind of split is like. Other folders ask these questions and read no field but
 * `parts`, so that a new kind of split needs an answer here and no change there. */

/** True if every part is one interval of the piece, and part p + 1 begins where part p ends. */
bool tsr_cut_deals_intervals(const tsr_cut *cut);

/** True if the piece is divided into blocks of one length, each of which is cut alike. */
bool tsr_cut_interleaves(const tsr_cut *cut);

/** True if the length of each part is given by itself, so that parts of equal length do not lie
 * side by side. */
bool tsr_cut_lists_sizes(const tsr_cut *cut);

/** True if all parts of a piece of `length` are equally long. */
bool tsr_cut_is_even(const tsr_cut *cut, int64_t length);

/** Lists the parts of a piece of `length` that are not empty, equal neighbours together, and
 * returns how many stretches there are. For cuts that deal intervals and do not list sizes. `out`
 * has room for TSR_CUT_STRETCHES. */
int tsr_cut_stretches(const tsr_cut *cut, int64_t length, tsr_cut_stretch *out);

/** The cut into `parts` parts at multiples of `unit`; the first parts have a unit more where units
 * do not divide evenly. */
tsr_cut tsr_cut_balanced(int64_t parts, int64_t unit);

/** The length of part `part` of a piece of `length`. */
int64_t tsr_cut_size(const tsr_cut *cut, int64_t length, int64_t part);

/** Upper bound for the length of any part of a piece of at most `length`; exact unless parts
 * interleave. */
int64_t tsr_cut_most(const tsr_cut *cut, int64_t length);

/** The part that position `at` of the piece belongs to, 0 <= at < length. */
int64_t tsr_cut_part(const tsr_cut *cut, int64_t length, int64_t at);

/** The run that starts at position `at` of the piece, 0 <= at < length. `mark` belongs to this part
 * of this piece: with it, look-ups at ascending positions go through the blocks once. NULL:
 * without. */
tsr_cut_run tsr_cut_owner(const tsr_cut *cut, int64_t length, int64_t at, tsr_cut_mark *mark);

/** The run that starts at position `at` of part `part`, 0 <= at < tsr_cut_size(). `mark` as for
 * tsr_cut_owner(). */
tsr_cut_run tsr_cut_position(const tsr_cut *cut, int64_t length, int64_t part, int64_t at, tsr_cut_mark *mark);

#endif
