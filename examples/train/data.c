#include "data.h"

#include "random.h"

#include <tessera/sys/status.h>

static tsr_status open_numbers(const char *option, const char *path, train_data *data)
{
    const tsr_status status = tsr_npy_open(path, TSR_DTYPE_NONE, &data->numbers);
    if (status != TSR_OK)
        return tsr_status_set(status, "%s: tokens are a .npy of i32 or i64 where vocab_size is not 256: %s", option,
                              tsr_status_message());
    TSR_TRY(tsr_npy_load(data->numbers, &data->tokens));
    const tsr_tensor *const t = &data->tokens;
    if (t->ndim != 1 || (t->dtype != TSR_I32 && t->dtype != TSR_I64))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s %s: its dtype is %s, and its dims are %d; tokens are i32 or i64 in one dim", option,
                              path, tsr_dtype_name(t->dtype), t->ndim);
    data->count = t->shape[0];
    return TSR_OK;
}

static tsr_status check(const char *option, const train_data *data, int64_t vocab_size, int64_t length)
{
    if (data->count < length + 2)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %s: it has %lld tokens; --length %lld needs at least %lld",
                              option, data->path, (long long)data->count, (long long)length, (long long)length + 2);
    for (int64_t i = 0; i < data->count && data->numbers; i++) {
        const int64_t token = train_data_token(data, i);
        if (token < 0 || token >= vocab_size)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %s: token %lld, at place %lld, is not in 0 to %lld", option,
                                  data->path, (long long)token, (long long)i, (long long)vocab_size - 1);
    }
    return TSR_OK;
}

tsr_status train_data_open(const char *option, const char *path, int64_t vocab_size, int64_t length, train_data *out)
{
    train_data data = {.path = path};
    tsr_status status;
    if (vocab_size == 256) {
        status = llama_file_read(path, SIZE_MAX, &data.text);
        data.count = (int64_t)data.text.bytes;
    } else {
        status = open_numbers(option, path, &data);
    }
    if (status == TSR_OK)
        status = check(option, &data, vocab_size, length);
    if (status == TSR_OK)
        *out = data;
    else
        train_data_finish(&data);
    return status;
}

void train_data_finish(train_data *data)
{
    llama_file_finish(&data->text);
    tsr_npy_destroy(data->numbers);
    *data = (train_data){0};
}

int64_t train_data_token(const train_data *data, int64_t index)
{
    if (!data->numbers)
        return (unsigned char)data->text.data[index];
    const int64_t at = index * data->tokens.strides[0];
    return data->tokens.dtype == TSR_I32 ? ((const int32_t *)data->tokens.data)[at]
                                         : ((const int64_t *)data->tokens.data)[at];
}

int64_t train_batches_begin(const train_batches *batches, int64_t step, int64_t row)
{
    const int64_t number = step * batches->batch + row;
    if (batches->random) {
        const int64_t begins = batches->data->count - batches->length;
        return (int64_t)(llama_random_unit(batches->stream, (uint64_t)number) * (double)begins);
    }
    return number * batches->length % (batches->data->count - batches->length - 1);
}
