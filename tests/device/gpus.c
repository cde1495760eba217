#include "gpus.h"

#include <tessera/cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void skip_without(gpus *g, const char *reason)
{
    print_message("skipped: %s\n", reason);
    tsr_device_driver_destroy(g->driver);
    g->driver = NULL;
    skip();
}

void gpus_open(gpus *out)
{
    void *self;
    const char *reason = "";
    int there = 0, back = 0;
    *out = (gpus){0};
    assert_int_equal(tsr_cuda_driver_create(NULL, NULL, &out->driver), TSR_OK);
    const tsr_device_table *table = tsr_device_driver_table(out->driver, &self);
    assert_int_equal(table->count(self, &out->count, &reason), TSR_OK);
    if (out->count == 0)
        skip_without(out, reason);
    if (out->count > 1) {
        assert_int_equal(table->reaches(self, 0, 1, &there), TSR_OK);
        assert_int_equal(table->reaches(self, 1, 0, &back), TSR_OK);
    }
    out->count = there && back ? 2 : 1;
}
