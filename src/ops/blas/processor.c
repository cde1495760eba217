#include "ops/blas/processor.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const char *const levels[] = {"portable", "avx2", "avx512"};

enum { LEVELS = sizeof levels / sizeof *levels };

int tsr_kernels_level(const char *kernels)
{
    for (int level = 0; kernels && level < LEVELS; level++)
        if (strcmp(kernels, levels[level]) == 0)
            return level;
    return -1;
}

const char *tsr_kernels_name(int level)
{
    return levels[level];
}

/* The refusals on the way are no errors, so the thread's last error is kept. */
const char *tsr_processor_best(void)
{
    const tsr_device_table *table;
    tsr_kept_sentence kept;
    int level = LEVELS - 1;
    tsr_status_keep(&kept);
    while (level > 0 && tsr_device_host_table(levels[level], &table) != TSR_OK)
        level--;
    tsr_status_restore(&kept, TSR_OK);
    return levels[level];
}

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* CPUID leaf 1, ECX; leaf 7, EDX; XCR0 (Intel SDM volume 1, 13.3; volume 2A, CPUID). */
#define LEAF1_OSXSAVE (1u << 27)
#define LEAF7_AMX     ((1u << 22) | (1u << 24) | (1u << 25)) /* BF16, TILE, INT8 */
#define STATE_AMX     (3u << 17)

/* Values of Linux' <asm/prctl.h>. */
enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 };

static bool lists_amx(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & LEAF7_AMX);
}

static bool saves_amx(void)
{
    uint32_t a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & LEAF1_OSXSAVE))
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & STATE_AMX) == STATE_AMX;
}

bool tsr_processor_runs_amx(void)
{
    return lists_amx() && saves_amx() && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

bool tsr_processor_amx_is_safe(void)
{
    return !lists_amx() || tsr_processor_runs_amx();
}
#else
bool tsr_processor_runs_amx(void)
{
    return false;
}

bool tsr_processor_amx_is_safe(void)
{
    return true;
}
#endif
