#include "settings.h"

#include <tessera/safetensors.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* How a field is kept as a number; a real by its bits, of which OPEN ones may be NAN: not given. */
typedef enum form { WHOLE, CHOICE, FLAG, REAL, OPEN } form;

_Static_assert(sizeof(double) == sizeof(int64_t), "a real's bits are a number");
_Static_assert(sizeof(tsr_dtype) == sizeof(int) && sizeof(tsr_schedule_kind) == sizeof(int) &&
                   sizeof(tsr_optimizer_kind) == sizeof(int),
               "a choice is an int");

typedef struct row {
    const char *option; /* which gives it */
    const char *key;
    form form;
    size_t at; /* the field, in train_options */
    int64_t least, most;
} row;

#define ROW(option, key, form, field, least, most)                                                                     \
    {                                                                                                                  \
        option, "tessera." key, form, offsetof(train_options, field), least, most                                      \
    }

static const row rows[] = {
    ROW("steps", "steps", WHOLE, steps, 0, INT32_MAX),
    ROW("batch", "batch", WHOLE, batch, 1, INT32_MAX),
    ROW("micro-batches", "micro_batches", WHOLE, micro_batches, 1, INT32_MAX),
    ROW("length", "length", WHOLE, length, 1, INT32_MAX),
    ROW("seed", "seed", WHOLE, seed, INT64_MIN, INT64_MAX),
    ROW("order", "order", FLAG, random, 0, 1),
    ROW("dtype", "dtype", CHOICE, dtype, TSR_F64, TSR_BF16),
    ROW("loss-scale", "first_loss_scale", OPEN, loss_scale, 0, 0),
    ROW("optimizer", "optimizer", CHOICE, optimizer.kind, TSR_SGD, TSR_MUON),
    ROW("lr", "rate", REAL, rate, 0, 0),
    ROW("warm-up", "warm_up", WHOLE, warm_up, 0, INT32_MAX),
    ROW("schedule", "schedule", CHOICE, schedule, TSR_SCHEDULE_CONSTANT, TSR_SCHEDULE_COSINE),
    ROW("final-lr", "final_rate", REAL, final_rate, 0, 0),
    ROW("clip", "clip", REAL, clip, 0, 0),
    ROW("dropout", "dropout", REAL, dropout, 0, 0),
    ROW("betas", "beta1", REAL, optimizer.beta1, 0, 0),
    ROW("betas", "beta2", REAL, optimizer.beta2, 0, 0),
    ROW("epsilon", "epsilon", REAL, optimizer.epsilon, 0, 0),
    ROW("weight-decay", "weight_decay", REAL, optimizer.weight_decay, 0, 0),
};

enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert((int)ROWS <= (int)TRAIN_MOST_SETTINGS && ROWS <= 32, "there is a place and a bit for each setting");

static int64_t number_of(const train_options *options, const row *r)
{
    const char *const field = (const char *)options + r->at;
    int64_t number = 0;
    int choice;
    switch (r->form) {
    case CHOICE:
        memcpy(&choice, field, sizeof choice);
        return choice;
    case FLAG:
        return *(const bool *)field;
    default:
        memcpy(&number, field, sizeof number);
        return number;
    }
}

/* Sets the field; false if the number is not one of its values. */
static bool take_number(const row *r, int64_t number, train_options *options)
{
    char *const field = (char *)options + r->at;
    const int choice = (int)number;
    double real;
    if (r->form == REAL || r->form == OPEN) {
        memcpy(&real, &number, sizeof real);
        memcpy(field, &real, sizeof real);
        return real >= 0 || (r->form == OPEN && isnan(real));
    }
    if (number < r->least || number > r->most)
        return false;
    if (r->form == CHOICE)
        memcpy(field, &choice, sizeof choice);
    else if (r->form == FLAG)
        *(bool *)field = number == 1;
    else
        memcpy(field, &number, sizeof number);
    return true;
}

const char *train_settings_optimizer(tsr_optimizer_kind kind)
{
    static const char *const names[] = {[TSR_SGD] = "sgd",
                                        [TSR_ADAMW] = "adamw",
                                        [TSR_LION] = "lion",
                                        [TSR_ADAFACTOR] = "adafactor",
                                        [TSR_MUON] = "muon"};
    return names[kind];
}

bool train_settings_have(const train_options *options, const char *option)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].option, option) == 0)
            return (options->given & 1U << i) != 0;
    return false;
}

void train_settings_mark(train_options *options, const char *option)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].option, option) == 0)
            options->given |= 1U << i;
}

train_numbers train_settings_of(const train_options *options)
{
    train_numbers all = {.count = ROWS};
    for (int i = 0; i < ROWS; i++)
        all.of[i] = (tsr_checkpoint_number){rows[i].key, number_of(options, &rows[i])};
    return all;
}

static tsr_status take_text(const char *folder, const row *r, const char *text, train_options *options)
{
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    const bool is_number = end != text && *end == '\0' && errno == 0;
    /* Between the dtypes of trainings lies f16; a dropout of 1 leaves nothing. */
    if (is_number && take_number(r, number, options) && options->dtype != TSR_F16 && options->dropout < 1)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "--resume %s: its %s is %.40s, which is not that of a training; give --%s", folder, r->key,
                          text, r->option);
}

/* Takes a setting from the state unless it is given. The states of optimizers are not alike: there
 * another one cannot be given. */
static tsr_status take_setting(const char *folder, int i, const char *text, train_options *options)
{
    train_options saved = *options;
    if (!(options->given & 1U << i))
        return take_text(folder, &rows[i], text, options);
    if (strcmp(rows[i].option, "optimizer") != 0)
        return TSR_OK;
    TSR_TRY(take_text(folder, &rows[i], text, &saved));
    return saved.optimizer.kind == options->optimizer.kind
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "--resume %s: it was trained with --optimizer %s, not %s", folder,
                                train_settings_optimizer(saved.optimizer.kind),
                                train_settings_optimizer(options->optimizer.kind));
}

tsr_status train_settings_resume(const char *folder, train_options *options)
{
    tsr_safetensors *file;
    train_options taken = *options;
    tsr_status status = tsr_safetensors_open(folder, &file);
    if (status != TSR_OK)
        return tsr_status_set(status, "--resume %s", tsr_status_message());
    for (int i = 0; i < ROWS && status == TSR_OK; i++) {
        const char *const text = tsr_safetensors_metadata(file, rows[i].key);
        if (text)
            status = take_setting(folder, i, text, &taken);
    }
    tsr_safetensors_destroy(file);
    if (status == TSR_OK)
        *options = taken;
    return status;
}
