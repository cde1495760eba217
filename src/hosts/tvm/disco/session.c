#include "hosts/tvm/disco/session.h"

#include "hosts/tvm/disco/seats.h"
#include "hosts/tvm/disco/worker.h"

#include <tessera/sys/status.h>

#include <string.h>

static TVMFFIAny integer(int64_t value)
{
    return (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = value};
}

static TVMFFIAny text(const char *value)
{
    return (TVMFFIAny){.type_index = kTVMFFIRawStr, .v_c_str = value};
}

static void drop(const TVMFFIAny *value)
{
    if (value->type_index >= kTVMFFIStaticObjectBegin)
        (void)TVMFFIObjectDecRef(value->v_obj);
}

/* Makes a world, and has every worker call `function` with its address. From then on it is theirs,
 * also if the call fails: some may have been told. */
static tsr_status seat_workers(tsr_tvm_call *call, const TVMFFIAny *session, const TVMFFIAny *function)
{
    TVMFFIAny workers, nothing;
    tsr_disco_world *world;
    TSR_TRY(tsr_tvm_call_global(call, "runtime.disco.SessionGetNumWorkers", session, 1, &workers));
    TSR_TRY(tsr_disco_world_create((int)workers.v_int64, &world));
    const TVMFFIAny arguments[] = {*session, integer(0), integer(0), *function, integer((int64_t)(intptr_t)world)};
    TSR_TRY(tsr_tvm_call_global(call, "runtime.disco.SessionCallPacked", arguments, 5, &nothing));
    drop(&nothing);
    return TSR_OK;
}

tsr_status tsr_disco_init_ccl(tsr_tvm_call *call)
{
    const TVMFFIAny *const session = call->arguments;
    TVMFFIAny function;
    if (strcmp(tsr_tvm_type_name(session), "runtime.disco.ThreadedSession") != 0)
        return tsr_tvm_refuse_type(call, 0, "session", "runtime.disco.ThreadedSession, whose workers are threads");
    const TVMFFIAny name[] = {*session, text("runtime.disco.tessera.init_ccl_per_worker")};
    TSR_TRY(tsr_tvm_call_global(call, "runtime.disco.SessionGetGlobalFunc", name, 2, &function));
    const tsr_status status = seat_workers(call, session, &function);
    drop(&function);
    return status;
}

tsr_status tsr_disco_init_worker(tsr_tvm_call *call)
{
    int64_t address;
    tsr_disco_worker *worker;
    tsr_disco_seat *seat;
    TSR_TRY(tsr_tvm_integer(call, 0, "address", &address));
    TSR_TRY(tsr_disco_worker_here(call, &worker));
    TSR_TRY(
        tsr_disco_seat_take((tsr_disco_world *)(intptr_t)address, worker->id, worker->workers / worker->groups, &seat));
    TSR_TRY(tsr_disco_sit(seat));
    tsr_disco_worker_choose(worker);
    return TSR_OK;
}
