/* The CUDA device as a variant of the conformance tests: a GPU, or an emulated GPU if the program
 * is linked with the emulation. */
#include "staged.h"
#include "variants.h"

#include <tessera/cuda.h>

int list_variants(variant out[3])
{
    static const tsr_device_table *table;
    static tsr_device_driver *driver;
    void *self;
    const char *reason;
    int count;
    if (!table) {
        assert_int_equal(tsr_cuda_driver_create(NULL, NULL, &driver), TSR_OK);
        assert_int_equal(tsr_device_driver_table(driver, &self)->count(self, &count, &reason), TSR_OK);
        if (count == 0) {
            print_message("no CUDA device: %s\n", reason);
            tsr_device_driver_destroy(driver);
            skip();
        }
        table = staged_table(driver);
    }
    out[0] = (variant){"cuda", table};
    return 1;
}
