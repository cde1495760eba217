#include "host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

TVMFFIAny host_none(void)
{
    return (TVMFFIAny){.type_index = kTVMFFINone};
}

TVMFFIAny host_int(int64_t value)
{
    return (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = value};
}

TVMFFIAny host_text(const char *value)
{
    return (TVMFFIAny){.type_index = kTVMFFIRawStr, .v_c_str = value};
}

TVMFFIAny host_tensor(DLTensor *value)
{
    return (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = value};
}

void host_drop(TVMFFIAny value)
{
    if (value.type_index >= kTVMFFIStaticObjectBegin)
        assert_int_equal(TVMFFIObjectDecRef(value.v_obj), 0);
}

void host_take_error(char *kind, char *message, size_t size)
{
    TVMFFIObjectHandle error = NULL;
    TVMFFIErrorMoveFromRaised(&error);
    const TVMFFIErrorCell *const cell = (const void *)((const char *)error + sizeof(TVMFFIObject));
    snprintf(kind, size, "%.*s", (int)cell->kind.size, cell->kind.data);
    snprintf(message, size, "%.*s", (int)cell->message.size, cell->message.data);
    (void)TVMFFIObjectDecRef(error);
}

static bool call_global(const char *name, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result)
{
    const TVMFFIByteArray bytes = {name, strlen(name)};
    TVMFFIObjectHandle function = NULL;
    *result = host_none();
    if (TVMFFIFunctionGetGlobal(&bytes, &function) != 0 || !function)
        return false;
    const int failed = TVMFFIFunctionCall(function, (TVMFFIAny *)(uintptr_t)arguments, count, result);
    (void)TVMFFIObjectDecRef(function);
    return !failed;
}

static TVMFFIAny must_call_global(const char *name, const TVMFFIAny *arguments, int32_t count)
{
    char kind[1200], message[1200];
    TVMFFIAny result;
    if (!call_global(name, arguments, count, &result)) {
        host_take_error(kind, message, sizeof message);
        fail_msg("%s: %s: %s", name, kind, message);
    }
    return result;
}

TVMFFIAny host_list(const TVMFFIAny *values, int32_t count)
{
    return must_call_global("ffi.List", values, count);
}

TVMFFIAny host_shape(const int64_t *sizes, int32_t count)
{
    TVMFFIAny values[16];
    for (int32_t i = 0; i < count; i++)
        values[i] = host_int(sizes[i]);
    return must_call_global("ffi.Shape", values, count);
}

host host_load(const char *path)
{
    const TVMFFIAny name = host_text(path);
    return (host){must_call_global("ffi.ModuleLoadFromFile", &name, 1)};
}

/* Calls a function of the module by its name. */
static bool call(const host *h, const char *name, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result)
{
    TVMFFIAny function;
    const TVMFFIAny which[] = {h->module, host_text(name), {.type_index = kTVMFFIBool, .v_int64 = 0}};
    *result = host_none();
    if (!call_global("ffi.ModuleGetFunction", which, 3, &function) || function.type_index != kTVMFFIFunction)
        return false;
    const int failed = TVMFFIFunctionCall(function.v_obj, (TVMFFIAny *)(uintptr_t)arguments, count, result);
    (void)TVMFFIObjectDecRef(function.v_obj);
    return !failed;
}

bool host_try(const host *h, const char *name, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result,
              char *message, size_t size)
{
    char kind[1200];
    if (call(h, name, arguments, count, result))
        return true;
    host_take_error(kind, message, size < sizeof kind ? size : sizeof kind);
    return false;
}

TVMFFIAny host_call(const host *h, const char *name, const TVMFFIAny *arguments, int32_t count)
{
    char message[1200];
    TVMFFIAny result;
    if (!host_try(h, name, arguments, count, &result, message, sizeof message))
        fail_msg("%s: %s", name, message);
    return result;
}

void host_fails(const host *h, const char *name, const TVMFFIAny *arguments, int32_t count, const char *kind,
                const char *part)
{
    char found[1200], message[1200];
    TVMFFIAny result;
    if (call(h, name, arguments, count, &result))
        fail_msg("%s: no error, but \"%s\" was expected", name, part);
    host_take_error(found, message, sizeof message);
    assert_string_equal(found, kind);
    if (!strstr(message, part))
        fail_msg("%s: \"%s\" does not say \"%s\"", name, message, part);
}

const char *host_text_of(const TVMFFIAny *value)
{
    if (value->type_index == kTVMFFISmallStr)
        return value->v_bytes;
    assert_int_equal(value->type_index, kTVMFFIStr);
    return ((const TVMFFIByteArray *)(const void *)((const char *)value->v_obj + sizeof(TVMFFIObject)))->data;
}

int64_t host_size_of(const TVMFFIAny *shape, size_t index)
{
    assert_int_equal(shape->type_index, kTVMFFIShape);
    const TVMFFIShapeCell *const cell = (const void *)((const char *)shape->v_obj + sizeof(TVMFFIObject));
    assert_true(index < cell->size);
    return cell->data[index];
}
