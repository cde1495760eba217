#include "device/host/host.h"

#include "base/processor.h"

#include <string.h>

static const struct {
    const char *kernels;
    const tsr_device_table *table;
} tables[] = {
    {"portable", &tsr_host_table_portable},
#if TSR_HAVE_X86_KERNELS
    {"avx2", &tsr_host_table_avx2},
    {"avx512", &tsr_host_table_avx512},
#endif
};

/* NULL if this build has no kernels named `kernels`, which may be any text. */
static const tsr_device_table *find_table(const char *kernels)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (strcmp(tables[i].kernels, kernels) == 0)
            return tables[i].table;
    return NULL;
}

const tsr_device_table *tsr_host_table_for(const char *kernels)
{
    const tsr_device_table *const table = find_table(kernels);
    return table ? table : &tsr_host_table_portable;
}

tsr_status tsr_device_host_table(const char *kernels, const tsr_device_table **out)
{
    if (!kernels || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_device_host_table: %s is NULL", kernels ? "out" : "kernels");
    if (!tsr_processor_name(kernels))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_device_host_table: no kernels are named \"%s\"; there are portable, avx2 and avx512",
                              kernels);
    const tsr_device_table *const table = find_table(kernels);
    if (!table || !tsr_processor_runs(kernels))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE,
                              "tsr_device_host_table: this %s has no %s; its best kernels are %s",
                              table ? "processor" : "build", kernels, tsr_processor_kernels());
    *out = table;
    return TSR_OK;
}
