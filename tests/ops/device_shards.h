/** Tensors on the host and on a device with the same shards, and calls on both that are to give the
 * same bits. */
#ifndef TESTS_OPS_DEVICE_SHARDS_H
#define TESTS_OPS_DEVICE_SHARDS_H

#include <tessera/sys/device.h>
#include <tessera/tessera.h>

#include <stdbool.h>

/** A device of a rank. */
typedef struct shards_device {
    const tsr_device_table *table;
    void *self;
    tsr_device device;
} shards_device;

/** One tensor, twice. */
typedef struct shards_pair {
    tsr_dtensor *host, *device;
} shards_pair;

void shards_begin(tsr_device_driver *driver, int index, shards_device *out);

void shards_destroy(shards_pair *pair);

/** Makes a pair of a layout with drawn elements, no NaN among them. `below` > 0: integers below it.
 * `turned`: its first two dims, if it has two, run the other way in memory, which one rank alone
 * can ask for. */
tsr_status shards_make(const shards_device *on, const tsr_layout *layout, bool turned, int64_t below, shards_pair *out);

/** Calls a row of one result on both, with operands up to NULL. `turned`: into results that are
 * turned. */
tsr_status shards_call(const shards_device *on, const char *op, size_t count, const tsr_attribute *attributes,
                       shards_pair *const *operands, bool turned, shards_pair *out);

/** Waits for the device, and checks that both have the same bytes. */
tsr_status shards_compare(const shards_device *on, const char *what, const shards_pair *pair);

/** Copies a host's shard to the device's, both without gaps. */
tsr_status shards_copy(const shards_device *on, const tsr_dtensor *host, const tsr_dtensor *device);

#endif
