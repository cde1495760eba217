/** What an executable holds: forms and places of values, plans, and the steps of a run. */
#ifndef TSR_OPS_PROGRAMS_EXECUTABLE_H
#define TSR_OPS_PROGRAMS_EXECUTABLE_H

#include "ops/eager/launch.h"
#include "ops/programs/program.h"

#include <tessera/executable.h>

/** Memory is assigned in pieces of so many bytes. */
#define TSR_ROOM_ALIGNMENT 64

/** A layout that values have, on this rank: sizes are base + the sum of factor * length. */
typedef struct tsr_form {
    tsr_layout *largest; /**< with all lengths at their maxima */
    tsr_layout *layout;  /**< with the lengths of now */
    tsr_layout *before;  /**< while lengths change: with those before; NULL: the same */
    bool inside;         /**< this rank has a coordinate in its mesh */
    unsigned lengths;    /**< on which its sizes depend, by bits */
    int64_t coordinate[TSR_MAX_DIMS];
    int64_t base[TSR_MAX_DIMS], factor[TSR_MAX_DIMS][TSR_LENGTHS];
    tsr_tensor local; /**< contiguous, without data; ndim -1 outside the mesh */
    size_t bytes;     /**< of the local tensor at its largest */
} tsr_form;

/** Where a value lies. */
typedef enum tsr_place {
    TSR_PLACE_NOWHERE,   /**< no step needs it, or this rank is outside its mesh */
    TSR_PLACE_WORKSPACE, /**< `room` */
    TSR_PLACE_INPUT,     /**< input `index` */
    TSR_PLACE_OUTPUT,    /**< output `index` */
    TSR_PLACE_BOUND,     /**< parameter or state `index` */
    TSR_PLACE_CONSTANT,  /**< memory of the executable */
    TSR_PLACE_VIEW,      /**< strides over another value, which a step finds when memory is linked */
    TSR_PLACE_UNREAD,    /**< any memory */
    TSR_PLACE_TILE,      /**< `index` bytes into `room`, the scratch of the group of the step that makes it */
    TSR_PLACE_STATE      /**< in the memory of state `index`, where it is stored */
} tsr_place;

/** A piece of the workspace, from the first step that writes it to the last that reads it. */
typedef struct tsr_room {
    size_t bytes, offset;
    int first, last;
} tsr_room;

/** Memory on the executable's device that it keeps; NULL: none. */
typedef struct tsr_device_piece {
    void *data;
    size_t bytes;
} tsr_device_piece;

/** What a value is in a program that trains. */
typedef enum tsr_role {
    TSR_ROLE_PARAMETER,  /**< a parameter or state, or made of these alone */
    TSR_ROLE_ACTIVATION, /**< made of inputs, too */
    TSR_ROLE_GRADIENT,   /**< made of the gradient of a loss, or of an optimizer's states */
    TSR_ROLE_OPTIMIZER   /**< a state that only updates read */
} tsr_role;

/** A value that some step needs. */
typedef struct tsr_held {
    int form; /**< -1: no step needs it */
    tsr_place place;
    tsr_role role;
    size_t index;
    bool is_state, is_used;     /**< of parameters and states */
    int base;                   /**< VIEW: over which value's memory it lies in the end; else the value itself */
    int room;                   /**< of the workspace; -1: none */
    void *constant;             /**< on the host */
    tsr_device_piece on_device; /**< with `constant`: there; all zero: not yet, or the host */
    bool is_lent;               /**< an input that lies on the host, whatever the device */
    tsr_tensor tensor;          /**< as linked */
} tsr_held;

/** The most plans that a move keeps for different lengths. */
#define TSR_VARIANTS 8

/** The most moves that share an exchange. */
#define TSR_BATCH 16

/** Redistributions between forms that share an exchange, or one; for all that are alike. */
typedef struct tsr_planned {
    int count;
    int from[TSR_BATCH], to[TSR_BATCH];
    bool is_used;     /**< by some step */
    unsigned lengths; /**< on which some form depends, by bits */
    bool alike;       /**< all ranks have the same by both forms, whatever cuts are called */
    bool local;       /**< nothing crosses ranks, on any rank, so that they do not meet */
    bool same;        /**< and this rank keeps what it has: the result may lie over the operand's memory */
    size_t bytes;     /**< of workspace, at the largest */
    tsr_plan *now;    /**< one of the variants */
    tsr_plan *next;   /**< while lengths change: for the lengths that are new; NULL: a variant fits */
    int variant_count;
    struct {
        tsr_plan *plan;
        int64_t lengths[TSR_LENGTHS];
        uint64_t used; /**< when it was last wanted */
    } variants[TSR_VARIANTS];
} tsr_planned;

/** What a step does. */
typedef enum tsr_does {
    TSR_DOES_KERNEL,
    TSR_DOES_MOVE,  /**< a redistribution */
    TSR_DOES_VIEW,  /**< nothing: its result is strides over its first operand's memory */
    TSR_DOES_SAME,  /**< nothing: its result is its operand */
    TSR_DOES_STORE, /**< writes a value into a state */
    TSR_DOES_COPY   /**< copies a value into an output */
} tsr_does;

/** A mesh on which ranks meet inside ops. */
typedef struct tsr_met_mesh {
    tsr_mesh *given; /**< of the program */
    tsr_mesh *open;  /**< the same over the communicator; NULL: not prepared */
} tsr_met_mesh;

/** A tensor of a step of a group, of which steps get a tile. */
typedef struct tsr_cursor {
    tsr_tensor *tensor; /**< of the step */
    int value;
    int step;      /**< the kernel's step whose result it is, which may go past the caches; -1: none */
    bool is_first; /**< the group reads its memory here first, by a kernel that fetches nothing ahead */
    int64_t ahead; /**< with `is_first`: bytes of a tile that lie without gaps, as the next one's; or 0 */
    char *data;    /**< of the first tile */
    int64_t strides[TSR_MAX_DIMS]; /**< along the group's dims, in bytes; 0: the same memory again */
} tsr_cursor;

/**
 * Pointwise steps, one after the other, whose results have one local shape. Where there are more
 * elements than a tile has, all steps run on a tile before any runs on the next one, so that the
 * tensors pass the caches once; the last step runs them all. Else each step runs by itself.
 */
typedef struct tsr_group {
    int first, last; /**< steps; between them are none that do anything else */
    int64_t most;    /**< elements of a tile */
    size_t bytes;    /**< of scratch */
    tsr_cursor *cursors;
    int cursor_count;
    bool dirty; /**< some step was linked anew */
    /* As linked. */
    int ndim;                    /**< dims along which tiles follow one another; 0: there is one tile */
    int64_t shape[TSR_MAX_DIMS]; /**< elements along these dims */
    int64_t length;              /**< of a tile along the last of them */
} tsr_group;

/** A step. */
typedef struct tsr_step {
    tsr_does kind;
    int node;         /**< of the program; -1: none */
    int cause;        /**< MOVE: the node that needs it; -1: none */
    bool chosen;      /**< MOVE: by the policy */
    bool inside;      /**< this rank takes part */
    unsigned lengths; /**< in its attributes, by bits */
    int key;          /**< of the run, which its attributes want; -1: none */
    uint32_t sources; /**< from which its tensors and attributes follow, by bits (link.c) */
    tsr_op_case c;
    tsr_attribute raw[TSR_OP_MOST_ATTRIBUTES + 1];                    /**< as recorded, with lengths and keys */
    char *caller;                                                     /**< begins sentences; owned */
    char *texts;                                                      /**< of the attributes; owned */
    int operands[TSR_OP_MOST_OPERANDS], results[TSR_OP_MOST_RESULTS]; /**< values; -1: none */
    int operand_count, result_count;                                  /**< up to the last that is a value */
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS], *result_layouts[TSR_OP_MOST_RESULTS];
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS], outputs[TSR_OP_MOST_RESULTS]; /**< as linked */
    tsr_kernel_call call;
    unsigned exchanged; /**< mesh dims, by bits, along which ranks meet */
    int mesh;           /**< with `exchanged`: which of the executable's */
    uint64_t number;    /**< with `exchanged`: of the call, equal on ranks in the same one */
    int dim;            /**< STORE: along which the position counts; -1: none */
    int64_t state_size; /**< STORE: the state's size along it */
    bool is_there;      /**< STORE: the value was made in the state's memory */
    int scratch;        /**< room of workspace and records; -1: none */
    tsr_launch_way way; /**< KERNEL: how a device computes it */
    int plan;           /**< MOVE: which of the executable's */
    int batch;          /**< MOVE: of several; -1: alone */
    int place;          /**< MOVE: which of the plan's moves it is; the first runs all */
    int first, last;    /**< it reads and writes from before step `first` to before step `last` */
    int group;          /**< KERNEL, STORE: of the executable's; -1: none */
    bool is_apart;      /**< KERNEL: a call of the kernel is not all: ranks meet, or `is_tiled` */
    bool is_tiled;      /**< as linked: the group runs tile by tile */
    bool is_streamed;   /**< with `is_tiled`: the result goes past the caches */
} tsr_step;

/** Moves that share an exchange, one after the other among the steps. */
typedef struct tsr_batch {
    tsr_tensor inputs[TSR_BATCH], outputs[TSR_BATCH]; /**< as linked */
} tsr_batch;

/** A key that runs give. */
typedef struct tsr_executable_key {
    char *name;
    bool is_used;       /**< by some step */
    tsr_random_key key; /**< of now; without words until it is given */
    bool is_given;
    uint64_t changed; /**< when it last changed */
} tsr_executable_key;

/** Moves that may be open while steps run, where the engine overlaps: `step`, and those that share
 * its exchange, from before step `first` to before step `last`. */
typedef struct tsr_early {
    int step, first, last;
} tsr_early;

struct tsr_executable {
    tsr_context *context;
    int64_t rank;
    tsr_device device;       /**< on which it runs */
    tsr_device_piece unread; /**< one element, for operands that no op reads; all zero: none yet, or the host */
    bool stands_in;          /**< steps are not linked to a run's memory, so that their tensors tell shapes alone */
    tsr_form *forms;
    size_t form_count, form_room;
    tsr_held *values; /**< by the program's numbers */
    size_t value_count;
    tsr_planned *plans;
    size_t plan_count, plan_room;
    tsr_step *steps;
    size_t step_count;
    tsr_batch *batches; /**< for each step that begins one, by `tsr_step.batch` */
    size_t batch_count, batch_room;
    int *told; /**< steps in the order in which they are told, which is the same on every rank */
    tsr_group *groups;
    size_t group_count, group_room;
    tsr_early *early; /**< in order, one after the other */
    size_t early_count;
    bool overlaps;  /**< moves may be open while steps run */
    bool has_rooms; /**< memory is assigned for that */
    bool ends_open; /**< and then the last meeting may be such a move, so that ranks agree once more */
    tsr_room *rooms;
    size_t room_count, room_room;
    int *inputs, *outputs, *bound; /**< values */
    size_t input_count, output_count, bound_count;
    char **bound_names, **input_names, **output_names;
    tsr_dtensor **tensors; /**< of `bound`; NULL: not yet */
    tsr_met_mesh *meshes;
    size_t mesh_count, mesh_room;
    tsr_program_length lengths[TSR_LENGTHS];
    int64_t length[TSR_LENGTHS]; /**< of now */
    size_t length_count;
    tsr_executable_key keys[TSR_RUN_KEYS];
    size_t key_count;
    uint64_t clock;                /**< counts changes of lengths and keys */
    uint64_t changed[TSR_LENGTHS]; /**< when each length last changed */
    uint64_t linked_clock;         /**< of the lengths and keys that steps are linked for */
    uint32_t *sources;             /**< of each value's memory and sizes, by bits (link.c) */
    size_t workspace_bytes;
    bool has_grown; /**< rooms have, and must be placed again */
    bool meets;     /**< ranks meet in some step */
    void *saved;    /**< the program as bytes; owned */
    size_t saved_bytes;
    uint64_t fingerprint; /**< equal on ranks that compiled one program */
    tsr_comm *comm;       /**< on which it was prepared; NULL: none */
    tsr_tensor *linked;   /**< inputs, then outputs, of the last run */
    void *linked_workspace;
    bool is_linked;
};

/** The form of a value; `value` has one. */
static inline const tsr_form *tsr_form_of(const tsr_executable *x, int value)
{
    return &x->forms[x->values[value].form];
}

/** A step's call as a device's table takes it, which finds kernels by the row's name. */
static inline tsr_kernel_call tsr_step_as_launched(const tsr_step *step, const tsr_kernel_call *call)
{
    tsr_kernel_call launched = *call;
    launched.op = step->c.op->name;
    return launched;
}

#endif
