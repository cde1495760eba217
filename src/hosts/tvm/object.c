#include "hosts/tvm/object.h"

#include <tessera/sys/status.h>

#include <string.h>

typedef struct object {
    TVMFFIObject header;
    void *content;
    void (*destroy)(void *content);
} object;

/* One strong reference, and the weak one that all strong ones share. */
static const uint64_t one_reference = ((uint64_t)1 << 32) | 1;

static void delete_object(void *self, int flags)
{
    object *const o = self;
    if (flags & kTVMFFIObjectDeleterFlagBitMaskStrong)
        o->destroy(o->content);
    if (flags & kTVMFFIObjectDeleterFlagBitMaskWeak)
        ((TVMFFIObjectAllocHeader *)self)[-1].delete_space(self);
}

static int32_t index_of(const char *key)
{
    const TVMFFIByteArray bytes = {key, strlen(key)};
    return TVMFFITypeGetOrAllocIndex(&bytes, -1, 1, 0, 0, kTVMFFIObject);
}

tsr_status tsr_tvm_return_object(tsr_tvm_call *call, const char *key, void *content, void (*destroy)(void *content))
{
    const TVMFFICustomAllocator *const allocator = TVMFFIGetCustomAllocator();
    const int32_t type = index_of(key);
    object *const o = allocator->allocate(sizeof *o, _Alignof(object), type, allocator->context);
    if (!o) {
        destroy(content);
        return tsr_tvm_raised(call);
    }
    *o = (object){.content = content, .destroy = destroy};
    o->header.combined_ref_count = one_reference;
    o->header.type_index = type;
    o->header.deleter = delete_object;
    *call->result = (TVMFFIAny){.type_index = type};
    call->result->v_obj = &o->header;
    return TSR_OK;
}

tsr_status tsr_tvm_object(tsr_tvm_call *call, int32_t index, const char *what, const char *key, void **content)
{
    if (index >= call->count || call->arguments[index].type_index != index_of(key))
        return tsr_tvm_refuse_type(call, index, what, key);
    *content = ((object *)call->arguments[index].v_obj)->content;
    return TSR_OK;
}
