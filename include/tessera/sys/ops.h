/**
 * @file
 * What an op is: a row, which the library and programs write alike. docs/add-an-op.md adds
 * one to the library, and examples/custom_op one outside of it, by tsr_context_options.ops.
 */
#ifndef TESSERA_SYS_OPS_H
#define TESSERA_SYS_OPS_H

#include <tessera/ops.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The stage of a call whose exchanged factors are whole: the kernel computes all at once. */
#define TSR_STAGE_WHOLE (-1)

/**
 * One call of a kernel. Tensors have any strides; each result has its own memory, or exactly that
 * of an operand.
 *
 * An op whose rule has a factor marked "exchange" meets inside where mesh dims cut the factor. Its
 * kernel is then called for stage 0, 1, .. up to the row's number of exchanges. Each stage but the
 * last fills `record`, and the next one gets the records of all ranks along these mesh dims, or
 * along those of them that the row's `meets` chooses. The workspace stays as it is between stages.
 */
typedef struct tsr_kernel_call {
    const char *op;                           /**< its name, for errors */
    int code;                                 /**< which op of its kernel's it is; of the row */
    const tsr_attribute *attributes;          /**< all of the row's, in its order */
    const char *kernels;                      /**< "portable", "avx2" or "avx512" */
    const struct tsr_kernel_choices *choices; /**< how this rank moves many bytes, for
                                                   tsr_kernel_choices_way(); NULL: by the rule */
    int input_count, output_count;
    const tsr_tensor *inputs; /**< operands that are left out have no data and ndim -1 */
    const tsr_tensor *outputs;
    const tsr_layout *const *layouts;        /**< of the inputs; NULL: left out */
    const tsr_layout *const *result_layouts; /**< of the outputs */
    const int64_t *coordinate; /**< this rank's; with a layout it gives a shard's global intervals
                                    (tsr_layout_intervals()) */
    int stage;                 /**< TSR_STAGE_WHOLE, or 0, 1 and so on */
    const void *records;       /**< stage > 0: those of the stage before */
    int64_t record_stride;     /**< bytes from one record to the next, a multiple of 64 */
    int record_count; /**< the ranks that exchanged, in row-major order of their coordinates
                           along the mesh dims on which they met */
    int own_record;   /**< the place of this rank's own among them */
    void *record;     /**< to fill, but for the last stage; aligned to 64 bytes */
    void *workspace;  /**< as many bytes as the row wants, aligned to 64; else NULL */
    int64_t *query;   /**< for a device's `launch` alone (sys/device.h): where to answer how many
                           bytes of workspace the call wants; NULL: it is to be enqueued */
} tsr_kernel_call;

/** Computes the outputs, or a stage of them. Errors are those of data alone, because check has seen
 * dtypes and shapes. */
typedef tsr_status tsr_host_kernel(const tsr_kernel_call *call);

/** A number of bytes for a call whose tensors, layouts and stage are set. */
typedef int64_t tsr_kernel_bytes(const tsr_kernel_call *call);

/** Room for a rule that a row writes. */
#define TSR_OP_RULE_TEXT 256

/** A call of an op, before it runs. */
typedef struct tsr_op_case {
    const char *caller; /**< begins sentences */
    const tsr_op *op;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1]; /**< all of the row's, in its order */
    const tsr_layout *const *operands; /**< NULL: an optional operand that is left out */
} tsr_op_case;

/** A part of an operand's dim, which lies in another one from `offset` on. */
typedef struct tsr_op_part {
    int operand;                    /**< from whose dim it comes */
    int64_t size, start, end, step; /**< elements start, start + step, .. below end, of `size` */
    int64_t offset;                 /**< in the dim in which it lies */
} tsr_op_part;

/**
 * How tensors lie in each other along the factor marked "permute": parts of operands' dims follow
 * one another in a dim of the result, or of an operand. From this follow the placements of a result
 * where mesh dims cut the factor, so that nothing moves; where there are none the op is refused.
 *
 * slice: a part of the operand is the whole result. concat: each operand is a part. The gradient of
 * a slice: a part of operand 1, which has the shape and the cuts of the result, is the whole
 * operand 0.
 */
typedef struct tsr_op_placing {
    int count;                               /**< of parts */
    tsr_op_part parts[TSR_OP_MOST_OPERANDS]; /**< in ascending order of offsets */
    int64_t size; /**< of the dim in which the parts lie; what none covers is any rank's */
    int target;   /**< the operand in which they lie; -1: the result */
    int like;     /**< the operand whose cuts the result has, where the parts fit; -1: the plainest
                       that fit are found */
} tsr_op_placing;

/** A row: an op. */
struct tsr_op {
    size_t size; /**< sizeof(struct tsr_op); 0 in the library's own rows */
    const char *name;
    const char *rule; /**< the factor string; with `rule_of` the general form, for people */
    const char *operands[TSR_OP_MOST_OPERANDS + 1];
    const char *results[TSR_OP_MOST_RESULTS + 1];
    unsigned optional; /**< operands, by bits, that may be left out */
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1]; /**< with defaults */
    /** Checks dtypes and attributes, and gives the dtypes of results. Only optional operands may be
     * NULL. */
    tsr_status (*check)(const tsr_op_case *c, tsr_dtype results[TSR_OP_MOST_RESULTS]);
    /** NULL, or writes the rule for the operands' shapes and dtypes and the attributes, which are
     * checked. */
    tsr_status (*rule_of)(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
    /** NULL, or completes the shape of a result, in which a dim is -1 whose size does not follow
     * from the operands': one of a factor that results alone have, or that only compounds have, as
     * in "(a b) -> a b". With it, factors marked "whole" or "permute" may have another size in each
     * tensor. Called after check and rule_of, more than once. */
    tsr_status (*shape_of)(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);
    /** NULL, or tells to which placements the op redistributes its first operand: that is all that
     * it does, and it has no rule to fit and no kernel. All ranks of the mesh meet. */
    tsr_status (*moves_to)(const tsr_op_case *c, tsr_placement placements[TSR_MAX_DIMS]);
    tsr_host_kernel *host;
    int code; /**< given to the kernel */
    /** NULL, or makes the only local result as strides over the first input's memory, in `*out`,
     * whose dtype, device and shape are set. `*fits` false: no strides can say it, and the result
     * is new memory, which `host` fills. Not for `_into`, which always copies by `host`. */
    tsr_status (*view)(const tsr_kernel_call *call, tsr_tensor *out, bool *fits);
    /** How often ranks meet where a factor marked "exchange" is cut; 0: the rule has none. */
    int exchanges;
    /** With exchanges: bytes of this rank's record of `call->stage`, equal on all ranks that
     * exchange. */
    tsr_kernel_bytes *record_bytes;
    /** With exchanges: NULL, or the mesh dims, by bits and out of `exchanged`, along which ranks
     * meet after a stage, by the case's attributes and layouts alone. So long records are gathered
     * along few dims, and short ones along all. 0: ranks do not meet, and the next stage gets this
     * rank's record alone. */
    unsigned (*meets)(const tsr_op_case *c, int stage, unsigned exchanged);
    /** NULL, or bytes of memory that the kernel wants beside its tensors. */
    tsr_kernel_bytes *workspace_bytes;
    /**
     * The gradient of each operand in terms of rows; NULL: it has none.
     *
     *     gradient := "dout" | operand | "like " operand | "none"
     *               | row "(" gradient { "," gradient } { "," setting } ")" [ "." result ]
     *     setting  := attribute "=" ( "0.5" | "-0.5" | operand )
     *
     * "like x" is x, Replicate where x is Partial, and its values are not read. A row takes the
     * values of this op's attributes of the same name, unless settings say otherwise; an operand
     * stands for its dtype. A row of several results is run once for all gradients that begin with
     * the same text and take one each, by ".0", ".1", ... "none" leaves an optional operand out, as
     * does an operand that was left out. Where operand i was repeated, its gradient is summed
     * afterwards.
     */
    const char *gradients[TSR_OP_MOST_OPERANDS];
    /** NULL, or tells how the only result lies along the factor marked "permute", of which the rule
     * has one, so that mesh dims may cut it. Called after check. */
    void (*place_of)(const tsr_op_case *c, tsr_op_placing *out);
    /** The only result is the first operand, in its layout: `host` copies it, and a program need
     * not call it. */
    bool passes;
    /** NULL, or the mesh dims, by bits, on which a Replicate result varies though no operand does:
     * its gradient is Partial there. */
    unsigned (*varies)(const tsr_op_case *c);
};

#ifdef __cplusplus
}
#endif

#endif
