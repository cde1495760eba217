#include "devices.h"

#include "staged.h"
#include "variants.h"

const device_part devices_parts[] = {
    {"memory", devices_memory},     {"copy", device_copy},       {"fill", device_fill},
    {"reduce", device_reduce},      {"convert", device_convert}, {"streams", devices_streams},
    {"products", devices_products}, {"moves", devices_moves},    {NULL, NULL},
};

static const tsr_device_driver *under_test;
static variant staged;

void devices_use(const char *name, const tsr_device_driver *driver)
{
    under_test = driver;
    staged = (variant){name, staged_table(driver)};
}

int list_variants(variant out[3])
{
    out[0] = staged;
    return 1;
}

const tsr_device_driver *devices_driver(void)
{
    return under_test;
}

const tsr_device_table *devices_table(void **self)
{
    return tsr_device_driver_table(under_test, self);
}

int devices_count(void)
{
    void *self;
    const tsr_device_table *const table = devices_table(&self);
    const char *reason;
    int count = 0, there = 1, back = 1;
    assert_int_equal(table->count(self, &count, &reason), TSR_OK);
    if (count < 2)
        return 1;
    if (table->reaches) {
        assert_int_equal(table->reaches(self, 0, 1, &there), TSR_OK);
        assert_int_equal(table->reaches(self, 1, 0, &back), TSR_OK);
    }
    return there && back ? 2 : 1;
}
