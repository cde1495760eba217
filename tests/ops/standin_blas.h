/** A BLAS of the tests: a shared library that multiplies one element after the other and counts what it is asked for. */
#ifndef TESTS_OPS_STANDIN_BLAS_H
#define TESTS_OPS_STANDIN_BLAS_H

/** What it was asked for since the library was loaded, by whatever threads. */
typedef struct standin_calls {
    int holders, holds, begins, ends, gemms;
    int narrow; /* gemms of bf16, which are among the gemms */
} standin_calls;

/** Exported as "standin_calls_made". */
typedef standin_calls standin_calls_function(void);

#endif
