#include "hosts/ggml/cpu.h"

#include <string.h>

ggml_backend_dev_t tsr_ggml_cpu_device(void)
{
    const ggml_backend_reg_t registry = ggml_backend_reg_by_name("CPU");
    return registry && ggml_backend_reg_dev_count(registry) > 0 ? ggml_backend_reg_dev_get(registry, 0) : NULL;
}

bool tsr_ggml_cpu_find(tsr_ggml_cpu *out)
{
    const struct {
        const char *name;
        void *function; /* points to a pointer to a function, which C does not convert */
    } rows[] = {
        {"ggml_threadpool_new", &out->new_pool},
        {"ggml_threadpool_free", &out->free_pool},
        {"ggml_backend_cpu_set_threadpool", &out->set_pool},
        {"ggml_backend_set_n_threads", &out->set_threads},
        {"ggml_backend_set_abort_callback", &out->set_abort},
    };
    const ggml_backend_dev_t device = tsr_ggml_cpu_device();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *const found =
            device ? ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), rows[i].name) : NULL;
        if (!found)
            return false;
        memcpy(rows[i].function, &found, sizeof found);
    }
    return true;
}
