#include "report.h"

#include "json.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* JSON's null stands for what is not finite. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *make_json(const train_step *s)
{
    json_t *const object = json_pack("{s:I, s:o, s:o, s:f, s:f, s:I, s:f}", "step", (json_int_t)s->step, "loss",
                                     number(s->loss), "gradient_norm", number(s->norm), "lr", s->rate,
                                     "tokens_per_second", s->tokens_per_second, "bytes_received",
                                     (json_int_t)s->bytes_received, "seconds", s->seconds);
    if (object && s->has_validation && json_object_set_new(object, "validation_loss", number(s->validation)) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static tsr_status print_json(const train_step *step)
{
    char *const text = llama_json_take_text(make_json(step), 17);
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the JSON of step %lld", (long long)step->step);
    puts(text);
    free(text);
    return TSR_OK;
}

tsr_status train_report_step(const train_step *s, bool json)
{
    if (json) {
        TSR_TRY(print_json(s));
    } else {
        printf("step %lld: loss %.4f, gradients %.3g, lr %.3g, %.0f tokens/s, %.3g Gflop/s, %lld bytes received",
               (long long)s->step, s->loss, s->norm, s->rate, s->tokens_per_second,
               2e-9 * (double)s->flops / s->seconds, (long long)s->bytes_received);
        if (s->has_validation)
            printf(", validation %.4f", s->validation);
        puts("");
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_status_set(TSR_ERROR_IO, "standard output cannot be written");
    return TSR_OK;
}
