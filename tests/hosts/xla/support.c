#include "support.h"

#include <tessera/xla.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void support_check(char *why)
{
    if (why)
        fail_msg("%s", why);
}

void support_refused(char *why, const char *words)
{
    if (!why)
        fail_msg("nothing was refused; wanted \"%s\"", words);
    if (!strstr(why, words))
        fail_msg("\"%s\" does not have \"%s\"", why, words);
    free(why);
}

const xla_host *support_host(void)
{
    static xla_host host;
    if (!host.client) {
        support_check(xla_host_open(XLA_PLUGIN, 4, &host));
        void *handler;
        *(struct XLA_FFI_Error * (**)(struct XLA_FFI_CallFrame *)) & handler = tsr_xla_register;
        support_check(xla_host_register(&host, "tsr_xla_register", handler));
    }
    return &host;
}

/* ---- Arrays ---- */

static const struct {
    const char *name;
    PJRT_Buffer_Type type;
    size_t bytes;
} types[] = {
    {"f32", PJRT_Buffer_Type_F32, 4},
    {"f64", PJRT_Buffer_Type_F64, 8},
    {"bf16", PJRT_Buffer_Type_BF16, 2},
    {"i32", PJRT_Buffer_Type_S32, 4},
    {"ui8", PJRT_Buffer_Type_U8, 1},
    {"i1", PJRT_Buffer_Type_PRED, 1},
    {"f8E4M3FNUZ", PJRT_Buffer_Type_F8E4M3FNUZ, 1},
};

static size_t find_type(const support_array *array)
{
    size_t t = 0;
    while (strcmp(types[t].name, array->type) != 0)
        t++;
    return t;
}

size_t support_bytes(const support_array *array)
{
    size_t bytes = types[find_type(array)].bytes;
    for (int d = 0; d < array->ndim; d++)
        bytes *= (size_t)array->dims[d];
    return bytes;
}

/* ---- Text ---- */

/* Text that grows. */
typedef struct text {
    char *at;
    size_t length, capacity;
} text;

static void add(text *t, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const size_t length = (size_t)vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (t->length + length + 1 > t->capacity) {
        t->capacity = 2 * (t->length + length + 1);
        t->at = realloc(t->at, t->capacity);
    }
    vsnprintf(t->at + t->length, length + 1, format, again);
    va_end(again);
    t->length += length;
}

/* The type of an array, with `partitions` times the length in dim 0. */
static void add_type(text *t, const support_array *array, size_t partitions)
{
    add(t, "tensor<");
    for (int d = 0; d < array->ndim; d++)
        add(t, "%lldx", (long long)(array->dims[d] * (d ? 1 : (int64_t)partitions)));
    add(t, "%s>", array->type);
}

static void add_sharding(text *t, const support_array *array)
{
    add(t, "<@mesh, [{\"r\"}%s%s]>", array->ndim > 1 ? ", {}" : "", array->ndim > 2 ? ", {}" : "");
}

/* What is printed of each array in a list. */
typedef enum word { ARGUMENT, TYPE, LOCAL_TYPE, SHARDED_TYPE, SHARDING, NAME, LOCAL_ARGUMENT } word;

static void add_word(text *t, word what, const support_array *array, size_t index, size_t partitions)
{
    if (what == ARGUMENT)
        add(t, "%%arg%zu: ", index);
    if (what == LOCAL_ARGUMENT)
        add(t, "%%local%zu: ", index);
    if (what == NAME)
        add(t, "%%arg%zu", index);
    if (what == ARGUMENT || what == TYPE || what == SHARDED_TYPE)
        add_type(t, array, partitions);
    if (what == LOCAL_TYPE || what == LOCAL_ARGUMENT)
        add_type(t, array, 1);
    if (what == ARGUMENT || what == SHARDED_TYPE)
        add(t, " {sdy.sharding = #sdy.sharding");
    if (what == ARGUMENT || what == SHARDED_TYPE || what == SHARDING)
        add_sharding(t, array);
    if (what == ARGUMENT || what == SHARDED_TYPE)
        add(t, "}");
}

/* The operands or the results of all calls, with commas between them. */
static void add_list(text *t, word what, const support_call *calls, size_t count, bool results, size_t partitions)
{
    size_t index = 0;
    for (size_t c = 0; c < count; c++) {
        const size_t begin = results ? calls[c].operands : 0, many = results ? calls[c].results : calls[c].operands;
        for (size_t i = begin; i < begin + many; i++, index++) {
            add(t, "%s", index ? ", " : "");
            add_word(t, what, &calls[c].arrays[i], index, partitions);
        }
    }
}

static void add_call(text *t, const support_call *call, size_t index, size_t first)
{
    add(t, "      %%r%zu", index);
    if (call->results > 1)
        add(t, ":%zu", call->results);
    add(t, " = stablehlo.custom_call @%s(", call->target);
    for (size_t i = 0; i < call->operands; i++)
        add(t, "%s%%local%zu", i ? ", " : "", first + i);
    add(t, ") {api_version = 4 : i32, has_side_effect = false, backend_config = {%s}} : (", call->attributes);
    add_list(t, LOCAL_TYPE, call, 1, false, 1);
    add(t, ") -> (");
    add_list(t, LOCAL_TYPE, call, 1, true, 1);
    add(t, ")\n");
}

static void add_return(text *t, const support_call *calls, size_t count)
{
    add(t, "      sdy.return ");
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < calls[c].results; i++)
            if (calls[c].results > 1)
                add(t, "%s%%r%zu#%zu", c + i ? ", " : "", c, i);
            else
                add(t, "%s%%r%zu", c + i ? ", " : "", c);
    add(t, " : ");
    add_list(t, LOCAL_TYPE, calls, count, true, 1);
    add(t, "\n");
}

static size_t count_arrays(const support_call *calls, size_t count, bool results)
{
    size_t total = 0;
    for (size_t c = 0; c < count; c++)
        total += results ? calls[c].results : calls[c].operands;
    return total;
}

char *support_text(const support_call *calls, size_t count, size_t partitions)
{
    text t = {NULL, 0, 0};
    add(&t, "module @calls {\n  sdy.mesh @mesh = <[\"r\"=%zu]>\n  func.func public @main(", partitions);
    add_list(&t, ARGUMENT, calls, count, false, partitions);
    add(&t, ") -> (");
    add_list(&t, SHARDED_TYPE, calls, count, true, partitions);
    const size_t results = count_arrays(calls, count, true);
    add(&t, results > 1 ? ") {\n    %%all:%zu = sdy.manual_computation(" : ") {\n    %%all = sdy.manual_computation(",
        results);
    add_list(&t, NAME, calls, count, false, partitions);
    add(&t, ") in_shardings=[");
    add_list(&t, SHARDING, calls, count, false, partitions);
    add(&t, "] out_shardings=[");
    add_list(&t, SHARDING, calls, count, true, partitions);
    add(&t, "] manual_axes={\"r\"} (");
    add_list(&t, LOCAL_ARGUMENT, calls, count, false, partitions);
    add(&t, ") {\n");
    for (size_t c = 0; c < count; c++)
        add_call(&t, &calls[c], c, count_arrays(calls, c, false));
    add_return(&t, calls, count);
    add(&t, "    } : (");
    add_list(&t, TYPE, calls, count, false, partitions);
    add(&t, ") -> (");
    add_list(&t, TYPE, calls, count, true, partitions);
    add(&t, ")\n    return ");
    for (size_t i = 0; i < results; i++)
        if (results > 1)
            add(&t, "%s%%all#%zu", i ? ", " : "", i);
        else
            add(&t, "%%all");
    add(&t, " : ");
    add_list(&t, TYPE, calls, count, true, partitions);
    add(&t, "\n  }\n}\n");
    return t.at;
}

/* ---- Buffers and runs ---- */

void support_buffers_create(const support_call *calls, size_t count, size_t partitions, const int64_t *devices,
                            support_buffers *out)
{
    *out = (support_buffers){.partitions = partitions,
                             .arguments = count_arrays(calls, count, false),
                             .results = count_arrays(calls, count, true)};
    for (size_t p = 0; p < partitions; p++) {
        size_t index = 0;
        out->in[p] = calloc(out->arguments + 1, sizeof(PJRT_Buffer *));
        out->out[p] = calloc(out->results + 1, sizeof(PJRT_Buffer *));
        for (size_t c = 0; c < count; c++)
            for (size_t i = 0; i < calls[c].operands; i++, index++) {
                const support_array *const array = &calls[c].arrays[i];
                support_check(xla_buffer_create(
                    support_host(), devices ? (size_t)devices[p] : p, types[find_type(array)].type, (size_t)array->ndim,
                    array->dims, (const char *)array->data + p * support_bytes(array), &out->in[p][index]));
            }
    }
}

void support_results_read(const support_call *calls, size_t count, const support_buffers *buffers)
{
    for (size_t p = 0; p < buffers->partitions; p++) {
        size_t index = 0;
        for (size_t c = 0; c < count; c++)
            for (size_t i = 0; i < calls[c].results; i++, index++) {
                const support_array *const array = &calls[c].arrays[calls[c].operands + i];
                support_check(xla_buffer_read(support_host(), buffers->out[p][index],
                                              (char *)array->data + p * support_bytes(array), support_bytes(array)));
            }
    }
}

void support_results_destroy(support_buffers *buffers)
{
    for (size_t p = 0; p < buffers->partitions; p++)
        for (size_t i = 0; i < buffers->results; i++) {
            xla_buffer_destroy(support_host(), buffers->out[p][i]);
            buffers->out[p][i] = NULL;
        }
}

void support_buffers_destroy(support_buffers *buffers)
{
    support_results_destroy(buffers);
    for (size_t p = 0; p < buffers->partitions; p++) {
        for (size_t i = 0; i < buffers->arguments; i++)
            xla_buffer_destroy(support_host(), buffers->in[p][i]);
        free(buffers->in[p]);
        free(buffers->out[p]);
    }
}

char *support_run(const support_call *calls, size_t count, size_t partitions, const int64_t *devices,
                  const xla_launch *launch)
{
    xla_program program;
    support_buffers buffers;
    char *const source = support_text(calls, count, partitions);
    char *why = xla_program_compile(support_host(), source, partitions, devices, &program);
    free(source);
    if (why)
        return why;
    support_buffers_create(calls, count, partitions, devices, &buffers);
    why = xla_program_run(&program, launch, (PJRT_Buffer *const *const *)buffers.in, buffers.arguments, buffers.out,
                          NULL);
    if (!why)
        support_results_read(calls, count, &buffers);
    support_buffers_destroy(&buffers);
    xla_program_destroy(&program);
    return why;
}
