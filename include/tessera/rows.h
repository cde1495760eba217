/**
 * @file
 * Rows by id: rows of a sharded table that ranks name at run time, such as embeddings of words or
 * of the nodes of a graph. DGL's DistTensor and DistEmbedding, torchrec's sharded tables.
 *
 * @par Tables
 * A table is a dtensor of (rows, ..); an id is the number of a row. Every layout but Partial is
 * fine: rows cut in any split (explicit sizes are a partition book; ranks may own none), columns
 * cut, both, and mesh dims that replicate. A rank's local tensor may have gaps between rows, but
 * each row is contiguous.
 *
 * @par Ids and rows
 * Each rank brings ids of its own: any number (none too), of any owner, in any order, with
 * duplicates. They are a local tensor of (n) i32 or i64 elements, with any stride. The rows of the
 * ids are a local tensor of (n, ..) of the table's dtype: whole rows, also where columns are cut,
 * the i-th of the i-th id. Each row is contiguous; between rows there may be gaps.
 *
 * @par Devices
 * A table is on the host or on any device; tables of a plan are on one. Its rows are there, and ids
 * there or on the host. Tensors elsewhere are refused by name. Calls bring ids on a device to the
 * host, where owners are found; rows stay on the device, and results have the host's bits. On a
 * device with streams a call works on the default one, after what that has been given, and waits
 * for it; order work of other streams before the call by events.
 *
 * @par Order
 * Equal ids act in the order of rank, as the mesh numbers ranks, then position. So results are
 * exact, and the same for every layout, engine and run; replicas hold equal bits.
 *
 * @par Ranks
 * Calls are collective over the ranks of the mesh, and the first one over a mesh object over its
 * communicator (mesh_comm.h has that rule). On ranks outside the mesh they do nothing and return
 * TSR_OK. Calls return when everything is done, on devices too: they wait for peers, and for the
 * numbers of ids. So they are not for graphs.
 *
 * @par Errors
 * Everything is checked before anything is written. If one rank's arguments are wrong, it gets
 * TSR_ERROR_ARGUMENT, its peers TSR_ERROR_PEER with that rank and its sentence, and no rank has
 * written to tables or results; the communicator stays usable. An id out of range is named by rank,
 * position and value. A rank whose table is NULL returns alone. TSR_ERROR_UNSUPPORTED: a Partial
 * table; rows with gaps inside; a dtype without the op; a device that the engine does not move, or
 * that does not reach a peer's. TSR_ERROR_MEMORY: there is no memory for ids, or for what peers
 * send; nothing was written. TSR_ERROR_DEVICE: the device failed, perhaps within an update. Errors
 * that a device keeps of earlier work, such as TSR_ERROR_STATE, come before anything is written.
 */
#ifndef TESSERA_ROWS_H
#define TESSERA_ROWS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an update does with the rows of equal ids. */
typedef enum tsr_rows_op {
    TSR_ROWS_ASSIGN = 0, /**< the table's row becomes the last of the rows; every dtype */
    TSR_ROWS_ADD,  /**< the sum of the rows is added to the table's row; every dtype with a sum */
    TSR_ROWS_MEAN, /**< the mean of the rows is added to the table's row; floats and complex */
    TSR_ROWS_MAX,  /**< the table's row becomes the largest of itself and the rows, element by
                        element; NaN passes on, -0 is below +0; every dtype with an order */
    TSR_ROWS_OP_END
} tsr_rows_op;

/** "assign", "add", "mean" or "max"; "none" for anything else. Static. */
TSR_API const char *tsr_rows_op_name(tsr_rows_op op);

/**
 * Collective: writes the rows of `ids` (n) into `out` (n, ..), in the order of the ids. Moves every
 * bit. Where ranks reach one another's memory, each reads its owners' rows in place; else ids and
 * rows travel as messages, and a rank that brings an id several times is sent its row once.
 *
 * `out` is written on success only, and overlaps neither itself, nor the table, nor `ids`; ids and
 * rows may lie side by side in records. Not thread-safe: a table belongs to its mesh's communicator
 * handle.
 */
TSR_API tsr_status tsr_rows_gather(const tsr_dtensor *table, const tsr_tensor *ids,
                                   const tsr_tensor *out);

/**
 * Collective: changes the table's rows of `ids` (n) by `rows` (n, ..); each rank brings its own.
 * All ranks give the same `op`. Owners apply the rows of all ranks, and so does each replica. By
 * messages, a rank sends one row for each id that it brings several times: the last of an
 * assignment, the largest of a max, the sum of integers. Sums and means of floats take every row.
 *
 * Sums start with the first row and are taken in the order of ranks and positions; a mean divides
 * once by the number of rows; then the table's row is added, and the result is rounded once. f16,
 * bf16 and f8 are summed in f32, other floats in their own dtype; integers wrap. NaNs come out as
 * reductions give them; assign moves every bit. `rows` may be anywhere but in the table.
 */
TSR_API tsr_status tsr_rows_update(tsr_dtensor *table, const tsr_tensor *ids,
                                   const tsr_tensor *rows, tsr_rows_op op);

/** What is kept for repeated calls over several tables. */
typedef struct tsr_rows_plan tsr_rows_plan;

/**
 * Collective: a plan for calls over `count` tables together, which share their exchanges: 1 or
 * more, on one mesh object or equal meshes over one communicator. Shapes, dtypes and placements may
 * differ, and a table may stand several times. The plan is for at most `capacity` ids of a rank and
 * table in a call, not for some ids; capacities may differ between ranks.
 *
 * The plan retains the tables, and owns memory for its own ids; memory for what peers send grows to
 * what the largest call needed, so that later calls allocate nothing. The caller owns `*out`.
 * TSR_ERROR_ARGUMENT: no table, or one that is NULL or on another mesh or device; a negative
 * capacity. TSR_ERROR_UNSUPPORTED: as for the calls. A rank without a first table returns alone.
 */
TSR_API tsr_status tsr_rows_plan_create(size_t count, tsr_dtensor *const *tables, int64_t capacity,
                                        tsr_rows_plan **out);

/** Frees a plan; NULL is fine. Does not communicate. */
TSR_API void tsr_rows_plan_destroy(tsr_rows_plan *plan);

/** Collective: tsr_rows_gather() of all tables of a plan in one exchange: ids[i] and out[i] are
 * those of tables[i], and no out[i] overlaps ids or a table. TSR_ERROR_ARGUMENT: more ids than the
 * plan's capacity. */
TSR_API tsr_status tsr_rows_plan_gather(tsr_rows_plan *plan, const tsr_tensor *ids,
                                        const tsr_tensor *out);

/** Collective: tsr_rows_update() of all tables of a plan in one exchange, with one op. Updates of a
 * table that stands several times act in the order of the plan. No rows[i] are in a table. */
TSR_API tsr_status tsr_rows_plan_update(tsr_rows_plan *plan, const tsr_tensor *ids,
                                        const tsr_tensor *rows, tsr_rows_op op);

/*
 * Questions. Pure: they do not communicate; any thread.
 */

/**
 * The owners of `ids` (n), i32 or i64 on the host, in a layout: ranks[i] is the rank that has row
 * ids[i], as the mesh numbers ranks, and locals[i] the row there (DGL's nid2partid and
 * nid2localnid). Either may be NULL. Of several ranks that have parts or copies of the row, the
 * answer is the one at coordinate 0 of the mesh dims that do not cut rows. Partial tables have
 * owners too. TSR_ERROR_ARGUMENT: an id is out of range, or the layout is of a scalar.
 */
TSR_API tsr_status tsr_rows_owners(const tsr_layout *layout, const tsr_tensor *ids, int64_t *ranks,
                                   int64_t *locals);

/**
 * The ids of the rows that `rank` has, in the order of its local tensor (DGL's partid2nids): from
 * its local row `first` on, at most `capacity` into `ids`, which may be NULL where that is 0.
 * `*count` gets the number of its local rows; a rank outside the mesh has none. TSR_ERROR_ARGUMENT:
 * `first` or `capacity` is negative, or the layout is of a scalar.
 */
TSR_API tsr_status tsr_rows_of(const tsr_layout *layout, int64_t rank, int64_t first,
                               int64_t capacity, int64_t *ids, int64_t *count);

/**
 * Reads a partition book from an array: `parts` (n), i32 or i64 on the host, has the part of each
 * of n things, from 0 to count - 1, as METIS and DGL write it. A table of these things has the rows
 * of part 0 first, then those of part 1, ..; within a part they keep their order.
 *
 * sizes[p], of `count`, becomes the number of rows of part p: the sizes of the table's placement
 * `S(0;sizes=..)`. rows[i] becomes the row of thing i, and things[r] the thing of row r, n numbers
 * each; both may be NULL. TSR_ERROR_ARGUMENT: a part is out of range, which the
 * sentence names with its position.
 */
TSR_API tsr_status tsr_rows_read_book(const tsr_tensor *parts, int64_t count, int64_t *sizes,
                                      int64_t *rows, int64_t *things);

#ifdef __cplusplus
}
#endif

#endif
