#include "hosts/tvm/tensors.h"

#include <tessera/dlpack.h>
#include <tessera/sys/status.h>

/* The sentence of DLPack, with the name of the argument before it. */
static tsr_status refuse(const tsr_tvm_call *call, const char *what, tsr_status status)
{
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    return tsr_status_set(status, "%s: %s: %s", call->name, what, kept.text);
}

tsr_status tsr_tvm_tensor_of(tsr_tvm_call *call, const TVMFFIAny *value, const char *what, bool *given, tsr_tensor *out)
{
    const void *tensor;
    *given = value->type_index != kTVMFFINone;
    switch (value->type_index) {
    case kTVMFFINone:
        return TSR_OK;
    case kTVMFFIDLTensorPtr:
        tensor = value->v_ptr;
        break;
    case kTVMFFITensor:
        tensor = (const char *)value->v_obj + sizeof(TVMFFIObject);
        break;
    default:
        call->wrong_type = true;
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s: it must be a tensor or None", call->name, what,
                              tsr_tvm_type_name(value));
    }
    const tsr_status status = tsr_tensor_from_dltensor(tensor, NULL, out);
    return status == TSR_OK ? TSR_OK : refuse(call, what, status);
}

tsr_status tsr_tvm_tensor(tsr_tvm_call *call, int32_t index, const char *what, bool *given, tsr_tensor *out)
{
    static const TVMFFIAny none = {.type_index = kTVMFFINone};
    return tsr_tvm_tensor_of(call, index < call->count ? &call->arguments[index] : &none, what, given, out);
}
