/** What a program does and costs, on one rank or on all. */
#ifndef TESSERA_TOOLS_PROGRAM_COUNT_H
#define TESSERA_TOOLS_PROGRAM_COUNT_H

#include "cli/text_buffer.h"
#include "program/request.h"

#include <tessera/executable.h>
#include <tessera/explain.h>

/** The most ranks for which an answer is made one by one. */
#define MOST_COUNTED_RANKS 4096

/** A step. */
typedef struct program_step {
    tsr_executable_step what; /**< on the first rank that was counted */
    tsr_plan_sum bytes;       /**< received */
    double seconds;           /**< of the slowest rank */
} program_step;

typedef struct program_count {
    const program_request *request; /**< borrowed */
    tsr_executable *first;          /**< of the first rank, from which steps borrow */
    bool has_totals;                /**< all ranks, or that of --rank, were counted */
    program_step *steps;            /**< without copies into outputs; on the heap */
    size_t count;
    tsr_plan_sum bytes;           /**< received */
    int64_t peak_bytes;           /**< of the rank that has most */
    tsr_executable_memory memory; /**< of that rank */
    double seconds;               /**< of the slowest rank */
    int64_t flops;                /**< of products, of the rank that has most */
} program_count;

/** Compiles for the rank of --rank, for all ranks, or for the first of too many. Returns the tool's
 * exit status; the caller calls program_count_finish() in any case. */
int program_count_make(const program_request *r, program_count *out);
void program_count_finish(program_count *c);

/** What a rank's memory is for, except tsr_executable_memory.kept: parts that add up to the
 * peak. */
#define MEMORY_PARTS 9
typedef struct memory_part {
    const char *name, *words; /**< as JSON and text say it; static */
    size_t bytes;
} memory_part;

void memory_parts(const tsr_executable_memory *m, memory_part parts[MEMORY_PARTS]);

/** True if a step redistributes a value. */
bool is_move(const tsr_executable_step *step);

/** The answer as the tool prints it; both return the tool's exit status. */
int program_to_json(const program_count *c, text_buffer *to);
int program_to_text(const program_count *c, text_buffer *to);

#endif
