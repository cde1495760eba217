/** One rank's tensor of a move, with guarded memory around it, whose contents can be checked. */
#ifndef TESTS_SHEET_H
#define TESTS_SHEET_H

#include "drill.h"
#include "rules.h"

#include <tessera/tensor.h>

typedef struct sheet {
    bool inside; /**< the rank is in the layout's mesh; if not, there is no memory */
    unsigned char *memory;
    size_t bytes;
    tsr_tensor tensor;
    int64_t owned[RULE_DIMS][RULE_LENGTH]; /**< the global index of each local index, along each dim */
} sheet;

/** Allocates the part of `rank`, with gaps and permuted dims if `strided`. False if there is no
 * memory. */
bool sheet_create(const rule_layout *layout, int64_t rank, bool strided, drill_draws *draws, sheet *out);
void sheet_destroy(sheet *s);

/** rule_source_value() or rule_expected_value(). */
typedef void sheet_value(const rule_move *move, rule_values values, int64_t rank, int64_t global, unsigned char *out);

/** Writes the rank's elements, and a pattern around them. */
void sheet_fill(sheet *s, const rule_move *move, rule_values values, int64_t rank, sheet_value *value);

/** Writes the pattern alone. */
void sheet_blank(sheet *s);

/** True if the memory is as sheet_fill() would make it; else `*at` is the index of the first byte
 * that differs. */
bool sheet_holds(const sheet *s, const rule_move *move, rule_values values, int64_t rank, sheet_value *value,
                 size_t *at);

#endif
