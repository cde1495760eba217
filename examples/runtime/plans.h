/** A file of plans: what a compiler leaves for the runtime. It is made without devices, threads or
 * communicators, and is the same for all ranks. */
#ifndef EXAMPLES_RUNTIME_PLANS_H
#define EXAMPLES_RUNTIME_PLANS_H

#include <tessera/plan.h>

#include <stddef.h>

/** The most moves of a file. */
enum { MOST_MOVES = 16 };

/** A move that a compiler has found in its program. */
typedef struct move_text {
    const char *name, *mesh, *from, *to;
    int64_t shape[2];
} move_text;

/** The moves of the example's program; the last has no name. */
extern const move_text program_moves[];

/** Plans the moves and writes them to a file. */
tsr_status plans_write(tsr_context *context, const move_text *moves, const char *path);

/** A file in memory. Names and bytes of plans are borrowed from it. */
typedef struct plans {
    void *bytes;
    size_t size;
    int count, ranks; /**< moves; ranks that execute them */
    struct {
        const char *name;
        const void *plan;
        size_t size;
    } moves[MOST_MOVES];
} plans;

/** Reads a file, which is not trusted: one that is damaged or of another version is refused with a
 * sentence. Free it with plans_close(). */
tsr_status plans_open(tsr_context *context, const char *path, plans *out);
void plans_close(tsr_context *context, plans *p);

#endif
