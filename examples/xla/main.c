/* Compiles mlp.mlir with XLA and runs it on four devices of this process.
 *
 * usage: tessera-example-xla PLUGIN.so mlp.mlir */
#include "pjrt.h"

#include <tessera/xla.h>

#include <stdio.h>
#include <stdlib.h>

enum { DEVICES = 4, TOKENS = 2, HIDDEN = 4, INNER = 8, PART = INNER / DEVICES };

#define TRY(call)                                                                                                      \
    if ((why = (call)) != NULL)                                                                                        \
    goto done

/* The text of a file, which the caller frees; NULL if it cannot be read. */
static char *read_text(const char *path)
{
    FILE *const file = fopen(path, "r");
    char *const text = calloc(1, 1 << 16);
    if (file && text)
        (void)fread(text, 1, (1 << 16) - 1, file);
    if (file)
        fclose(file);
    if (file)
        return text;
    free(text);
    return NULL;
}

/* Device d's arguments: x, its rows of `up`, its columns of `down`. */
static char *give(const xla_host *host, size_t device, PJRT_Buffer **out)
{
    float x[TOKENS * HIDDEN], up[PART * HIDDEN], down[HIDDEN * PART];
    const int64_t x_dims[] = {TOKENS, HIDDEN}, up_dims[] = {PART, HIDDEN}, down_dims[] = {HIDDEN, PART};
    for (int i = 0; i < TOKENS * HIDDEN; i++)
        x[i] = (float)(i % 5);
    for (int i = 0; i < PART * HIDDEN; i++)
        up[i] = (float)(((int)device * PART * HIDDEN + i) % 5);
    for (int i = 0; i < HIDDEN * PART; i++)
        down[i] = (float)((i / PART * INNER + (int)device * PART + i % PART) % 5);
    char *why = xla_buffer_create(host, device, PJRT_Buffer_Type_F32, 2, x_dims, x, &out[0]);
    if (!why)
        why = xla_buffer_create(host, device, PJRT_Buffer_Type_F32, 2, up_dims, up, &out[1]);
    if (!why)
        why = xla_buffer_create(host, device, PJRT_Buffer_Type_F32, 2, down_dims, down, &out[2]);
    return why;
}

static char *run(const xla_host *host, const xla_program *program)
{
    PJRT_Buffer *arguments[DEVICES][3] = {{NULL}}, *results[DEVICES] = {NULL};
    PJRT_Buffer *const *in[DEVICES];
    PJRT_Buffer **out[DEVICES];
    float y[TOKENS * HIDDEN];
    char *why = NULL;
    for (size_t d = 0; d < DEVICES; d++) {
        in[d] = arguments[d];
        out[d] = &results[d];
        TRY(give(host, d, arguments[d]));
    }
    TRY(xla_program_run(program, NULL, in, 3, out, NULL));
    TRY(xla_buffer_read(host, results[DEVICES - 1], y, sizeof y));
    for (int t = 0; t < TOKENS; t++)
        printf("y[%d] = %g %g %g %g\n", t, (double)y[t * HIDDEN], (double)y[t * HIDDEN + 1], (double)y[t * HIDDEN + 2],
               (double)y[t * HIDDEN + 3]);
done:
    for (size_t d = 0; d < DEVICES; d++) {
        for (int i = 0; i < 3; i++)
            xla_buffer_destroy(host, arguments[d][i]);
        xla_buffer_destroy(host, results[d]);
    }
    return why;
}

int main(int argc, char **argv)
{
    xla_host host = {NULL};
    xla_program program = {NULL};
    struct XLA_FFI_Error *(*const handler)(struct XLA_FFI_CallFrame *) = tsr_xla_register;
    char *why, *const text = argc == 3 ? read_text(argv[2]) : NULL;
    if (!text) {
        fprintf(stderr, "usage: tessera-example-xla PLUGIN.so mlp.mlir\n");
        return 2;
    }
    TRY(xla_host_open(argv[1], DEVICES, &host));
    TRY(xla_host_register(&host, "tsr_xla_register", *(void **)&handler));
    TRY(xla_program_compile(&host, text, DEVICES, NULL, &program));
    TRY(run(&host, &program));
done:
    if (why)
        fprintf(stderr, "tessera-example-xla: %s\n", why);
    xla_program_destroy(&program);
    xla_host_close(&host);
    free(text);
    free(why);
    return why != NULL;
}
