/** Loops that are compiled once for each set of instructions: the tables of a build, and which one
 * a call takes. */
#ifndef TSR_OPS_KERNEL_SETS_H
#define TSR_OPS_KERNEL_SETS_H

#include <string.h>

/** An initializer: pointers to the tables `kernels`_portable, .. that the build has. */
#if TSR_HAVE_X86_KERNELS
#define TSR_KERNEL_SETS(kernels)                                                                                       \
    {                                                                                                                  \
        &kernels##_portable, &kernels##_avx2, &kernels##_avx512                                                        \
    }
#else
#define TSR_KERNEL_SETS(kernels)                                                                                       \
    {                                                                                                                  \
        &kernels##_portable                                                                                            \
    }
#endif

/** The place of the set called `name` among TSR_KERNEL_SETS(); that of the portable one if the
 * build lacks it. */
static inline int tsr_kernel_set(const char *name)
{
#if TSR_HAVE_X86_KERNELS
    if (strcmp(name, "avx512") == 0)
        return 2;
    if (strcmp(name, "avx2") == 0)
        return 1;
#endif
    (void)name;
    return 0;
}

#endif
