/* The functions that TVM-FFI's loader finds in the library, by their names: `__tvm_ffi_layout` is
 * `module.layout`. */
#include "hosts/tvm/disco/register.h"
#include "hosts/tvm/layouts.h"
#include "hosts/tvm/moves.h"
#include "hosts/tvm/plans.h"
#include "hosts/tvm/ranks.h"

#include <tessera/version.h>

static tsr_status version(tsr_tvm_call *call)
{
    return tsr_tvm_return_text(call, tsr_version());
}

/* Exports a function that takes from LEAST to MOST arguments. */
#define EXPORT(NAME, LEAST, MOST, BODY)                                                                                \
    TVM_FFI_DLL_EXPORT int __tvm_ffi_##NAME(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result); \
    int __tvm_ffi_##NAME(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result)                     \
    {                                                                                                                  \
        tsr_tvm_function function = {#NAME, LEAST, MOST, BODY};                                                        \
        (void)self;                                                                                                    \
        return tsr_tvm_enter(&function, arguments, count, result);                                                     \
    }

EXPORT(version, 0, 0, version)
EXPORT(layout, 4, 5, tsr_tvm_layout)
EXPORT(print_layout, 1, 2, tsr_tvm_print_layout)
EXPORT(local_shape, 2, 2, tsr_tvm_local_shape)
EXPORT(local_offset, 2, 2, tsr_tvm_local_offset)
EXPORT(plan, 3, 3, tsr_tvm_plan)
EXPORT(save_plan, 1, 1, tsr_tvm_save_plan)
EXPORT(load_plan, 2, 2, tsr_tvm_load_plan)
EXPORT(plan_bytes, 1, 1, tsr_tvm_plan_bytes)
EXPORT(plan_messages, 1, 1, tsr_tvm_plan_messages)
EXPORT(plan_workspace, 1, 1, tsr_tvm_plan_workspace)
EXPORT(describe_plan, 1, 1, tsr_tvm_describe_plan)
EXPORT(ranks, 1, 2, tsr_tvm_make_ranks)
EXPORT(move, 3, 3, tsr_tvm_move)
EXPORT(load_move, 2, 2, tsr_tvm_load_move)
EXPORT(run, 3, 3, tsr_tvm_run)
EXPORT(run_rank, 4, 4, tsr_tvm_run_rank)
EXPORT(bind, 1, 1, tsr_tvm_bind)
EXPORT(redistribute, 5, 5, tsr_tvm_redistribute)
EXPORT(register_ccl, 0, 0, tsr_tvm_register_ccl)
