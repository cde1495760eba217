#include "shards/shards.h"

#include <tessera/status.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static int open_shard(const char *directory, int64_t rank, tsr_dtype dtype, tsr_npy **out)
{
    char *path;
    if (asprintf(&path, "%s/rank-%lld.npy", directory, (long long)rank) < 0)
        return complain(EXIT_REFUSED, "there is no memory for the names of the files");
    const tsr_status status = tsr_npy_open(path, dtype, out);
    free(path);
    return status == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

static int check_alike(const char *directory, const shards *s)
{
    const tsr_npy_header *const first = tsr_npy_get_header(s->files[0]);
    const tsr_npy_header *const last = tsr_npy_get_header(s->files[s->count - 1]);
    if (first->dtype != last->dtype)
        return complain(EXIT_REFUSED, "%s: rank %lld's file is %s, but rank %lld's is %s", directory,
                        (long long)s->ranks[s->count - 1], tsr_dtype_name(last->dtype), (long long)s->ranks[0],
                        tsr_dtype_name(first->dtype));
    if (first->ndim != last->ndim)
        return complain(EXIT_REFUSED, "%s: rank %lld's file has %d dims, but rank %lld's has %d", directory,
                        (long long)s->ranks[s->count - 1], last->ndim, (long long)s->ranks[0], first->ndim);
    return EXIT_DONE;
}

int shards_open(const char *directory, const tsr_mesh *mesh, tsr_dtype dtype, shards *out)
{
    const size_t count = (size_t)tsr_mesh_count(mesh);
    *out = (shards){.files = calloc(count, sizeof(tsr_npy *)), .ranks = calloc(count, sizeof *out->ranks)};
    if (!out->files || !out->ranks)
        return complain(EXIT_REFUSED, "there is no memory for %zu files", count);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    int status;
    do {
        int64_t *const rank = &out->ranks[out->count];
        if (tsr_mesh_rank_at(mesh, coordinate, rank) != TSR_OK)
            return complain_status(EXIT_REFUSED);
        status = open_shard(directory, *rank, dtype, &out->files[out->count]);
        if (status != EXIT_DONE)
            return status;
        out->count++;
        status = check_alike(directory, out);
    } while (status == EXIT_DONE && next_coordinate(mesh, coordinate));
    out->dtype = tsr_npy_get_header(out->files[0])->dtype;
    return status;
}

tsr_npy *shards_find(const shards *s, int64_t rank)
{
    for (int64_t i = 0; i < s->count; i++)
        if (s->ranks[i] == rank)
            return s->files[i];
    return NULL;
}

/* Sums the sizes along `dim` over the coordinates that are 0 in every mesh dim which does not cut
 * `dim`. */
static int add_sizes(const shards *s, const tsr_mesh *mesh, const tsr_placement *placements, int dim, int64_t *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0}, sum = 0, index = 0;
    do {
        bool counts = true;
        for (int d = 0; d < tsr_mesh_ndim(mesh); d++)
            counts = counts && (coordinate[d] == 0 || (placements[d].kind == TSR_SHARD && placements[d].dim == dim));
        if (counts && __builtin_add_overflow(sum, tsr_npy_get_header(s->files[index])->shape[dim], &sum))
            return complain(EXIT_REFUSED, "the shards' sizes along dim %d add up to more than 2^63-1", dim);
        index++;
    } while (next_coordinate(mesh, coordinate));
    *out = sum;
    return EXIT_DONE;
}

int shards_global_shape(const shards *s, const tsr_mesh *mesh, const char *placements, tensor_shape *out)
{
    const size_t room = strlen(placements) + 1;
    int64_t *const numbers = calloc(room, sizeof *numbers);
    if (!numbers)
        return complain(EXIT_REFUSED, "there is no memory for %zu characters of placements", room);
    /* A mesh dim without a placement counts as Replicate here; tsr_layout_parse() refuses it
     * later. */
    tsr_placement parsed[TSR_MAX_DIMS] = {{0}};
    int count;
    tensor_shape shape = {.ndim = tsr_npy_get_header(s->files[0])->ndim};
    int status = tsr_placements_parse(placements, parsed, TSR_MAX_DIMS, &count, numbers, room, NULL) == TSR_OK
                     ? EXIT_DONE
                     : complain_status(EXIT_USAGE);
    for (int d = 0; d < shape.ndim && status == EXIT_DONE; d++)
        status = add_sizes(s, mesh, parsed, d, &shape.size[d]);
    free(numbers);
    if (status == EXIT_DONE)
        *out = shape;
    return status;
}

void shards_close(shards *s)
{
    for (int64_t i = 0; i < s->count; i++)
        tsr_npy_destroy(s->files[i]);
    free(s->files);
    free(s->ranks);
    *s = (shards){0};
}

/* True if `name` is the name of the file of a rank, which `*rank` gets. */
static bool is_shard(const char *name, int64_t *rank)
{
    char own[64];
    const char *at = name + strlen("rank-");
    if (strncmp(name, "rank-", strlen("rank-")) != 0 || !parse_number(&at, rank))
        return false;
    snprintf(own, sizeof own, "rank-%lld.npy", (long long)*rank);
    return strcmp(name, own) == 0;
}

static bool is_inside(const tsr_mesh *mesh, int64_t rank)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside = 0;
    return tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside) == TSR_OK && inside;
}

int shards_refuse_others(const char *directory, const tsr_mesh *mesh)
{
    DIR *const folder = opendir(directory);
    int status = EXIT_DONE;
    if (!folder)
        return EXIT_DONE;
    for (const struct dirent *entry = readdir(folder); entry && status == EXIT_DONE; entry = readdir(folder)) {
        int64_t rank;
        if (is_shard(entry->d_name, &rank) && !is_inside(mesh, rank))
            status =
                complain(EXIT_REFUSED,
                         "--output %s holds %s, which would stand beside the new files: rank %lld is not in the mesh",
                         directory, entry->d_name, (long long)rank);
    }
    closedir(folder);
    return status;
}
