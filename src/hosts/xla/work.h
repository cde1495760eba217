/* What a rank keeps of a call between launches: the mesh over its communicator, a plan, and how
 * operands and results lie in XLA's buffers. */
#ifndef TSR_HOSTS_XLA_WORK_H
#define TSR_HOSTS_XLA_WORK_H

#include "attributes.h"

#include <tessera/linear.h>

/* Where a rank computes. */
typedef struct tsr_xla_lane {
    tsr_device device; /* the host, or a GPU of libtessera-cuda */
    tsr_stream stream; /* XLA's; NULL on the host */
} tsr_xla_lane;

/* A rank's part in a buffer: its leading box, or all of it in another shape. */
typedef struct tsr_xla_part {
    tsr_tensor tensor; /* without data */
    size_t bytes;      /* of the buffer */
    bool padded;       /* the part is not all of the buffer */
} tsr_xla_part;

typedef struct tsr_xla_work {
    tsr_context *context; /* borrowed */
    tsr_xla_lane lane;    /* of this call */
    tsr_comm *comm;       /* retained: a host may end it, and lend another one in its place */
    tsr_mesh *mesh;
    tsr_plan *plan;                     /* of moves; */
    tsr_linear_plan *forward;           /* or of a layer, */
    tsr_linear_backward_plan *backward; /* or of its gradients */
    int64_t operands, results;
    tsr_xla_part *parts; /* of the operands, then of the results */
    tsr_tensor *tensors; /* those of the parts, with this call's data */
    void *workspace;     /* of the lane's device: the work's own on the host, on a GPU this call's */
    size_t bytes;
} tsr_xla_work;

/* A work for a frame's operands and results on the lane's device, with a mesh over `comm` unless
 * `mesh` is NULL. */
tsr_status tsr_xla_work_begin(tsr_context *context, tsr_comm *comm, const char *mesh, const tsr_xla_lane *lane,
                              const XLA_FFI_CallFrame *frame, tsr_xla_work **out);

void tsr_xla_work_end(tsr_xla_work *work);

/* The buffer of an operand, or with `at` >= work->operands of a result. */
const XLA_FFI_Buffer *tsr_xla_work_buffer(const tsr_xla_work *work, const XLA_FFI_CallFrame *frame, int64_t at);

/* Makes the part of `layout` the leading box of the buffer `at`, which has the longest part's
 * length in each dim. `name` is for the sentence: "operand 0", "dy". */
tsr_status tsr_xla_work_box(tsr_xla_work *work, const XLA_FFI_CallFrame *frame, int64_t at, const tsr_layout *layout,
                            const char *name);

/* Makes the part of `layout` all of the buffer `at`, which has as many elements. */
tsr_status tsr_xla_work_view(tsr_xla_work *work, const XLA_FFI_CallFrame *frame, int64_t at, const tsr_layout *layout);

/* The workspace of all calls; on a GPU its size alone, for scratch.h borrows it for each call. */
tsr_status tsr_xla_work_allocate(tsr_xla_work *work, size_t bytes);

/* True if the work's tensors lie on a GPU. */
bool tsr_xla_work_on_gpu(const tsr_xla_work *work);

/* Points the tensors to this call's buffers. Refuses buffers of other shapes or dtypes than those
 * the work began with. */
tsr_status tsr_xla_work_point(tsr_xla_work *work, const tsr_xla_lane *lane, const XLA_FFI_CallFrame *frame);

/* Clears the padding of results, in the order of the lane's stream. Follows the execution: until
 * then a result may be a donated operand, and peers may read from it. */
tsr_status tsr_xla_work_pad(const tsr_xla_work *work, const XLA_FFI_CallFrame *frame);

#endif
