#include "comm/core/table.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <string.h>

#define CALL "tsr_comm_create_from_table"

/* Bytes of the first version of each table. When a table gets further entries, its size without
 * them must be kept here. */
#define FIRST_BYTES_TABLE       sizeof(tsr_comm_table)
#define FIRST_BYTES_DIRECT      sizeof(tsr_comm_direct)
#define FIRST_BYTES_MESSAGES    sizeof(tsr_comm_messages)
#define FIRST_BYTES_MEMORY      sizeof(tsr_comm_memory)
#define FIRST_BYTES_COLLECTIVES sizeof(tsr_comm_collectives)
#define FIRST_BYTES_NODES       sizeof(tsr_comm_nodes)

typedef struct required_entry {
    const char *name;
    bool required, present;
} required_entry;

/* Copies a table that begins with its size in bytes; the bytes that it lacks of the `known` ones
 * stay 0 in `out`. `given` NULL: the engine has no such table. */
static tsr_status copy_table(const char *name, const void *given, size_t first_bytes, size_t known, void *out)
{
    size_t size;
    if (!given)
        return TSR_OK;
    memcpy(&size, given, sizeof size);
    if (size < first_bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s.size is %zu, but such a table has %zu bytes", name, size,
                              first_bytes);
    memcpy(out, given, size < known ? size : known);
    memcpy(out, &known, sizeof known);
    return TSR_OK;
}

static tsr_status copy_tables(const tsr_comm_table *table, tsr_engine *e)
{
    TSR_TRY(copy_table("table", table, FIRST_BYTES_TABLE, sizeof e->table, &e->table));
    TSR_TRY(copy_table("table.direct", e->table.direct, FIRST_BYTES_DIRECT, sizeof e->direct, &e->direct));
    TSR_TRY(copy_table("table.messages", e->table.messages, FIRST_BYTES_MESSAGES, sizeof e->messages, &e->messages));
    TSR_TRY(copy_table("table.memory", e->table.memory, FIRST_BYTES_MEMORY, sizeof e->memory, &e->memory));
    TSR_TRY(copy_table("table.collectives", e->table.collectives, FIRST_BYTES_COLLECTIVES, sizeof e->collectives,
                       &e->collectives));
    return copy_table("table.nodes", e->table.nodes, FIRST_BYTES_NODES, sizeof e->nodes, &e->nodes);
}

static void refer_to_copies(tsr_engine *e)
{
    e->table.direct = e->table.direct ? &e->direct : NULL;
    e->table.messages = e->table.messages ? &e->messages : NULL;
    e->table.memory = e->table.memory ? &e->memory : NULL;
    e->table.collectives = e->table.collectives ? &e->collectives : NULL;
    e->table.nodes = e->table.nodes ? &e->nodes : NULL;
}

static const char *first_missing(const required_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (entries[i].required && !entries[i].present)
            return entries[i].name;
    return NULL;
}

static const char *missing_entry(const tsr_engine *e)
{
    const tsr_comm_table *table = &e->table;
    const required_entry entries[] = {
        {"name", true, table->name},
        {"rank", true, table->rank},
        {"ranks", true, table->ranks},
        {"abort", true, table->abort},
        {"destroy", true, table->destroy},
        {"direct.slot", table->direct, e->direct.slot},
        {"direct.meet", table->direct, e->direct.meet},
        {"direct.arrive", e->direct.await, e->direct.arrive},
        {"direct.await", e->direct.arrive, e->direct.await},
        {"direct or messages", !table->direct, table->messages},
        {"messages", e->memory.shares, table->messages},
        {"messages.exchange", table->messages, e->messages.exchange},
        {"messages.barrier", table->messages, e->messages.barrier},
        {"messages.start", e->messages.finish, e->messages.start},
        {"messages.finish", e->messages.start, e->messages.finish},
        {"memory.alloc", table->memory, e->memory.alloc},
        {"memory.free", table->memory, e->memory.free},
        {"memory.leave", table->memory, e->memory.leave},
        {"nodes.node_of", table->nodes, e->nodes.node_of},
    };
    return first_missing(entries, sizeof entries / sizeof *entries);
}

tsr_status tsr_table_read(const tsr_comm_table *table, tsr_engine *out)
{
    memset(out, 0, sizeof *out);
    TSR_TRY(copy_tables(table, out));
    refer_to_copies(out);
    const char *missing = missing_entry(out);
    if (missing)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": the table of \"%s\" lacks the required entry `%s`",
                              out->table.name ? out->table.name : "", missing);
    return TSR_OK;
}
