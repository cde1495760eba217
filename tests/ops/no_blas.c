/* A library that is no BLAS. */
int no_blas_at_all(void);
int no_blas_at_all(void)
{
    return 0;
}
