/**
 * Small integers as the terms of Partial tensors: exact in every dtype, in every order, and chosen
 * so that every term counts. A result that leaves a term out, takes one twice or takes another
 * element's differs.
 *
 * A term depends on the rank's coordinate in the Partial mesh dims of the source, on a *pick* (one
 * of these coordinates) and on a *choice* (0 to 7). Pick and choice are a *pattern*, which follows
 * from the element's global index.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_TERMS_H
#define TESSERA_TOOLS_BENCH_CHECK_TERMS_H

#include "oracle.h"

/** Number of choices of a term. */
#define TERM_CHOICES 8

/** The number of patterns; 0 if the source of the move has no Partial dims. */
int64_t terms_patterns(const oracle_move *move);

/** Writes the term of a coordinate for a pattern: an oracle_draw, without `how`. */
void terms_draw(const oracle_move *move, const void *how, const int64_t *coordinate, int64_t pattern,
                unsigned char *value);

#endif
