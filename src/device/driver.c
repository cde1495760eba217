#include "device/driver.h"

#include "base/hash.h"
#include "base/processor.h"
#include "device/host/host.h"

#include <stdlib.h>
#include <string.h>

typedef void entry(void);

typedef struct entry_row {
    const char *name;
    size_t offset;
} entry_row;

/* clang-format off */
#define ROW(entry) {#entry, offsetof(tsr_device_table, entry)}
/* clang-format on */

static const entry_row required[] = {ROW(count),      ROW(alloc), ROW(free),   ROW(copy),
                                     ROW(copy_boxes), ROW(fill),  ROW(reduce), ROW(convert)};

/* A table has either all of these entries or none. */
static const entry_row streams[] = {ROW(stream_create), ROW(stream_destroy), ROW(stream_synchronize), ROW(event_create),
                                    ROW(event_destroy), ROW(event_record),   ROW(event_wait)};

#define LENGTH(rows) (sizeof(rows) / sizeof(rows)[0])

static bool has_entry(const tsr_device_table *table, const entry_row *row)
{
    entry *function;
    memcpy(&function, (const char *)table + row->offset, sizeof function);
    return function != NULL;
}

/* The first of `rows` that the table has (`present`) or lacks; NULL: there is no such row. */
static const entry_row *find_row(const tsr_device_table *table, const entry_row *rows, size_t count, bool present)
{
    for (size_t i = 0; i < count; i++)
        if (has_entry(table, &rows[i]) == present)
            return &rows[i];
    return NULL;
}

static tsr_status check_table(const tsr_device_table *table)
{
    if (table->size < sizeof *table)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_device_driver_create: table->size is %zu; it must be at least %zu", table->size,
                              sizeof *table);
    if (!table->name || !table->name[0])
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_device_driver_create: the table lacks the required entry \"name\"");
    const entry_row *const missing = find_row(table, required, LENGTH(required), false);
    if (missing)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_device_driver_create: the table of device \"%s\" lacks the required entry \"%s\"",
                              table->name, missing->name);
    const entry_row *const some = find_row(table, streams, LENGTH(streams), true);
    const entry_row *const none = find_row(table, streams, LENGTH(streams), false);
    if (some && none)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_device_driver_create: the table of device \"%s\" has \"%s\" but lacks \"%s\"; "
                              "stream and event entries "
                              "come all together or not at all",
                              table->name, some->name, none->name);
    return TSR_OK;
}

/* Hashes the name and every entry behind it, which are functions and constants: together they say
 * what a device does. */
static uint64_t kind_of(const tsr_device_table *table)
{
    const char *const functions = (const char *)&table->count;
    uint64_t hash = tsr_hash_text(TSR_HASH_SEED, table->name);
    for (size_t at = offsetof(tsr_device_table, count); at < sizeof *table; at += sizeof(entry *)) {
        uint64_t function = 0;
        memcpy(&function, functions + at - offsetof(tsr_device_table, count), sizeof(entry *));
        hash = tsr_hash_word(hash, function);
    }
    return hash ? hash : 1;
}

tsr_status tsr_device_driver_create(const tsr_device_table *table, void *self, tsr_device_driver **out)
{
    if (!table || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_device_driver_create: %s is NULL", table ? "out" : "table");
    TSR_TRY(check_table(table));
    tsr_device_driver *const driver = malloc(sizeof *driver);
    if (!driver)
        return tsr_status_set(TSR_ERROR_MEMORY, "tsr_device_driver_create: no memory for %zu bytes", sizeof *driver);
    driver->table = *table;
    driver->self = self;
    driver->kind = kind_of(table);
    driver->references = 1;
    *out = driver;
    return TSR_OK;
}

const tsr_device_driver *tsr_device_driver_retain(const tsr_device_driver *driver)
{
    if (driver)
        tsr_references_add(&((tsr_device_driver *)driver)->references);
    return driver;
}

void tsr_device_driver_release(const tsr_device_driver *given)
{
    tsr_device_driver *const driver = (tsr_device_driver *)given;
    if (!driver || !tsr_references_drop(&driver->references))
        return;
    if (driver->table.destroy)
        driver->table.destroy(driver->self);
    free(driver);
}

void tsr_device_driver_destroy(tsr_device_driver *driver)
{
    tsr_device_driver_release(driver);
}

const tsr_device_table *tsr_device_driver_table(const tsr_device_driver *driver, void **self)
{
    if (self)
        *self = driver ? driver->self : NULL;
    return driver ? &driver->table : tsr_host_table_for(tsr_processor_kernels());
}
