/* The public calls that describe choices of ways. */
#include "device/host/choose.h"

#include <string.h>

#define CLASSES ((size_t)TSR_TASKS * TSR_RUN_CLASSES * TSR_SIZE_CLASSES)

_Static_assert(TSR_WAYS <= TSR_MOST_KERNEL_WAYS, "every way has its place in tsr_kernel_choice");

static const char *const kernels[TSR_TASKS] = {"copy", "reduce", "reduce-to-all"};

const char *tsr_kernel_way_get(size_t index)
{
    return index < TSR_WAYS ? tsr_way_name((tsr_way)index) : NULL;
}

static double bandwidth(uint32_t nanoseconds_a_mib)
{
    return nanoseconds_a_mib > 0 ? 1048576e9 / nanoseconds_a_mib : 0;
}

static void describe_choice(const tsr_way_class *choice, tsr_kernel_choice *out)
{
    if (__atomic_load_n(&choice->settled, __ATOMIC_RELAXED))
        out->way = tsr_way_name(__atomic_load_n(&choice->way, __ATOMIC_RELAXED));
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++) {
        out->bandwidth[way] = bandwidth(tsr_way_class_estimate(choice, way));
        out->samples += __atomic_load_n(&choice->counts[way], __ATOMIC_RELAXED);
    }
    out->changes = __atomic_load_n(&choice->changes, __ATOMIC_RELAXED);
    out->restarts = __atomic_load_n(&choice->restarts, __ATOMIC_RELAXED);
}

tsr_status tsr_kernel_choices_get(const tsr_kernel_choices *choices, size_t index, tsr_kernel_choice *out, int *found)
{
    if (!choices || !out || !found)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_kernel_choices_get: %s is NULL",
                              !choices ? "choices"
                              : !out   ? "out"
                                       : "found");
    *found = choices->at && index < CLASSES;
    if (!*found)
        return TSR_OK;
    const int size = (int)(index % TSR_SIZE_CLASSES), run = (int)(index / TSR_SIZE_CLASSES % TSR_RUN_CLASSES);
    *out = (tsr_kernel_choice){.kernel = kernels[index / TSR_SIZE_CLASSES / TSR_RUN_CLASSES],
                               .run_from = tsr_run_class_begin(run),
                               .run_to = tsr_run_class_begin(run + 1),
                               .bytes_from = tsr_size_class_begin(size),
                               .bytes_to = tsr_size_class_begin(size + 1)};
    describe_choice(&choices->at[index], out);
    return TSR_OK;
}

const char *tsr_kernel_choices_way(const tsr_kernel_choices *choices, const char *kernel, size_t run_bytes,
                                   size_t bytes)
{
    int task = 0;
    while (task < TSR_TASKS && (!kernel || strcmp(kernels[task], kernel) != 0))
        task++;
    if (task == TSR_TASKS)
        return NULL;
    if (bytes < (choices ? choices->large : TSR_LARGE_CALL))
        return tsr_way_name(TSR_WAY_PLAIN);
    if (!choices || !choices->at || run_bytes < TSR_SHORTEST_RUN)
        return tsr_way_name(tsr_choices_rule(choices, run_bytes));
    const tsr_way_class *const choice = tsr_way_class_find(choices, (tsr_task)task, run_bytes, bytes);
    return __atomic_load_n(&choice->settled, __ATOMIC_RELAXED)
               ? tsr_way_name(__atomic_load_n(&choice->way, __ATOMIC_RELAXED))
               : NULL;
}
