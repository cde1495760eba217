#include "hosts/tvm/call.h"

#include <tessera/dlpack.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Python's names of errors, but for TypeError, which a call itself marks. */
static const char *kind_of(const tsr_tvm_call *call, tsr_status status)
{
    if (call->wrong_type)
        return "TypeError";
    if (status == TSR_ERROR_ARGUMENT)
        return "ValueError";
    if (status == TSR_ERROR_MEMORY)
        return "MemoryError";
    return status == TSR_ERROR_UNSUPPORTED ? "NotImplementedError" : "RuntimeError";
}

static tsr_status check_count(const tsr_tvm_function *function, int32_t count)
{
    if (count >= function->least && count <= function->most)
        return TSR_OK;
    if (function->least == function->most)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %d arguments: it takes %d", function->name, (int)count,
                              (int)function->least);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %d arguments: it takes %d to %d", function->name, (int)count,
                          (int)function->least, (int)function->most);
}

int tsr_tvm_enter(void *function, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result)
{
    const tsr_tvm_function *const f = function;
    tsr_tvm_call call = {.name = f->name, .arguments = arguments, .count = count, .result = result};
    tsr_status status = check_count(f, count);
    if (status == TSR_OK)
        status = f->body(&call);
    else
        call.wrong_type = true;
    if (status == TSR_OK)
        return 0;
    if (!call.raised)
        TVMFFIErrorSetRaisedFromCStr(kind_of(&call, status), tsr_status_message());
    return -1;
}

bool tsr_tvm_given(const tsr_tvm_call *call, int32_t index)
{
    return index < call->count && call->arguments[index].type_index != kTVMFFINone;
}

const char *tsr_tvm_type_name(const TVMFFIAny *value)
{
    const TVMFFITypeInfo *const info = TVMFFIGetTypeInfo(value->type_index);
    return info ? info->type_key.data : "a value of an unknown type";
}

tsr_status tsr_tvm_refuse_type(tsr_tvm_call *call, int32_t index, const char *what, const char *wanted)
{
    call->wrong_type = true;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: argument %d, %s, is %s: it must be %s", call->name, (int)index + 1,
                          what, index < call->count ? tsr_tvm_type_name(&call->arguments[index]) : "missing", wanted);
}

/* What follows the header of an object. */
static const void *cell_of(const TVMFFIAny *value)
{
    return (const char *)value->v_obj + sizeof(TVMFFIObject);
}

static int32_t type_of(const tsr_tvm_call *call, int32_t index)
{
    return index < call->count ? call->arguments[index].type_index : kTVMFFINone;
}

/* Small texts and bytes lie in the value itself, with a NUL behind them. */
static TVMFFIByteArray small_bytes(const TVMFFIAny *value)
{
    return (TVMFFIByteArray){value->v_bytes, value->small_str_len};
}

tsr_status tsr_tvm_text(tsr_tvm_call *call, int32_t index, const char *what, const char **out)
{
    TVMFFIByteArray bytes;
    const TVMFFIAny *const value = &call->arguments[index];
    switch (type_of(call, index)) {
    case kTVMFFIRawStr:
        *out = value->v_c_str;
        return TSR_OK;
    case kTVMFFISmallStr:
        bytes = small_bytes(value);
        break;
    case kTVMFFIStr:
        bytes = *(const TVMFFIByteArray *)cell_of(value);
        break;
    default:
        return tsr_tvm_refuse_type(call, index, what, "a str");
    }
    if (strnlen(bytes.data, bytes.size) != bytes.size)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: argument %d, %s, has a NUL at character %zu", call->name,
                              (int)index + 1, what, strnlen(bytes.data, bytes.size));
    *out = bytes.data;
    return TSR_OK;
}

tsr_status tsr_tvm_bytes(tsr_tvm_call *call, int32_t index, const char *what, TVMFFIByteArray *out)
{
    const TVMFFIAny *const value = &call->arguments[index];
    switch (type_of(call, index)) {
    case kTVMFFISmallBytes:
        *out = small_bytes(value);
        return TSR_OK;
    case kTVMFFIBytes:
        *out = *(const TVMFFIByteArray *)cell_of(value);
        return TSR_OK;
    case kTVMFFIByteArrayPtr:
        *out = *(const TVMFFIByteArray *)value->v_ptr;
        return TSR_OK;
    default:
        return tsr_tvm_refuse_type(call, index, what, "bytes");
    }
}

tsr_status tsr_tvm_integer(tsr_tvm_call *call, int32_t index, const char *what, int64_t *out)
{
    const int32_t type = type_of(call, index);
    if (type != kTVMFFIInt && type != kTVMFFIBool)
        return tsr_tvm_refuse_type(call, index, what, "an int");
    *out = call->arguments[index].v_int64;
    return TSR_OK;
}

tsr_status tsr_tvm_list(tsr_tvm_call *call, int32_t index, const char *what, const TVMFFIAny **values, int64_t *count)
{
    const int32_t type = type_of(call, index);
    if (type != kTVMFFIArray && type != kTVMFFIList)
        return tsr_tvm_refuse_type(call, index, what, "a list or a tuple");
    const TVMFFISeqCell *const cell = cell_of(&call->arguments[index]);
    *values = cell->data;
    *count = cell->size;
    return TSR_OK;
}

static tsr_status check_sizes(const tsr_tvm_call *call, int32_t index, const char *what, int64_t count)
{
    if (count <= TSR_MAX_DIMS)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: argument %d, %s, has %lld sizes: at most %d are possible",
                          call->name, (int)index + 1, what, (long long)count, TSR_MAX_DIMS);
}

tsr_status tsr_tvm_sizes(tsr_tvm_call *call, int32_t index, const char *what, int *ndim, int64_t *sizes)
{
    const TVMFFIAny *values = NULL;
    int64_t count = 0;
    if (type_of(call, index) == kTVMFFIShape) {
        const TVMFFIShapeCell *const cell = cell_of(&call->arguments[index]);
        TSR_TRY(check_sizes(call, index, what, (int64_t)cell->size));
        *ndim = (int)cell->size;
        for (int d = 0; d < *ndim; d++)
            sizes[d] = cell->data[d];
        return TSR_OK;
    }
    TSR_TRY(tsr_tvm_list(call, index, what, &values, &count));
    TSR_TRY(check_sizes(call, index, what, count));
    for (int64_t d = 0; d < count; d++) {
        if (values[d].type_index != kTVMFFIInt)
            return tsr_tvm_refuse_type(call, index, what, "a list of ints");
        sizes[d] = values[d].v_int64;
    }
    *ndim = (int)count;
    return TSR_OK;
}

/* An empty tensor of that dtype says which of ours it is. */
static tsr_status translate(DLDataType dtype, tsr_dtype *out)
{
    int64_t none = 0;
    const DLTensor empty = {.device = {kDLCPU, 0}, .ndim = 1, .dtype = dtype, .shape = &none};
    tsr_tensor tensor;
    TSR_TRY(tsr_tensor_from_dltensor(&empty, NULL, &tensor));
    *out = tensor.dtype;
    return TSR_OK;
}

tsr_status tsr_tvm_dtype(tsr_tvm_call *call, int32_t index, const char *what, tsr_dtype *out)
{
    const char *text = "";
    DLDataType dtype;
    if (type_of(call, index) == kTVMFFIDataType)
        return translate(call->arguments[index].v_dtype, out);
    TSR_TRY(tsr_tvm_text(call, index, what, &text));
    if (tsr_dtype_parse(text, out) == TSR_OK)
        return TSR_OK;
    const TVMFFIByteArray bytes = {text, strlen(text)};
    if (TVMFFIDataTypeFromString(&bytes, &dtype) != 0) {
        TVMFFIObjectHandle forgotten;
        TVMFFIErrorMoveFromRaised(&forgotten);
        (void)TVMFFIObjectDecRef(forgotten);
    } else if (translate(dtype, out) == TSR_OK)
        return TSR_OK;
    return tsr_dtype_parse(text, out);
}

tsr_status tsr_tvm_raised(tsr_tvm_call *call)
{
    call->raised = true;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: TVM-FFI has an error", call->name);
}

tsr_status tsr_tvm_return_text(tsr_tvm_call *call, const char *text)
{
    const TVMFFIByteArray bytes = {text, strlen(text)};
    return TVMFFIStringFromByteArray(&bytes, call->result) == 0 ? TSR_OK : tsr_tvm_raised(call);
}

tsr_status tsr_tvm_return_bytes(tsr_tvm_call *call, const void *bytes, size_t size)
{
    const TVMFFIByteArray array = {bytes, size};
    return TVMFFIBytesFromByteArray(&array, call->result) == 0 ? TSR_OK : tsr_tvm_raised(call);
}

tsr_status tsr_tvm_return_integer(tsr_tvm_call *call, int64_t value)
{
    *call->result = (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = value};
    return TSR_OK;
}

tsr_status tsr_tvm_call_global(tsr_tvm_call *call, const char *name, const TVMFFIAny *arguments, int32_t count,
                               TVMFFIAny *result)
{
    const TVMFFIByteArray bytes = {name, strlen(name)};
    TVMFFIObjectHandle function = NULL;
    *result = (TVMFFIAny){.type_index = kTVMFFINone};
    if (TVMFFIFunctionGetGlobal(&bytes, &function) != 0)
        return tsr_tvm_raised(call);
    if (!function)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s: the host has no function %s", call->name, name);
    const int failed = TVMFFIFunctionCall(function, (TVMFFIAny *)(uintptr_t)arguments, count, result);
    (void)TVMFFIObjectDecRef(function);
    return failed ? tsr_tvm_raised(call) : TSR_OK;
}

tsr_status tsr_tvm_return_sizes(tsr_tvm_call *call, int count, const int64_t *sizes)
{
    TVMFFIAny values[TSR_MAX_DIMS];
    for (int d = 0; d < count; d++)
        values[d] = (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = sizes[d]};
    return tsr_tvm_call_global(call, "ffi.Shape", values, count, call->result);
}
