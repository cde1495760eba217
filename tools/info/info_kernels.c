#include "info/info_kernels.h"

#include "cli/report.h"
#include "cli/words.h"
#include "command.h"
#include "place/kernel_call.h"

#include <tessera/context.h>

#include <stdlib.h>
#include <string.h>

/* Bytes that each call writes: enough that calls choose a way. */
#define BYTES (INT64_C(16) << 20)

/* Upper bound of the calls to wait for a choice. */
#define MOST_CALLS 32

/* Bytes of a run, a length in each class. */
static const int64_t runs[] = {512, 2048, 16384, 262144, BYTES};

static bool make_memory(kernel_call *c)
{
    bool made = true;
    for (int i = 0; i < KERNEL_SOURCES; i++) {
        c->sources[i] = calloc(1, (size_t)(2 * BYTES));
        c->destinations[i] = calloc(1, (size_t)BYTES);
        made = made && c->sources[i] && c->destinations[i];
    }
    return made;
}

static void free_memory(kernel_call *c)
{
    for (int i = 0; i < KERNEL_SOURCES; i++) {
        free(c->sources[i]);
        free(c->destinations[i]);
    }
}

static tsr_status choose(const kernel_call *c, const tsr_device_table *table, tsr_kernel_choices *choices)
{
    tsr_status status = TSR_OK;
    for (int i = 0; i < MOST_CALLS && status == TSR_OK && !kernel_call_way(c, choices); i++)
        status = kernel_call_run(c, table, choices);
    return status;
}

static tsr_status choose_all(const kernel_call *memory, const tsr_device_table *table, tsr_kernel_choices *choices)
{
    static const char *const kernels[] = {"copy", "reduce"};
    tsr_status status = TSR_OK;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (size_t r = 0; r < sizeof runs / sizeof *runs && status == TSR_OK; r++) {
            kernel_call c;
            if (!kernel_call_make(kernels[k], runs[r], BYTES, &c))
                continue;
            memcpy(c.sources, memory->sources, sizeof c.sources);
            memcpy(c.destinations, memory->destinations, sizeof c.destinations);
            status = choose(&c, table, choices);
        }
    return status;
}

static void keep_measured(const tsr_kernel_choices *choices, kernel_facts *out)
{
    int found = 1;
    for (size_t i = 0; found && out->count < KERNEL_FACTS; i++) {
        tsr_kernel_choice *const c = &out->choices[out->count];
        if (tsr_kernel_choices_get(choices, i, c, &found) != TSR_OK)
            return;
        out->count += found && c->samples > 0;
    }
}

static void measure(tsr_context *context, kernel_facts *out)
{
    const tsr_device_table *table;
    tsr_kernel_choices *choices = NULL;
    kernel_call memory = {.kernel = NULL};
    const bool ready = make_memory(&memory) && tsr_kernel_choices_create(context, &choices) == TSR_OK &&
                       tsr_device_host_table(tsr_context_kernels(context), &table) == TSR_OK &&
                       choose_all(&memory, table, choices) == TSR_OK;
    out->reason = ready ? "the fastest in calls of 16 MiB by one thread just now; ranks find out by themselves"
                        : "there is no memory to measure them";
    if (ready)
        keep_measured(choices, out);
    tsr_kernel_choices_destroy(choices);
    free_memory(&memory);
}

void kernel_facts_gather(tsr_context *context, kernel_facts *out)
{
    const char *const way = tsr_context_kernel_way(context);
    *out = (kernel_facts){.count = 0};
    if (strcmp(way, "measured") == 0)
        measure(context, out);
    else if (strcmp(way, "fixed") == 0)
        out->reason = "TSR_KERNELS asks for the rule: from 8 MiB a call on, runs of 1 KiB and more are streamed";
    else
        out->reason = "TSR_KERNELS asks for this way in all calls of 8 MiB and more";
}

static json_t *rates_to_json(const tsr_kernel_choice *c)
{
    json_t *rates = json_object();
    for (size_t way = 0; tsr_kernel_way_get(way) != NULL; way++)
        rates = json_with_field(rates, tsr_kernel_way_get(way),
                                c->bandwidth[way] > 0 ? json_real(c->bandwidth[way]) : json_null());
    return rates;
}

/* A bound in bytes, null for no upper bound. */
static json_t *bound_to_json(size_t bound)
{
    return bound == SIZE_MAX ? json_null() : json_integer((json_int_t)bound);
}

json_t *kernel_facts_to_json(const kernel_facts *f)
{
    json_t *array = json_array();
    for (size_t i = 0; i < f->count; i++) {
        const tsr_kernel_choice *const c = &f->choices[i];
        array = json_with_item(
            array, json_pack("{ss so so so so ss? so}", "kernel", c->kernel, "run_from", bound_to_json(c->run_from),
                             "run_to", bound_to_json(c->run_to), "bytes_from", bound_to_json(c->bytes_from), "bytes_to",
                             bound_to_json(c->bytes_to), "way", c->way, "bandwidth", rates_to_json(c)));
    }
    return array;
}

void kernel_facts_print(const kernel_facts *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const tsr_kernel_choice *const c = &f->choices[i];
        char run[BYTES_TEXT];
        print_short_bytes((int64_t)c->run_from, run);
        say("  %-8s %-7s runs from %6s%s: %-12s", "", c->kernel, run, c->run_from > 9999 ? "B" : " B",
            c->way ? c->way : "not known");
        for (size_t way = 0; tsr_kernel_way_get(way) != NULL; way++)
            if (c->bandwidth[way] > 0)
                say("%s%s %.1f", way == 0 ? " " : ", ", tsr_kernel_way_get(way), c->bandwidth[way] / 1e9);
        say(" GB/s\n");
    }
}
