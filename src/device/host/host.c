#include "device/host/host.h"
#include "base/processor.h"
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define ALIGNMENT 64
/* Tensors from here on ask for huge pages: at 4 KiB a page, walking one would miss the TLB at every row. */
#define HUGE_PAGE      ((size_t)2 << 20)
#define HUGE_THRESHOLD (2 * HUGE_PAGE)

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

/* NULL if this build has no kernels of that name, which may be anything. */
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
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_device_host_table: no kernels are named \"%s\"; there are portable, avx2 and avx512",
                              kernels);
    const tsr_device_table *const table = find_table(kernels);
    if (!table || !tsr_processor_runs(kernels))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "tsr_device_host_table: this %s has no %s; its best kernels are %s",
                              table ? "processor" : "build", kernels, tsr_processor_kernels());
    *out = table;
    return TSR_OK;
}

tsr_status tsr_host_count(void *self, int *count, const char **reason)
{
    (void)self;
    *count = 1;
    *reason = NULL;
    return TSR_OK;
}

tsr_status tsr_host_alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    void *memory;
    const size_t alignment = bytes >= HUGE_THRESHOLD ? HUGE_PAGE : ALIGNMENT;
    (void)self, (void)index, (void)stream;
    if (posix_memalign(&memory, alignment, bytes > 0 ? bytes : 1) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "host device: no memory for %zu bytes", bytes);
#if defined(MADV_HUGEPAGE)
    /* Whole pages only; advice that is refused costs nothing. */
    if (alignment == HUGE_PAGE)
        (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    *out = memory;
    return TSR_OK;
}

void tsr_host_free(void *self, int index, void *memory, size_t bytes, tsr_stream stream)
{
    (void)self, (void)index, (void)bytes, (void)stream;
    free(memory);
}
