#include "report.h"

#include "json.h"
#include "weights.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* JSON's null stands for what is not finite. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *drop(json_t *object)
{
    json_decref(object);
    return NULL;
}

static json_t *make_sample(const llama_config *config, const llama_generation *text)
{
    return json_pack("{s:o, s:o}", "ids", llama_json_ids(text->ids, text->count), "text",
                     llama_json_text(config, text->ids, text->count));
}

static json_t *make_json(const llama_config *config, const train_step *s)
{
    json_t *const object =
        json_pack("{s:I, s:o, s:o, s:f, s:f, s:I, s:f}", "step", (json_int_t)s->step, "loss", number(s->loss),
                  "gradient_norm", number(s->norm), "lr", s->rate, "tokens_per_second", s->tokens_per_second,
                  "bytes_received", (json_int_t)s->bytes_received, "seconds", s->seconds);
    if (object && !isnan(s->router) && json_object_set_new(object, "router_loss", number(s->router)) != 0)
        return drop(object);
    if (object && s->scale > 0 &&
        json_object_update_new(object, json_pack("{s:f, s:b}", "loss_scale", s->scale, "skipped", s->is_skipped)) != 0)
        return drop(object);
    if (object && s->has_validation && json_object_set_new(object, "validation_loss", number(s->validation)) != 0)
        return drop(object);
    if (object && s->sample && json_object_set_new(object, "sample", make_sample(config, s->sample)) != 0)
        return drop(object);
    return object;
}

static tsr_status print_json(const llama_config *config, const train_step *step)
{
    char *const text = llama_json_take_text(make_json(config, step), 17);
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the JSON of step %lld", (long long)step->step);
    puts(text);
    free(text);
    return TSR_OK;
}

/* Elements of all weights, those that several ranks have counted once. */
static int64_t count_parameters(const train_trainer *trainer)
{
    int64_t count = 0;
    for (size_t i = 0; i < trainer->count; i++) {
        const tsr_layout *const layout = tsr_dtensor_layout(trainer->tensors[i]);
        int64_t elements = 1;
        for (int dim = 0; dim < tsr_layout_ndim(layout); dim++)
            elements *= tsr_layout_shape(layout)[dim];
        count += train_is_weight(train_trainer_name(trainer, i)) ? elements : 0;
    }
    return count;
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

void train_report_begin(const train_trainer *trainer)
{
    const train_memory *const m = &trainer->memory;
    fprintf(stderr,
            "%lld parameters on mesh %s: a rank needs at most %.1f MiB, and a step receives %lld bytes in %lld "
            "exchanges\n",
            (long long)count_parameters(trainer), trainer->plan->mesh, mib(trainer->most_bytes),
            (long long)trainer->bytes_received, (long long)trainer->exchanges);
    fprintf(stderr,
            "memory of rank 0: parameters %.1f MiB, optimizer's states %.1f, gradients %.1f, gathered weights %.1f, "
            "activations %.1f, workspaces %.1f, other %.1f\n",
            mib(m->weights), mib(m->optimizer), mib(m->gradients), mib(m->gathered), mib(m->activations),
            mib(m->workspaces), mib(m->batch + m->programs));
}

/* Prints a sample between lines, as text or as token numbers. */
static tsr_status print_sample(const llama_config *config, const llama_generation *sample)
{
    char *const text = malloc((size_t)sample->count * 3 + 1);
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a sample of %lld tokens", (long long)sample->count);
    if (llama_is_text(config))
        printf("%.*s", (int)llama_tokens_to_utf8(sample->ids, sample->count, text), text);
    for (int64_t i = 0; i < sample->count && !llama_is_text(config); i++)
        printf("%s%lld", i > 0 ? " " : "", (long long)sample->ids[i]);
    puts("\n--");
    free(text);
    return TSR_OK;
}

tsr_status train_report_step(const llama_config *config, const train_step *s, bool json)
{
    if (json) {
        TSR_TRY(print_json(config, s));
    } else {
        printf("step %lld: loss %.4f, gradients %.3g, lr %.3g, %.0f tokens/s, %.3g Gflop/s, %.0f %% of the peak, "
               "%lld bytes received",
               (long long)s->step, s->loss, s->norm, s->rate, s->tokens_per_second, 1e-9 * s->rate_of_products,
               100 * s->of_peak, (long long)s->bytes_received);
        if (!isnan(s->router))
            printf(", router's loss %.4f", s->router);
        if (s->is_skipped)
            printf(", skipped with the loss scale %g", s->scale);
        if (s->has_validation)
            printf(", validation %.4f", s->validation);
        puts(s->sample ? "\n--" : "");
        if (s->sample)
            TSR_TRY(print_sample(config, s->sample));
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_status_set(TSR_ERROR_IO, "standard output cannot be written");
    return TSR_OK;
}
