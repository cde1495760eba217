#include "base/memory/pool.h"
#include "base/settings.h"

static tsr_pool *pool_of(const tsr_context *context)
{
    return tsr_context_settings(context)->pool;
}

void tsr_keeper_add(tsr_context *context, tsr_keeper *keeper)
{
    if (pool_of(context))
        tsr_pool_add_keeper(pool_of(context), keeper);
}

void tsr_keeper_remove(tsr_context *context, tsr_keeper *keeper)
{
    if (pool_of(context))
        tsr_pool_remove_keeper(pool_of(context), keeper);
}

int tsr_keeper_keep(tsr_context *context, size_t bytes)
{
    return pool_of(context) && tsr_pool_enter(pool_of(context), bytes);
}

void tsr_keeper_take(tsr_context *context, size_t bytes)
{
    if (!pool_of(context))
        return;
    if (bytes > 0)
        tsr_pool_leave(pool_of(context), bytes);
    tsr_pool_count(pool_of(context), bytes > 0);
}

void tsr_keeper_drop(tsr_context *context, size_t bytes)
{
    if (pool_of(context))
        tsr_pool_leave(pool_of(context), bytes);
}
