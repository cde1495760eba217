/** A BLAS for tests: a shared library that multiplies element by element, and counts its calls. */
#ifndef TESTS_OPS_STANDIN_BLAS_H
#define TESTS_OPS_STANDIN_BLAS_H

/** The calls since the library was loaded, by all threads. */
typedef struct standin_calls {
    int holders, holds, begins, ends, gemms;
    int narrow; /* the products of bf16 among `gemms` */
} standin_calls;

/** The type of the exported function standin_calls_made(). */
typedef standin_calls standin_calls_function(void);

#endif
