#include "base/processor.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Ascending: a processor that runs kernels of one name runs those of all names before it. */
static const char *const names[] = {"portable", "avx2", "avx512"};

enum { PORTABLE, AVX2, AVX512, NAMES };

#if defined(__x86_64__)

/* CPUID leaf 1, ECX, and leaf 7, EBX (Intel SDM volume 2A, CPUID). */
#define LEAF1_AVX2   ((1u << 12) | (1u << 28) | (1u << 29)) /* FMA, AVX, F16C */
#define LEAF7_AVX2   (1u << 5)
#define LEAF7_AVX512 ((1u << 16) | (1u << 17) | (1u << 30) | (1u << 31)) /* F, DQ, BW, VL */

/* Feature bits of the processor, without those whose registers the operating system does not
 * save. */
typedef struct features {
    uint32_t leaf1, leaf7;
} features;

/*
 * Not __builtin_cpu_supports(), which brings a static constructor into every program that links it.
 * Where the C library has asked the processor already, its answer is taken: under a hypervisor
 * every CPUID traps and takes microseconds.
 */
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>

enum { EBX = 1, ECX = 2 };

static features usable(void)
{
    return (features){__x86_get_cpuid_feature_leaf(CPUID_INDEX_1)->active_array[ECX],
                      __x86_get_cpuid_feature_leaf(CPUID_INDEX_7)->active_array[EBX]};
}
#else
#include <cpuid.h>

#define LEAF1_OSXSAVE (1u << 27)
/* XCR0: the register state that the operating system saves. */
#define STATE_AVX     0x06u
#define STATE_AVX512  0xe6u

static uint32_t saved_state(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static features usable(void)
{
    uint32_t a, b, c, d;
    features found = {0, 0};
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & LEAF1_OSXSAVE))
        return found;
    const uint32_t state = saved_state();
    if ((state & STATE_AVX) != STATE_AVX)
        return found;
    found.leaf1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        found.leaf7 = (state & STATE_AVX512) == STATE_AVX512 ? b : b & ~LEAF7_AVX512;
    return found;
}
#endif

static int best(void)
{
    const features found = usable();
    if ((found.leaf1 & LEAF1_AVX2) != LEAF1_AVX2 || (found.leaf7 & LEAF7_AVX2) != LEAF7_AVX2)
        return PORTABLE;
    return (found.leaf7 & LEAF7_AVX512) == LEAF7_AVX512 ? AVX512 : AVX2;
}
#else
static int best(void)
{
    return PORTABLE;
}
#endif

static int find_name(const char *kernels)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(kernels, names[i]) == 0)
            return i;
    return NAMES;
}

const char *tsr_processor_kernels(void)
{
    return names[best()];
}

bool tsr_processor_runs(const char *kernels)
{
    return find_name(kernels) <= best();
}

const char *tsr_processor_name(const char *kernels)
{
    const int found = find_name(kernels);
    return found < NAMES ? names[found] : NULL;
}

int tsr_processor_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
