/* Finds the scratch that shorter lengths want, which may be more than their maxima do: small
 * moves go through memory of their own, and parts of longer tensors are not contiguous. */
#include "ops/programs/probe.h"

#include "ops/programs/forms.h"
#include "ops/programs/link.h"
#include "ops/programs/plans.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* Memory that steps are linked to while nothing runs, and the lengths that were tried. Few moves
 * depend on all lengths, and planning takes longest, so each is planned once for its own. */
typedef struct stand_in {
    tsr_tensor *inputs, *outputs;
    int64_t (*tried)[TSR_LENGTHS];
    size_t tried_count;
} stand_in;

static void describe(const tsr_executable *x, const int *values, size_t count, tsr_tensor *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = tsr_form_of(x, values[i])->local;
        out[i].data = x->values;
    }
}

/* Links steps to the stand-in, with the sizes of now. */
static tsr_status link_to(tsr_executable *x, const stand_in *memory)
{
    describe(x, x->inputs, x->input_count, memory->inputs);
    describe(x, x->outputs, x->output_count, memory->outputs);
    x->is_linked = false;
    return tsr_executable_link(x, memory->inputs, memory->outputs, x->values);
}

/* Raises rooms to what the lengths of now want. */
static tsr_status raise_rooms(tsr_executable *x, tsr_comm *comm, stand_in *memory)
{
    x->clock++;
    TSR_TRY(tsr_executable_update_forms(x, -1));
    TSR_TRY(tsr_executable_raise_plans(x, comm, (const int64_t(*)[TSR_LENGTHS])memory->tried, memory->tried_count));
    memcpy(memory->tried[memory->tried_count++], x->length, sizeof x->length);
    return link_to(x, memory);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Tries all lengths at `length`, then each alone there and each alone at 1. */
static tsr_status try_length(tsr_executable *x, tsr_comm *comm, int64_t length, stand_in *memory)
{
    const size_t count = x->length_count;
    for (size_t i = 0; i < count; i++)
        x->length[i] = least(length, x->lengths[i].maximum);
    TSR_TRY(raise_rooms(x, comm, memory));
    for (size_t one = 0; one < count && count > 1; one++) {
        for (size_t i = 0; i < count; i++)
            x->length[i] = i == one ? least(length, x->lengths[i].maximum) : x->lengths[i].maximum;
        TSR_TRY(raise_rooms(x, comm, memory));
        for (size_t i = 0; i < count; i++)
            x->length[i] = i == one ? 1 : least(length, x->lengths[i].maximum);
        TSR_TRY(raise_rooms(x, comm, memory));
    }
    return TSR_OK;
}

/* What is tried after `length`, of lengths up to `most`. */
static int64_t next_length(int64_t length, int64_t most)
{
    return length < most / 2 ? 2 * length : most;
}

static int64_t greatest_maximum(const tsr_executable *x)
{
    int64_t most = 1;
    for (size_t i = 0; i < x->length_count; i++)
        most = x->lengths[i].maximum > most ? x->lengths[i].maximum : most;
    return most;
}

static tsr_status try_lengths(tsr_executable *x, tsr_comm *comm, stand_in *memory)
{
    const int64_t most = greatest_maximum(x);
    for (int64_t length = 1; length < most; length = next_length(length, most))
        TSR_TRY(try_length(x, comm, length, memory));
    return TSR_OK;
}

tsr_status tsr_compile_stand_in(tsr_executable *x)
{
    void *memory;
    TSR_TRY(tsr_program_array(x->context, x->input_count + x->output_count, sizeof(tsr_tensor), &memory));
    const stand_in in = {.inputs = memory, .outputs = memory ? (tsr_tensor *)memory + x->input_count : NULL};
    const tsr_status status = link_to(x, &in);
    tsr_release(x->context, memory);
    x->is_linked = false;
    return status;
}

/* An upper bound of how often try_lengths() raises rooms. */
static size_t count_tries(const tsr_executable *x)
{
    size_t count = 0;
    const int64_t most = greatest_maximum(x);
    for (int64_t length = 1; length < most; length = next_length(length, most))
        count += 1 + 2 * x->length_count;
    return count;
}

/* Makes the memory, tries, and frees it. */
static tsr_status try_with_memory(tsr_executable *x, tsr_comm *comm)
{
    void *tensors, *tried;
    TSR_TRY(tsr_program_array(x->context, x->input_count + x->output_count, sizeof(tsr_tensor), &tensors));
    tsr_status status = tsr_program_array(x->context, count_tries(x), sizeof(int64_t[TSR_LENGTHS]), &tried);
    if (status == TSR_OK) {
        stand_in memory = {tensors, (tsr_tensor *)tensors + x->input_count, tried, 0};
        status = try_lengths(x, comm, &memory);
        tsr_release(x->context, tried);
    }
    tsr_release(x->context, tensors);
    return status;
}

tsr_status tsr_compile_probe(tsr_executable *x, tsr_comm *comm)
{
    int64_t now[TSR_LENGTHS];
    if (!x->length_count)
        return TSR_OK;
    memcpy(now, x->length, sizeof now);
    const tsr_status status = try_with_memory(x, comm);
    memcpy(x->length, now, sizeof now);
    x->clock++;
    x->is_linked = false;
    tsr_executable_settle_forms(x, true);
    return status;
}
