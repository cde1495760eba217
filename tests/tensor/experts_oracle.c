#include "experts_oracle.h"

#include <tessera/mesh.h>

static unsigned mix(const experts_round *r, int rank, int64_t token, int64_t slot)
{
    const unsigned seed = (unsigned)(r->round * 977 + rank * 131 + (int)token * 17 + (int)slot * 5 + 3);
    return seed * 2654435761U >> 12;
}

int64_t experts_tokens(const experts_round *r, int rank)
{
    return (r->round * 3 + rank * 5 + 4) % (EXPERTS_TOKENS + 1);
}

int64_t experts_id(const experts_round *r, int rank, int64_t token, int64_t slot)
{
    const unsigned mixed = mix(r, rank, token, slot);
    if (mixed % 7 == 0 || r->site->experts == 0)
        return -1;
    /* The first experts are chosen more often. */
    const int64_t id = (int64_t)(mixed / 7 % (unsigned)r->site->experts);
    return mixed % 3 == 0 ? id / 2 : id;
}

double experts_weight(const experts_round *r, int rank, int64_t token, int64_t slot)
{
    return 1 + mix(r, rank, token, slot + 40) % 2;
}

double experts_x(const experts_round *r, int rank, int64_t token, int64_t column)
{
    return mix(r, rank, token, column + 100) % 4;
}

double experts_factor(int64_t expert, int64_t part)
{
    return (double)(1 + expert % 3 + part);
}

int64_t experts_room(const experts_round *r, int rank)
{
    return r->room < 0 ? EXPERTS_ROWS : r->room + rank % 3;
}

/* The coordinate of a rank along the mesh dims of one role, row-major; `*size` becomes how many
 * there are. */
static int64_t along(const experts_round *r, int rank, char role, int64_t *size)
{
    int64_t coordinate[TSR_MAX_DIMS], at = 0;
    int inside;
    const tsr_mesh *const mesh = tsr_layout_mesh(r->layout);
    *size = 1;
    tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside);
    for (int dim = 0; r->site->roles[dim]; dim++)
        if (r->site->roles[dim] == role) {
            at = at * tsr_mesh_size(mesh, dim) + coordinate[dim];
            *size *= tsr_mesh_size(mesh, dim);
        }
    return at;
}

int64_t experts_parts(const experts_round *r)
{
    int64_t size;
    along(r, 0, 't', &size);
    return size;
}

int64_t experts_part(const experts_round *r, int rank)
{
    int64_t size;
    return along(r, rank, 't', &size);
}

static bool are_alike(const experts_round *r, int a, int b, char role)
{
    int64_t size;
    return along(r, a, role, &size) == along(r, b, role, &size);
}

/* The least room of the ranks with parts of the same experts. */
static int64_t least_room(const experts_round *r, int rank)
{
    int64_t room = EXPERTS_ROWS;
    for (int other = 0; other < r->site->ranks; other++)
        if (are_alike(r, rank, other, 'e') && are_alike(r, rank, other, 'r') && experts_room(r, other) < room)
            room = experts_room(r, other);
    return room;
}

/* Appends the rows of an expert; returns how many it needs. */
static int64_t list_expert(const experts_round *r, int rank, int64_t expert, experts_row *rows, int64_t *count,
                           int64_t *size)
{
    int64_t needed = 0;
    *size = 0;
    for (int from = 0; from < r->site->ranks; from++)
        for (int64_t token = 0; are_alike(r, rank, from, 'r') && token < experts_tokens(r, from); token++)
            for (int64_t slot = 0; slot < r->slots; slot++) {
                if (experts_id(r, from, token, slot) != expert)
                    continue;
                needed++;
                if ((r->capacity > 0 && *size == r->capacity) || *count == least_room(r, rank))
                    continue;
                (*size)++;
                rows[(*count)++] = (experts_row){from, token, slot, expert};
            }
    return needed;
}

int64_t experts_list(const experts_round *r, int rank, experts_row *rows, int64_t *sizes, int64_t *experts,
                     int64_t *needed)
{
    int64_t coordinate[TSR_MAX_DIMS], count = 0;
    tsr_interval owned[EXPERTS_MOST];
    size_t intervals = 0;
    int inside;
    *experts = *needed = 0;
    tsr_mesh_coordinate_of(tsr_layout_mesh(r->layout), rank, coordinate, &inside);
    tsr_layout_intervals(r->layout, coordinate, 0, owned, EXPERTS_MOST, &intervals);
    for (size_t i = 0; i < intervals; i++)
        for (int64_t expert = owned[i].begin; expert < owned[i].end; expert++)
            *needed += list_expert(r, rank, expert, rows, &count, &sizes[(*experts)++]);
    return count;
}

bool experts_keeps(const experts_round *r, int rank, int64_t token, int64_t slot)
{
    experts_row rows[EXPERTS_ROWS];
    int64_t sizes[EXPERTS_MOST], experts, needed;
    for (int owner = 0; owner < r->site->ranks; owner++) {
        const int64_t count = experts_list(r, owner, rows, sizes, &experts, &needed);
        for (int64_t i = 0; i < count; i++)
            if (rows[i].rank == rank && rows[i].token == token && rows[i].slot == slot)
                return true;
    }
    return false;
}
