#include "ops/programs/prepared/place.h"

#include "ops/eager/mix.h"
#include "ops/programs/link.h"
#include "ops/programs/probe.h"

#include <tessera/sys/device.h>

#include <string.h>

/* Bytes of memory for operands whose values no op reads: one element of any dtype. */
#define UNREAD_BYTES 64

/* A device of an executable, which has a driver. */
typedef struct site {
    const tsr_device_table *table;
    void *self;
    int index;
} site;

static site site_of(const tsr_executable *x)
{
    site s = {.index = x->device.index};
    s.table = tsr_device_driver_table(x->device.driver, &s.self);
    return s;
}

uint64_t tsr_executable_device_kind(const tsr_executable *x)
{
    return tsr_mix_text(0, tsr_launch_name(x->device));
}

/* The value over whose memory the position of a store lies; -1: the step has none that it reads. */
static int find_position(const tsr_executable *x, const tsr_step *step)
{
    if (step->kind != TSR_DOES_STORE || step->dim < 0 || !step->inside)
        return -1;
    return x->values[step->operands[2]].base;
}

static tsr_status refuse_position(const tsr_executable *x, const tsr_step *step)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: the program computes the position, or a parameter or state holds it, so it lies on "
                          "device \"%s\", which still computes when a run enqueues; give it as an input, which lies on "
                          "the host, or as a constant",
                          step->caller, tsr_launch_name(x->device));
}

/* The name of an input. */
static const char *name_input(const tsr_executable *x, int value)
{
    return x->input_names[x->values[value].index];
}

/* Refuses a step that reads an input which lies on the host. */
static tsr_status check_reads(const tsr_executable *x, const tsr_step *step)
{
    const bool stores = step->kind == TSR_DOES_STORE;
    const bool reads = step->kind != TSR_DOES_VIEW && step->kind != TSR_DOES_SAME && step->inside;
    for (int i = stores; reads && i < (stores ? 2 : step->operand_count); i++) {
        const int base = step->operands[i] < 0 ? -1 : x->values[step->operands[i]].base;
        if (base >= 0 && x->values[base].is_lent)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s: input \"%.64s\" is the position of a store, so it lies on the host, but this op "
                                  "reads it on device \"%s\"; record two inputs, one for stores and one for ops",
                                  step->caller ? step->caller : "a copy into an output", name_input(x, base),
                                  tsr_launch_name(x->device));
    }
    return TSR_OK;
}

static tsr_status check_step(const tsr_executable *x, tsr_step *step)
{
    size_t bytes;
    const int position = find_position(x, step);
    if (position >= 0 && x->values[position].place != TSR_PLACE_INPUT &&
        x->values[position].place != TSR_PLACE_CONSTANT)
        return refuse_position(x, step);
    TSR_TRY(check_reads(x, step));
    return step->kind == TSR_DOES_KERNEL && step->inside ? tsr_executable_find_way(x, step, &bytes) : TSR_OK;
}

static tsr_status check_index(const tsr_executable *x)
{
    const site s = site_of(x);
    const char *reason = NULL;
    int count;
    TSR_TRY(s.table->count(s.self, &count, &reason));
    if (s.index < count)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNAVAILABLE, "tsr_executable_prepare: device %s:%d is not there, of %d%s%.300s",
                          s.table->name, s.index, count, reason ? ": " : "", reason ? reason : "");
}

tsr_status tsr_executable_check_place(tsr_executable *x)
{
    if (!x->device.driver)
        return TSR_OK;
    TSR_TRY(check_index(x));
    TSR_TRY(tsr_compile_stand_in(x));
    for (size_t i = 0; i < x->step_count; i++)
        TSR_TRY(check_step(x, &x->steps[i]));
    return TSR_OK;
}

static tsr_status take(const tsr_executable *x, size_t bytes, tsr_device_piece *piece)
{
    const site s = site_of(x);
    if (piece->data || bytes == 0)
        return TSR_OK;
    TSR_TRY(s.table->alloc(s.self, s.index, bytes, NULL, &piece->data));
    piece->bytes = bytes;
    return TSR_OK;
}

/* Repeats the first element of a constant's memory on the host. */
static tsr_status fill(const tsr_executable *x, tsr_held *v)
{
    const site s = site_of(x);
    const size_t bytes = x->forms[v->form].bytes, element = tsr_dtype_bytes(x->forms[v->form].local.dtype);
    if (v->on_device.data || bytes == 0)
        return TSR_OK;
    TSR_TRY(take(x, bytes, &v->on_device));
    tsr_box_fill box = {.dst = v->on_device.data,
                        .element_bytes = element,
                        .ndim = 1,
                        .shape = {(int64_t)(bytes / element)},
                        .dst_strides = {1}};
    memcpy(box.value, v->constant, element);
    const tsr_status status = s.table->fill(s.self, s.index, &box, NULL);
    if (status != TSR_OK) { /* the next preparation fills it */
        s.table->free(s.self, s.index, v->on_device.data, bytes, NULL);
        v->on_device = (tsr_device_piece){NULL, 0};
    }
    return status;
}

tsr_status tsr_executable_fill_constants(tsr_executable *x)
{
    if (!x->device.driver)
        return TSR_OK;
    const site s = site_of(x);
    bool filled = false;
    for (size_t i = 0; i < x->value_count; i++) {
        tsr_held *const v = &x->values[i];
        if (v->place == TSR_PLACE_UNREAD)
            TSR_TRY(take(x, UNREAD_BYTES, &x->unread));
        if (v->place != TSR_PLACE_CONSTANT)
            continue;
        TSR_TRY(fill(x, v));
        filled = true;
    }
    return filled && s.table->stream_synchronize ? s.table->stream_synchronize(s.self, s.index, NULL) : TSR_OK;
}
