/* What handlers say of themselves to XLA of another version, without XLA: compiled with each header
 * that there is. */
#include <tessera/xla.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xla/ffi/api/c_api.h>

#include <cmocka.h>

static XLA_FFI_Error *take_type(XLA_FFI_Type_Register_Args *args)
{
    static int64_t last;
    args->type_id->type_id = ++last;
    return NULL;
}

static int registered;
static const char *platform = "Host";

static XLA_FFI_Error *take_handler(XLA_FFI_Handler_Register_Args *args)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)args->name.len, args->name.ptr);
    assert_ptr_equal(strstr(name, "tsr_xla_"), name);
    assert_int_equal(args->platform.len, strlen(platform));
    assert_memory_equal(args->platform.ptr, platform, args->platform.len);
    assert_non_null(args->bundle.instantiate);
    assert_non_null(args->bundle.execute);
    registered++;
    return NULL;
}

static XLA_FFI_Api api_of(int minor)
{
    XLA_FFI_Api api = {.struct_size = sizeof api};
    api.api_version.minor_version = minor;
    api.XLA_FFI_Type_Register = take_type;
    api.XLA_FFI_Handler_Register = take_handler;
    return api;
}

static XLA_FFI_Metadata ask(XLA_FFI_Handler *handler, const XLA_FFI_Api *api, size_t size)
{
    XLA_FFI_Metadata metadata = {.struct_size = size, .state_type_id = {-7}};
    XLA_FFI_Metadata_Extension extension = {.metadata = &metadata};
    extension.extension_base.type = XLA_FFI_Extension_Metadata;
    XLA_FFI_CallFrame frame = {.api = api};
    frame.extension_start = &extension.extension_base;
    assert_null(handler(&frame));
    return metadata;
}

static void handlers_have_the_lesser_version(void **state)
{
    static XLA_FFI_Api old, same, newer;
    (void)state;
    old = api_of(2);
    same = api_of(XLA_FFI_API_MINOR);
    newer = api_of(XLA_FFI_API_MINOR + 4);
    XLA_FFI_Handler *const handlers[] = {
        tsr_xla_redistribute,       tsr_xla_all_reduce,    tsr_xla_all_gather, tsr_xla_reduce_scatter,
        tsr_xla_all_to_all,         tsr_xla_linear_column, tsr_xla_linear_row, tsr_xla_linear_column_backward,
        tsr_xla_linear_row_backward};
    for (size_t h = 0; h < sizeof handlers / sizeof handlers[0]; h++) {
        assert_int_equal(ask(handlers[h], &old, sizeof(XLA_FFI_Metadata)).api_version.minor_version, 2);
        assert_int_equal(ask(handlers[h], &same, sizeof(XLA_FFI_Metadata)).api_version.minor_version,
                         XLA_FFI_API_MINOR);
        const XLA_FFI_Metadata metadata = ask(handlers[h], &newer, sizeof metadata);
        assert_int_equal(metadata.api_version.minor_version, XLA_FFI_API_MINOR);
        assert_int_equal(metadata.api_version.major_version, XLA_FFI_API_MAJOR);
    }
}

static void the_state_is_told_where_there_is_room(void **state)
{
    static XLA_FFI_Api api;
    int64_t lent;
    (void)state;
    api = api_of(XLA_FFI_API_MINOR);
    const XLA_FFI_Metadata whole = ask(tsr_xla_all_reduce, &api, sizeof whole);
    assert_true(whole.state_type_id.type_id > 0);
    const XLA_FFI_Metadata older = ask(tsr_xla_all_reduce, &api, XLA_FFI_STRUCT_SIZE(XLA_FFI_Metadata, traits));
    assert_int_equal(older.state_type_id.type_id, -7);
    assert_int_equal(tsr_xla_lent_type(&api, &lent), TSR_OK);
    assert_int_equal(lent, whole.state_type_id.type_id + 1);
    /* There are several by now. */
    assert_int_equal(tsr_xla_lent_type(NULL, &lent), TSR_ERROR_STATE);
}

static void all_handlers_are_registered_by_one(void **state)
{
    static XLA_FFI_Api api;
    (void)state;
    api = api_of(XLA_FFI_API_MINOR);
    ask(tsr_xla_register, &api, sizeof(XLA_FFI_Metadata));
    assert_int_equal(registered, 9);
    platform = "CUDA";
    ask(tsr_xla_gpu_register, &api, sizeof(XLA_FFI_Metadata));
    assert_int_equal(registered, 18);
}

static XLA_FFI_Error *take_error(XLA_FFI_Error_Create_Args *args)
{
    return (XLA_FFI_Error *)strdup(args->message);
}

static void without_the_extension_header_gpus_are_refused(void **state)
{
    static XLA_FFI_Api api;
    (void)state;
    api = api_of(XLA_FFI_API_MINOR);
    api.XLA_FFI_Error_Create = take_error;
    XLA_FFI_CallFrame frame = {.api = &api, .stage = XLA_FFI_ExecutionStage_INSTANTIATE};
    char *const why = (char *)tsr_xla_gpu_all_reduce(&frame);
    assert_non_null(why);
#if XLA_FFI_API_MINOR >= 5
    assert_string_equal(why, "tsr_xla_all_reduce: there is no attribute `mesh`, such as \"tp=4\"");
#else
    assert_string_equal(why,
                        "tsr_xla_all_reduce: this libtessera-xla has no calls on GPUs: it was built with XLA's "
                        "headers 0.3, of which xla/ffi/api has no collectives_c_api.h; those of jaxlib 0.12 have it");
#endif
    free(why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_have_the_lesser_version),
        cmocka_unit_test(the_state_is_told_where_there_is_room),
        cmocka_unit_test(all_handlers_are_registered_by_one),
        cmocka_unit_test(without_the_extension_header_gpus_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
