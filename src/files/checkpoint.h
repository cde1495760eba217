/** A checkpoint that is being saved. */
#ifndef TSR_FILES_CHECKPOINT_H
#define TSR_FILES_CHECKPOINT_H

#include "files/checkpoint_boxes.h"
#include "files/header_text.h"

#include <tessera/checkpoint.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/** Digits of the number by which a save's files differ from those of others, and the NUL. */
#define TSR_CHECKPOINT_STAMP_BYTES 17

#define TSR_CHECKPOINT_INDEX  "model.safetensors.index.json"
#define TSR_CHECKPOINT_SINGLE "model.safetensors"

/** Bytes that follow each other in a snapshot, and lie at equal distances in a file. */
typedef struct tsr_checkpoint_run {
    int64_t at;     /**< of the first byte, from the tensor's first on */
    size_t bytes;   /**< of one piece */
    int64_t stride; /**< from a piece to the next one */
    size_t repeat;  /**< number of pieces */
} tsr_checkpoint_run;

/** This rank's bytes of a tensor, in memory. */
typedef struct tsr_checkpoint_snapshot {
    tsr_context *context; /**< whose memory `data` is */
    char *data;           /**< NULL: there is no snapshot */
    size_t used;
    tsr_checkpoint_run *runs;
    size_t count, capacity;
} tsr_checkpoint_snapshot;

/** A tensor to save. */
typedef struct tsr_checkpoint_item {
    tsr_safetensors_tensor tensor; /**< its dtype is settled */
    tsr_stored_shape shape;
    bool moves; /**< it is written in the layout of `placements`, not in x's */
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_dtensor *moved; /**< in that layout, owned; NULL: it is not there now */
    int64_t place;      /**< of the tensor's first byte in its file */
    tsr_checkpoint_snapshot snapshot;
} tsr_checkpoint_item;

/** A file with some of the items. */
typedef struct tsr_checkpoint_file {
    size_t first, count; /**< of its items */
    tsr_header_text header;
    char *path;    /**< final */
    char *partial; /**< path until the file is whole */
    bool made;     /**< by this rank, which completes it */
} tsr_checkpoint_file;

struct tsr_checkpoint_saving {
    const char *call;
    tsr_comm *comm;
    char *folder; /**< of the checkpoint */
    char *inside; /**< folder of the files: `folder`, or for dcp the one that gets its name at the end */
    char stamp[TSR_CHECKPOINT_STAMP_BYTES];
    bool dcp;
    bool apart; /**< a thread writes copies, while the caller changes the dtensors */
    int64_t shard_bytes;
    size_t text_count;
    tsr_safetensors_text *texts; /**< metadata; borrowed, but for `digits` */
    char (*digits)[24];          /**< of numbers */
    size_t item_count;
    tsr_checkpoint_item *items; /**< in the order of the files */
    size_t file_count;
    tsr_checkpoint_file *files;
    char *index; /**< text of the index on rank 0; NULL elsewhere and for dcp */
    size_t index_bytes;
    bool running; /**< the thread is to be joined */
    pthread_t thread;
    atomic_bool idle;    /**< the thread has written, or failed to */
    tsr_status written;  /**< what writing returned */
    char sentence[1024]; /**< of a failure of writing */
};

/** The dtensor that is written. */
static inline const tsr_dtensor *tsr_checkpoint_source_of(const tsr_checkpoint_item *item)
{
    return item->moved ? item->moved : item->tensor.x;
}

#endif
