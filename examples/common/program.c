#include "program.h"

#include "place/held_log.h"

#include <tessera/status.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Only the ranks' threads should compute. OpenBLAS starts one thread per core as soon as it is
 * loaded, and these spin for about a tenth of a second while they wait for work. Only the
 * environment can forbid it, so the program starts itself once more with the variable set. */
static void start_with_one_blas_thread(char **argv)
{
    static const char *const variable = "OPENBLAS_NUM_THREADS";
    if (!getenv(variable) && setenv(variable, "1", 0) == 0)
        execv("/proc/self/exe", argv);
}

void llama_start(char **argv)
{
    start_with_one_blas_thread(argv);
    /*
     * Makes writing beyond the file size limit an ordinary error, after which files are cleaned up.
     */
    signal(SIGXFSZ, SIG_IGN);
    held_log_begin();
}

int llama_fail(int code)
{
    held_log_drop();
    fputs("tessera: ", stderr);
    for (const char *c = tsr_status_message(); *c != '\0'; c++)
        fputc((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c, stderr);
    fputc('\n', stderr);
    return code;
}
