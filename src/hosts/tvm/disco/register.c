#include "hosts/tvm/disco/register.h"

#include "hosts/tvm/disco/collectives.h"
#include "hosts/tvm/disco/session.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

static const tsr_tvm_function functions[] = {
    {"init_ccl", 2, 2, tsr_disco_init_ccl},
    {"init_ccl_per_worker", 1, 1, tsr_disco_init_worker},
    {"allreduce", 4, 4, tsr_disco_allreduce},
    {"allgather", 3, 3, tsr_disco_allgather},
    {"broadcast_from_worker0", 3, 3, tsr_disco_broadcast},
    {"scatter_from_worker0", 3, 3, tsr_disco_scatter},
    {"gather_to_worker0", 3, 3, tsr_disco_gather},
    {"recv_from_worker0", 1, 1, tsr_disco_receive_from_first},
    {"send_to_next_group", 1, 1, tsr_disco_send_to_next_group},
    {"recv_from_prev_group", 1, 1, tsr_disco_receive_from_previous_group},
    {"send_to_worker", 2, 2, tsr_disco_send},
    {"recv_from_worker", 2, 2, tsr_disco_receive},
    {"sync_worker", 0, 0, tsr_disco_sync},
};

static tsr_status register_function(tsr_tvm_call *call, const tsr_tvm_function *function)
{
    char name[80];
    TVMFFIObjectHandle handle;
    snprintf(name, sizeof name, "runtime.disco.tessera.%s", function->name);
    const TVMFFIByteArray bytes = {name, strlen(name)};
    if (TVMFFIFunctionCreate((void *)(uintptr_t)function, tsr_tvm_enter, NULL, &handle) != 0)
        return tsr_tvm_raised(call);
    const int failed = TVMFFIFunctionSetGlobal(&bytes, handle, 1);
    (void)TVMFFIObjectDecRef(handle);
    return failed ? tsr_tvm_raised(call) : TSR_OK;
}

tsr_status tsr_tvm_register_ccl(tsr_tvm_call *call)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        TSR_TRY(register_function(call, &functions[i]));
    return TSR_OK;
}
