/** Slots: what each token has chosen, by expert. Slot j of token t is number t * s + j. */
#ifndef TSR_OPS_KERNELS_MIXTURE_SLOTS_H
#define TSR_OPS_KERNELS_MIXTURE_SLOTS_H

#include "ops/kernels/call.h"

/** Attributes of the rows, in their order. */
enum { TSR_MIXTURE_ACTIVATION, TSR_MIXTURE_CAPACITY, TSR_MIXTURE_OVERFLOW, TSR_MIXTURE_BEYOND };

/** Places of the words of `activation`, `overflow` and `beyond`. */
enum { TSR_MIXTURE_SILU, TSR_MIXTURE_GELU, TSR_MIXTURE_GELU_TANH, TSR_MIXTURE_RELU };
enum { TSR_MIXTURE_FAIL, TSR_MIXTURE_DROP };
enum { TSR_MIXTURE_REFUSED, TSR_MIXTURE_ZERO, TSR_MIXTURE_IDENTITY };

/** Places of slots without an expert of this rank. */
#define TSR_SLOT_ELSEWHERE (-1) /**< another rank has the expert */
#define TSR_SLOT_BEYOND    (-2) /**< the id is behind the last expert */
#define TSR_SLOT_DROPPED   (-3) /**< this rank's expert has as many tokens as it may */

/** The slots of this rank's tokens. */
typedef struct tsr_slots {
    int64_t tokens, each;  /**< each: the slots of a token */
    int64_t experts;       /**< this rank's */
    const int64_t *places; /**< of each slot its expert among this rank's, or a TSR_SLOT_ */
    const int64_t *order;  /**< slots with an expert, expert by expert, in ascending order */
    const int64_t *starts; /**< where in `order` the slots of each expert begin, and the end */
    bool gives;            /**< of the ranks that have parts of the experts, this one answers for slots beyond */
} tsr_slots;

/** Bytes of memory for tsr_slots_sort(), a multiple of 64. */
size_t tsr_slots_bytes(const tsr_kernel_call *call, int x);

/** Sorts the slots of a call whose operands from `x` on are x, ids, gate_up and down, in that
 * memory. TSR_ERROR_ARGUMENT: an id is out of range, or an expert has more tokens
 * than the capacity, and none may be dropped. */
tsr_status tsr_slots_sort(const tsr_kernel_call *call, int x, void *memory, tsr_slots *out);

#endif
