/**
 * The bytes of a saved program. Numbers are little-endian, signed ones in two's complement; nothing
 * is aligned.
 *
 *     program   := "tsr-prog" u32 version, u64 bytes in all, i64 bytes of layouts, layouts,
 *                  u32 lengths, { name "\0", i64 maximum }, u32 keys, { name "\0", u32 generator },
 *                  i64 entries, { entry }, u32 outputs, { name "\0", i32 value },
 *                  u64 checksum of all before it
 *     layouts   := nothing, or the saved plan that moves each distinct layout to itself
 *     entry     := u32 kind, u32 values, { u32 layout, u32 varying, u32 again }, what
 *     what      := name "\0", { i64 size }          input; sizes as recorded, with lengths
 *                | name "\0"                        parameter, state
 *                | f64, i32 like                    constant
 *                | i32 like
 *                | u32 round, name "\0", u32 attributes, { attribute }, u32 operands, { i32 value }
 *                | i32 value, u32 round, u32 chosen, i32 cause             move
 *                | i32 state, i32 value, i32 position                      store
 *     attribute := name "\0", u32 kind, number | f64 | word "\0" | u32 count, { i64 } | text "\0"
 *
 * Values are numbered in the order in which entries make them, layouts in the order in which values
 * first have them. A length stands in sizes and attributes as -2^63 + its number. A key that runs
 * give stands in the attribute "key" as 6 numbers: its own, how many are folded into it, and these,
 * with zeros behind them. A program has one form alone: loading refuses bytes that would say the
 * same in another way. Any change of what is written needs another version.
 *
 *     executable := "tsr-exec" u32 version, u64 bytes in all, i64 rank, program, u64 checksum
 */
#ifndef TSR_OPS_PROGRAMS_SAVED_SAVE_H
#define TSR_OPS_PROGRAMS_SAVED_SAVE_H

#include "ops/programs/program.h"

#include <tessera/sys/bytes.h>

#define TSR_SAVED_PROGRAM_VERSION 2

static const tsr_frame tsr_program_frame = {"program", "tsr-prog", TSR_SAVED_PROGRAM_VERSION,
                                            TSR_SAVED_PROGRAM_VERSION};

/** What an entry makes. */
typedef enum tsr_entry_kind {
    TSR_ENTRY_INPUT,
    TSR_ENTRY_PARAMETER,
    TSR_ENTRY_STATE,
    TSR_ENTRY_CONSTANT,
    TSR_ENTRY_LIKE,
    TSR_ENTRY_OP,
    TSR_ENTRY_MOVE,
    TSR_ENTRY_STORE,
    TSR_ENTRY_KINDS
} tsr_entry_kind;

/** Writes a program without an error, at the writer's first byte. `*size`: its bytes in all, also
 * those past the writer's capacity. */
tsr_status tsr_program_write(const tsr_program *program, tsr_writer *writer, size_t *size);

#endif
