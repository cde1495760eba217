#include "hosts/tvm/disco/worker.h"

#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <string.h>

/* DiscoWorker::ThreadLocal(), a static function, which throws where there is no worker. */
#define THREAD_LOCAL "_ZN3tvm7runtime11DiscoWorker11ThreadLocalEv"

typedef tsr_disco_worker *thread_local_worker(void);

/* The library is loaded already, perhaps out of sight. */
static thread_local_worker *find_function(void)
{
    void *found = dlsym(RTLD_DEFAULT, THREAD_LOCAL);
    if (!found) {
        void *const library = dlopen("libtvm_runtime_extra.so", RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            found = dlsym(library, THREAD_LOCAL);
            dlclose(library);
        }
    }
    thread_local_worker *function;
    memcpy(&function, &found, sizeof function);
    return function;
}

/* What TVM's own functions say of the worker must lie where it is looked for. */
static bool matches(const tsr_disco_worker *worker, int64_t rank, int64_t size)
{
    const int32_t type = worker->ccl.type_index;
    return worker->id == rank && worker->workers == size && worker->groups >= 1 &&
           worker->workers % worker->groups == 0 && (type == kTVMFFISmallStr || type == kTVMFFIStr);
}

tsr_status tsr_disco_worker_here(tsr_tvm_call *call, tsr_disco_worker **out)
{
    TVMFFIAny rank, size;
    TSR_TRY(tsr_tvm_call_global(call, "runtime.disco.worker_rank", NULL, 0, &rank));
    TSR_TRY(tsr_tvm_call_global(call, "runtime.disco.world_size", NULL, 0, &size));
    thread_local_worker *const function = find_function();
    if (!function)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: TVM has no function %s, by which workers are found",
                              call->name, THREAD_LOCAL);
    tsr_disco_worker *const worker = function();
    if (!matches(worker, rank.v_int64, size.v_int64))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: this TVM lays its workers out in another way than 0.27",
                              call->name);
    *out = worker;
    return TSR_OK;
}

void tsr_disco_worker_choose(tsr_disco_worker *worker)
{
    static const char name[] = "tessera";
    _Static_assert(sizeof name == sizeof worker->ccl.v_bytes, "the name is a small string");
    if (worker->ccl.type_index == kTVMFFIStr)
        (void)TVMFFIObjectDecRef(worker->ccl.v_obj);
    worker->ccl.type_index = kTVMFFISmallStr;
    worker->ccl.small_str_len = sizeof name - 1;
    memcpy(worker->ccl.v_bytes, name, sizeof name);
}
