/** Loops that are compiled once for each set of instructions: the tables of a build, and which one
 * a call takes. src/ops, which includes no other folder of src/, has its own. */
#ifndef TSR_TENSOR_KERNEL_SETS_H
#define TSR_TENSOR_KERNEL_SETS_H

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

/** The place among TSR_KERNEL_SETS() of the set called `name`: "portable", "avx2" or "avx512"; that
 * of the portable one if the build lacks it. Every call of a kernel asks, so one letter answers. */
static inline int tsr_kernel_set(const char *name)
{
#if TSR_HAVE_X86_KERNELS
    if (name[0] == 'a')
        return name[3] == '5' ? 2 : 1;
#endif
    (void)name;
    return 0;
}

#endif
