#include "variants.h"

int list_variants(variant out[3])
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    int count = 0;
    for (int i = 0; i < 3; i++) {
        const tsr_device_table *table;
        if (tsr_device_host_table(names[i], &table) == TSR_OK)
            out[count++] = (variant){names[i], table};
        else
            print_message("%s kernels are not tested here: %s\n", names[i], tsr_status_message());
    }
    assert_true(count > 0);
    return count;
}
