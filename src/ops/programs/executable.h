/** What an executable holds: places of values in memory, and the steps of a run. */
#ifndef TSR_OPS_PROGRAMS_EXECUTABLE_H
#define TSR_OPS_PROGRAMS_EXECUTABLE_H

#include "ops/programs/program.h"

#include <tessera/executable.h>

/** Memory is assigned in pieces of so many bytes. */
#define TSR_ROOM_ALIGNMENT 64

/** Where a value lies. */
typedef enum tsr_place {
    TSR_PLACE_NOWHERE,   /**< no step needs it, or this rank is outside its mesh */
    TSR_PLACE_WORKSPACE, /**< `room` */
    TSR_PLACE_INPUT,     /**< input `index` */
    TSR_PLACE_OUTPUT,    /**< output `index` */
    TSR_PLACE_BOUND,     /**< parameter `index` */
    TSR_PLACE_CONSTANT,  /**< memory of the executable */
    TSR_PLACE_VIEW,      /**< strides over another value, that a step finds when memory is linked */
    TSR_PLACE_UNREAD     /**< any memory */
} tsr_place;

/** A piece of the workspace, from the first step that writes it to the last that reads it. */
typedef struct tsr_room {
    size_t bytes, offset;
    int first, last;
} tsr_room;

/** A value that some step needs. */
typedef struct tsr_held {
    tsr_layout *layout;
    bool inside; /**< this rank has a coordinate in its mesh */
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_place place;
    size_t index;
    int base; /**< VIEW: over which value's memory it lies in the end; else the value itself */
    int room; /**< of the workspace; -1: none */
    void *constant;
    tsr_tensor tensor; /**< as linked */
} tsr_held;

/** What a step does. */
typedef enum tsr_step_kind {
    TSR_DOES_KERNEL,
    TSR_DOES_MOVE, /**< a redistribution by `plan` */
    TSR_DOES_VIEW, /**< nothing: its result is strides over its first operand's memory */
    TSR_DOES_SAME, /**< nothing: its result is its operand */
    TSR_DOES_COPY  /**< copies a value into an output */
} tsr_step_kind;

/** A mesh on which ranks meet inside ops. */
typedef struct tsr_met_mesh {
    tsr_mesh *given; /**< of the program */
    tsr_mesh *open;  /**< the same over the communicator; NULL: not prepared */
} tsr_met_mesh;

/** A step. */
typedef struct tsr_step {
    tsr_step_kind kind;
    int node;    /**< of the program; -1: none */
    int cause;   /**< MOVE: the node that needs it; -1: none */
    bool chosen; /**< MOVE: by the policy */
    bool inside; /**< this rank takes part */
    tsr_op_case c;
    char *caller;                                                     /**< begins sentences; owned */
    char *texts;                                                      /**< of the attributes; owned */
    int operands[TSR_OP_MOST_OPERANDS], results[TSR_OP_MOST_RESULTS]; /**< values; -1: none */
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS], *result_layouts[TSR_OP_MOST_RESULTS];
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS], outputs[TSR_OP_MOST_RESULTS]; /**< as linked */
    tsr_kernel_call call;
    unsigned exchanged; /**< mesh dims, by bits, along which ranks meet */
    int mesh;           /**< with `exchanged`: which of the executable's */
    uint64_t number;    /**< with `exchanged`: of the call, equal on ranks in the same one */
    int scratch;        /**< room of workspace and records; -1: none */
    tsr_plan *plan;     /**< MOVE */
    size_t plan_bytes;  /**< of workspace that the plan wants */
} tsr_step;

struct tsr_executable {
    tsr_context *context;
    int64_t rank;
    tsr_held *values; /**< by the program's numbers */
    size_t value_count;
    tsr_step *steps;
    size_t step_count;
    tsr_room *rooms;
    size_t room_count, room_room;
    int *inputs, *outputs, *bound; /**< values */
    size_t input_count, output_count, bound_count;
    char **bound_names, **input_names, **output_names;
    tsr_dtensor **tensors; /**< of `bound`; NULL: not yet */
    tsr_met_mesh *meshes;
    size_t mesh_count, mesh_room;
    size_t workspace_bytes;
    bool meets;           /**< ranks meet in some step */
    uint64_t fingerprint; /**< equal on ranks that compiled one program */
    const tsr_comm *comm; /**< on which it was prepared; NULL: none */
    tsr_tensor *linked;   /**< inputs, then outputs, of the last run */
    void *linked_workspace;
    bool is_linked;
};

/** Makes room in the workspace for `bytes` bytes from step `first` to step `last`. */
tsr_status tsr_executable_add_room(tsr_executable *x, size_t bytes, int first, int last, int *out);

/** Changes the size of a room. */
void tsr_executable_resize_room(tsr_executable *x, int room, size_t bytes);

/** Gives each room its offset, so that rooms whose times overlap do not, and sets the size of the
 * workspace. */
tsr_status tsr_executable_place_rooms(tsr_executable *x);

/** Writes the addresses of a run's memory into all steps; views find their strides. */
tsr_status tsr_executable_link(tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs, void *workspace);

/** A zeroed array of `count` items; NULL where `count` is 0. */
tsr_status tsr_executable_array(tsr_context *context, size_t count, size_t bytes, void **out);

#endif
