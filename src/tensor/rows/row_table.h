/**
 * What calls by id know of a table: which ranks have parts of a row, and which elements of it.
 *
 * It follows from the layout alone, so a dtensor keeps it from its first call by id on. A table's
 * ranks have three numbers: a *row part*, by the mesh dims that cut dim 0; a *column part*, by
 * those that cut other dims; and a *replica*, by all others. Each is row-major in the order of mesh
 * dims. Ranks of the mesh are counted by their position in the group of its ranks.
 */
#ifndef TSR_TENSOR_ROWS_ROW_TABLE_H
#define TSR_TENSOR_ROWS_ROW_TABLE_H

#include "comm/groups/group.h"
#include "tensor/rows/finder.h"

/** Elements [whole, whole + length) of a row are elements from `local` on of a column part. */
typedef struct tsr_row_segment {
    int64_t whole, local, length;
} tsr_row_segment;

/** The elements of a row that a column part has. */
typedef struct tsr_row_columns {
    int64_t width;       /**< elements in a row of the part */
    size_t first, count; /**< of `segments` */
} tsr_row_columns;

/** The numbers of parts or ranks of one kind, and where they are in the group. */
typedef struct tsr_row_axis {
    int64_t count;
    int *positions; /**< what each number adds to a rank's position */
    int64_t own;    /**< this rank's number */
} tsr_row_axis;

/** A rank's numbers. */
typedef struct tsr_row_numbers {
    int rows, columns, replica;
} tsr_row_numbers;

typedef struct tsr_row_table {
    tsr_layout *layout;     /**< one reference */
    const tsr_group *group; /**< the mesh's ranks, in the order of its coordinates; borrowed from the communicator */
    tsr_row_finder finder;
    int64_t width; /**< elements of a row */
    size_t element_bytes;
    tsr_row_axis rows, columns, replicas;
    tsr_row_numbers *ranks; /**< one for each position in the group */
    tsr_row_columns *parts; /**< one for each column part */
    tsr_row_segment *segments;
    int *turns;         /**< by position in the group: how many of its ranks are lower, whose equal ids act before */
    const char **bases; /**< scratch of a call: where each row part's rows are */
    size_t *strides;    /**< scratch of a call: bytes from row to row there */
} tsr_row_table;

/** Makes the table of a layout without Partial, with a dim; `group` is that of its mesh, which has
 * this rank. The caller destroys it. */
tsr_status tsr_row_table_create(const tsr_layout *layout, const tsr_group *group, tsr_row_table **out);

/** NULL is fine. */
void tsr_row_table_destroy(tsr_row_table *table);

/** The position in the group of the rank with these three numbers. */
static inline int tsr_row_position(const tsr_row_table *table, int64_t rows, int64_t columns, int64_t replica)
{
    return table->rows.positions[rows] + table->columns.positions[columns] + table->replicas.positions[replica];
}

/** The elements that this rank has of a row. */
static inline const tsr_row_columns *tsr_row_own_columns(const tsr_row_table *table)
{
    return &table->parts[table->columns.own];
}

#endif
