/** What a program holds: values, and the nodes that make them, in the order of recording. */
#ifndef TSR_OPS_PROGRAMS_PROGRAM_H
#define TSR_OPS_PROGRAMS_PROGRAM_H

#include "ops/rows/key_recipe.h"
#include "ops/rows/row.h"

#include <tessera/program.h>
#include <tessera/sys/status.h>

/** Where a value comes from. */
typedef enum tsr_value_kind {
    TSR_VALUE_INPUT,
    TSR_VALUE_PARAMETER,
    TSR_VALUE_STATE, /**< as a run finds it, or as a store leaves it */
    TSR_VALUE_CONSTANT,
    TSR_VALUE_RESULT, /**< of a node */
    TSR_VALUE_LIKE    /**< has a layout, and values that nobody reads */
} tsr_value_kind;

/** The most lengths of a program. */
#define TSR_LENGTHS 8

/** A length that runs give: of dims that are compiled for its maximum. */
typedef struct tsr_program_length {
    char *name;
    int64_t maximum;
} tsr_program_length;

/** A key that runs give. */
typedef struct tsr_program_key {
    char *name;
    tsr_random_generator generator;
} tsr_program_key;

/** A value. */
typedef struct tsr_program_value {
    tsr_value_kind kind;
    char *name;  /**< NULL: none */
    char *label; /**< for people; NULL: none */
    tsr_layout *layout;
    unsigned varying; /**< mesh dims, by bits, on which it is Replicate and its gradient Partial */
    int node;         /**< the node that makes it; -1: none */
    int result;       /**< with `node`: which of the node's it is */
    double constant;
    bool again;                  /**< RESULT: the backward computes it again rather than keep it */
    int64_t shape[TSR_MAX_DIMS]; /**< INPUT: as recorded, with lengths */
    tsr_value like;              /**< LIKE, and CONSTANT: a value of its shape; TSR_NONE: none */
    tsr_value first;             /**< STATE: the state as runs find it */
    tsr_value now;               /**< STATE, of the first: as the last store leaves it */
} tsr_program_value;

/** What makes values. */
typedef struct tsr_program_node {
    const tsr_op *op; /**< NULL: a move, or a store */
    bool stores;      /**< operands are a state, a value and the position; the result is the state */
    int dim;          /**< of a store: the dim in which the position counts; -1: none */
    /** With lengths and keys as recorded; lengths.h puts numbers in. */
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1];
    char *texts;                              /**< copies of the attributes' texts; NULL: none */
    tsr_value operands[TSR_OP_MOST_OPERANDS]; /**< of a move the first alone */
    tsr_value results[TSR_OP_MOST_RESULTS];
    unsigned exchanged; /**< mesh dims, by bits, along which ranks meet inside the op */
    uint64_t hash;      /**< of op, attributes and operands, or of a move's layout */
    int round;          /**< nodes are shared within a round: the forward pass, or computing again */
    bool chosen;        /**< a move that the policy put in */
    int cause;          /**< the node for which the policy put the move in; -1: an output, or the program wrote it */
} tsr_program_node;

/** An output. */
typedef struct tsr_program_output {
    char *name;
    tsr_value value;
} tsr_program_output;

struct tsr_program {
    tsr_context *context;
    tsr_program_value *values;
    size_t value_count, value_room;
    tsr_program_node *nodes;
    size_t node_count, node_room;
    tsr_program_output *outputs;
    size_t output_count, output_room;
    tsr_program_length lengths[TSR_LENGTHS];
    size_t length_count;
    tsr_program_key keys[TSR_RUN_KEYS];
    size_t key_count;
    int *table; /**< nodes by hash, plus 1; 0: free */
    size_t table_room;
    int round;         /**< of the nodes that are recorded now */
    tsr_status status; /**< the first error */
    tsr_kept_sentence sentence;
};

/** Notes a failure, whose sentence is this thread's last, as the program's first error, unless
 * there is one. Returns TSR_NONE. */
tsr_value tsr_program_fail(tsr_program *program, tsr_status status);

/** True if recording goes on; `program` may be NULL. */
bool tsr_program_records(const tsr_program *program);

/** Doubles the room of an array of items of `bytes` that has no room for one more. */
tsr_status tsr_program_grow(tsr_context *context, size_t bytes, size_t count, size_t *room, void **items);

/** A zeroed array of `count` items; NULL where `count` is 0. */
tsr_status tsr_program_array(tsr_context *context, size_t count, size_t bytes, void **out);

/** A copy of a text. */
tsr_status tsr_program_copy_text(tsr_context *context, const char *text, char **out);

/** Adds a value of `layout`, which it retains. */
tsr_status tsr_program_add_value(tsr_program *program, tsr_value_kind kind, tsr_layout *layout, tsr_value *out);

/** The value, or NULL. */
tsr_program_value *tsr_program_value_at(const tsr_program *program, tsr_value value);

#endif
