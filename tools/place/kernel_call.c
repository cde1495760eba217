#include "place/kernel_call.h"

#include <string.h>

#define ELEMENT 4 /* bytes: f32 */
#define APART   2 /* distance between the starts of two rows of a source, in rows */

bool kernel_call_make(const char *kernel, int64_t run_bytes, int64_t bytes, kernel_call *out)
{
    *out = (kernel_call){.kernel = kernel, .targets = strcmp(kernel, "reduce-to-all") == 0 ? KERNEL_SOURCES : 1};
    const int64_t most = bytes / out->targets;
    out->run_bytes = (run_bytes < most ? run_bytes : most) / ELEMENT * ELEMENT;
    if (out->run_bytes == 0)
        return false;
    out->rows = most / out->run_bytes;
    out->part_bytes = out->rows * out->run_bytes;
    return true;
}

int64_t kernel_call_source_bytes(const kernel_call *c)
{
    return APART * c->part_bytes;
}

int64_t kernel_call_bytes(const kernel_call *c)
{
    return c->part_bytes * c->targets;
}

static int64_t source_stride(const kernel_call *c)
{
    return c->run_bytes / ELEMENT * (c->rows > 1 ? APART : 1);
}

static tsr_status copy_rows(const kernel_call *c, const tsr_device_table *table, tsr_kernel_choices *choices)
{
    const int64_t columns = c->run_bytes / ELEMENT;
    const tsr_box_copy box = {.dst = c->destinations[0],
                              .src = c->sources[0],
                              .element_bytes = ELEMENT,
                              .ndim = 2,
                              .shape = {c->rows, columns},
                              .dst_strides = {columns, 1},
                              .src_strides = {source_stride(c), 1}};
    return table->copy_boxes(choices, 0, &box, 1, NULL);
}

static tsr_status reduce_rows(const kernel_call *c, const tsr_device_table *table, tsr_kernel_choices *choices)
{
    const int64_t columns = c->run_bytes / ELEMENT;
    const int64_t sources[KERNEL_SOURCES][TSR_MAX_DIMS] = {{source_stride(c), 1}, {source_stride(c), 1}};
    const int64_t destinations[KERNEL_SOURCES][TSR_MAX_DIMS] = {{columns, 1}, {columns, 1}};
    const tsr_box_reduce reduction = {.dtype = TSR_F32,
                                      .op = TSR_SUM,
                                      .divisor = 1,
                                      .ndim = 2,
                                      .shape = {c->rows, columns},
                                      .src_count = KERNEL_SOURCES,
                                      .dst_count = c->targets,
                                      .src = (const void *const *)c->sources,
                                      .src_strides = sources,
                                      .dst = c->destinations,
                                      .dst_strides = destinations};
    return table->reduce(choices, 0, &reduction, NULL);
}

tsr_status kernel_call_run(const kernel_call *c, const tsr_device_table *table, tsr_kernel_choices *choices)
{
    return strcmp(c->kernel, "copy") == 0 ? copy_rows(c, table, choices) : reduce_rows(c, table, choices);
}

const char *kernel_call_way(const kernel_call *c, const tsr_kernel_choices *choices)
{
    return tsr_kernel_choices_way(choices, c->kernel, (size_t)c->run_bytes, (size_t)kernel_call_bytes(c));
}
