#include "moved.h"

#include <stdlib.h>

void moved_start(moved *m, uint64_t seed, bool strided)
{
    oracle_random random = {.state = seed * 977 + (uint64_t)m->rank};
    oracle_shard src, dst;
    m->in_src = oracle_mesh_position(&m->from->mesh, m->rank) >= 0;
    m->in_dst = oracle_mesh_position(&m->to->mesh, m->rank) >= 0;
    oracle_shard_create(m->from, m->rank, &src);
    oracle_shard_create(m->to, m->rank, &dst);
    buffer_create(&m->src, m->from->dtype, src.ndim, src.shape, strided ? &random : NULL);
    buffer_create(&m->dst, m->from->dtype, dst.ndim, dst.shape, strided ? &random : NULL);
    m->given = calloc((size_t)src.count + 1, oracle_bytes(m->from->dtype));
    m->wanted = calloc((size_t)dst.count + 1, oracle_bytes(m->from->dtype));
    oracle_shard_destroy(&src);
    oracle_shard_destroy(&dst);
}

void moved_finish(moved *m)
{
    buffer_destroy(&m->src);
    buffer_destroy(&m->dst);
    free(m->given);
    free(m->wanted);
}

void moved_set(moved *m, uint64_t seed)
{
    oracle_fill(m->move, seed, false, m->rank, m->given);
    oracle_fill(m->move, seed, true, m->rank, m->wanted);
    if (m->in_src)
        buffer_put(&m->src, m->given);
}

const char *moved_wrong(const moved *m, const local_buffer *dst, char *text, size_t capacity)
{
    return m->in_dst && !buffer_holds(dst, m->wanted, text, capacity) ? text : NULL;
}

const char *moved_source_wrong(const moved *m, char *text, size_t capacity)
{
    return m->in_src && !buffer_holds(&m->src, m->given, text, capacity) ? text : NULL;
}
