#include "ops/replicas/sums.h"

#include "ops/kernels/pointwise.h"
#include "ops/numbers.h"

#include <string.h>

/* Elements that are added at a time, in f64. */
enum { PIECE = 512 };

/* Converts `count` elements, rounding once. */
static void convert(const tsr_replicas *r, const void *from, tsr_dtype from_dtype, void *to, tsr_dtype to_dtype,
                    int64_t count)
{
    const tsr_tensor source = tsr_tensor_contiguous((void *)(uintptr_t)from, from_dtype, 1, &count);
    const tsr_tensor target = tsr_tensor_contiguous(to, to_dtype, 1, &count);
    const tsr_kernel_call call = {.op = "cast",
                                  .kernels = tsr_context_kernels(r->context),
                                  .input_count = 1,
                                  .output_count = 1,
                                  .inputs = &source,
                                  .outputs = &target};
    (void)tsr_pointwise_cast(&call);
}

static char *element(const tsr_tensor *tensor, int64_t index)
{
    return (char *)tensor->data + index * (int64_t)tsr_dtype_bytes(tensor->dtype);
}

/* How much a rank's terms count, before they are divided by all rows. */
static double weigh(const tsr_replicas *r, int64_t rows)
{
    return r->reduce == TSR_REPLICAS_MEAN ? (double)rows : 1;
}

void tsr_replica_keep(tsr_replica *replica, int64_t rows, bool begins)
{
    const tsr_replicas *const r = replica->all;
    const double weight = weigh(r, rows);
    double terms[PIECE];
    for (size_t i = 0; i < r->output_count; i++) {
        const tsr_replica_port *const port = &r->outputs[i];
        if (port->parameter < 0)
            continue;
        double *const sums = replica->sums + port->first;
        const char *const made = replica->made + port->offset;
        for (int64_t at = 0; at < port->count; at += PIECE) {
            const int64_t count = tsr_smaller(PIECE, port->count - at);
            const int64_t bytes = (int64_t)tsr_dtype_bytes(port->own.dtype);
            convert(r, made + at * bytes, port->own.dtype, terms, TSR_F64, count);
            for (int64_t j = 0; j < count; j++)
                sums[at + j] = (begins ? 0 : sums[at + j]) + weight * terms[j];
        }
    }
}

/* Adds a rank's terms from element `at` on to `sums`. */
static void add_terms(const tsr_replica *from, const tsr_replica_port *port, int64_t at, int64_t count, double *sums)
{
    const tsr_replicas *const r = from->all;
    const bool is_kept = from->sums && port->parameter >= 0 && r->batch_count > (size_t)r->ranks;
    const double weight = is_kept ? 1 : weigh(r, from->rows);
    double terms[PIECE];
    if (is_kept)
        memcpy(terms, from->sums + port->first + at, (size_t)count * sizeof *terms);
    else
        convert(r, from->made + port->offset + at * (int64_t)tsr_dtype_bytes(port->own.dtype), port->own.dtype, terms,
                TSR_F64, count);
    for (int64_t j = 0; j < count; j++)
        sums[j] += weight * terms[j];
}

/* Writes `count` elements of a sum; `adds`: it is added to what is there. */
static void sum_piece(const tsr_replicas *r, const tsr_replica_port *port, const tsr_tensor *to, bool adds, int64_t at,
                      int64_t count)
{
    double sums[PIECE] = {0}, before[PIECE];
    int64_t rows = 0;
    for (int i = 0; i < r->ranks; i++) {
        if (r->replicas[i].rows)
            add_terms(&r->replicas[i], port, at, count, sums);
        rows += r->replicas[i].rows;
    }
    if (r->reduce == TSR_REPLICAS_MEAN && rows)
        for (int64_t j = 0; j < count; j++)
            sums[j] /= (double)rows;
    if (adds) {
        convert(r, element(to, at), to->dtype, before, TSR_F64, count);
        for (int64_t j = 0; j < count; j++)
            sums[j] += before[j];
    }
    convert(r, sums, TSR_F64, element(to, at), to->dtype, count);
}

/* Writes this rank's share of a sum, whole pieces, so that ranks hardly write one line. */
static void sum_share(const tsr_replica *replica, const tsr_replica_port *port, const tsr_tensor *to, bool adds)
{
    const int64_t pieces = (port->count + PIECE - 1) / PIECE, ranks = replica->all->ranks;
    const int64_t end = tsr_smaller(pieces * (replica->rank + 1) / ranks * PIECE, port->count);
    for (int64_t at = pieces * replica->rank / ranks * PIECE; at < end; at += PIECE)
        sum_piece(replica->all, port, to, adds, at, tsr_smaller(PIECE, end - at));
}

void tsr_replica_sum(tsr_replica *replica)
{
    const tsr_replicas *const r = replica->all;
    const tsr_tensor *told = r->wanted;
    for (size_t i = 0; i < r->output_count; i++) {
        const tsr_replica_port *const port = &r->outputs[i];
        if (port->parameter >= 0) {
            const tsr_tensor *const gradient = &r->parameters[port->parameter].gradient;
            if (gradient->data)
                sum_share(replica, port, gradient, true);
            continue;
        }
        if (r->scatters && !port->multiple)
            sum_share(replica, port, told, false);
        told++;
    }
}

void tsr_replica_zero(const tsr_tensor *tensor)
{
    int64_t count = 0;
    if (tsr_tensor_count(tensor, &count) == TSR_OK && count)
        memset(tensor->data, 0, (size_t)count * tsr_dtype_bytes(tensor->dtype));
}
