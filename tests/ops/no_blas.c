/* A library that is not a BLAS. */
int no_blas_at_all(void);
int no_blas_at_all(void)
{
    return 0;
}
