/**
 * A device with memory in an address space of its own and a queue of commands for each stream,
 * which one thread for each device carries out. The host's kernels compute.
 */
#ifndef EXAMPLES_BACKEND_QUEUE_H
#define EXAMPLES_BACKEND_QUEUE_H

#include "space.h"

#include <tessera/sys/device.h>

#include <pthread.h>
#include <stdbool.h>

/** How many devices a driver has. */
enum { QUEUE_DEVICES = 2 };

typedef struct queue_machine queue_machine;

/** A command: a function and its arguments, which follow the struct. Without a function the command
 * waits until `awaited` has completed `until` commands. */
typedef struct queue_command {
    struct queue_command *next;
    tsr_status (*run)(queue_machine *machine, void *arguments);
    struct queue_stream *awaited;
    uint64_t until;
} queue_command;

/** Commands in order. A stream stays in the machine's list after it was destroyed, and is used
 * again: its counts go on, so what waits for it still ends. */
typedef struct queue_stream {
    struct queue_stream *next;
    int index; /**< of the device */
    bool live;
    queue_command *first, **last;
    uint64_t enqueued, completed; /**< commands so far */
    tsr_status failed;            /**< of the first command that failed since the last wait */
    char sentence[256];
} queue_stream;

/** The work that a stream had been given at the last record; no stream: there was none. */
typedef struct queue_event {
    queue_stream *stream;
    uint64_t at;
} queue_event;

/** All devices of a driver. The lock is for everything but commands that run. */
struct queue_machine {
    tsr_context *context;
    const tsr_device_table *host; /**< the host's kernels, and their argument */
    void *host_self;
    space memory;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    queue_stream *streams; /**< the first QUEUE_DEVICES made are the default streams */
    queue_stream *standard[QUEUE_DEVICES];
    pthread_t workers[QUEUE_DEVICES];
    int started; /**< workers */
    bool closing;
};

tsr_status queue_machine_create(tsr_context *context, queue_machine **out);

/** Carries out what is enqueued, and frees the machine. */
void queue_machine_destroy(queue_machine *machine);

/** The stream of a handle: NULL and `queue_default` mean the default stream of device `index`. */
queue_stream *queue_find(const queue_machine *machine, int index, tsr_stream handle);
extern char queue_default;

/** A command that is not enqueued yet, with room for arguments; NULL: there is no memory. */
queue_command *queue_prepare(queue_machine *machine, size_t argument_bytes,
                             tsr_status (*run)(queue_machine *machine, void *arguments));
void *queue_arguments(queue_command *command);

void queue_discard(queue_machine *machine, queue_command *command); /**< in place of queue_enqueue() */

/** The error where there is no memory for a command. */
tsr_status queue_say_full(void);

/** Where the bytes of an address are that a caller gave. TSR_ERROR_ARGUMENT: it is no memory of the
 * devices. */
tsr_status queue_enter(const queue_machine *machine, const void *given, void **out);

/** Gives a command to a stream. */
void queue_enqueue(queue_machine *machine, queue_stream *stream, queue_command *command);

tsr_status queue_stream_open(queue_machine *machine, int index, queue_stream **out);
void queue_stream_close(queue_machine *machine, queue_stream *stream);

/** Waits until a stream, or with NULL every stream, has done what it has been given; returns the
 * failure of a command of that stream. */
tsr_status queue_wait(queue_machine *machine, queue_stream *stream);

tsr_status queue_event_create(queue_machine *machine, void **out);
void queue_event_destroy(queue_machine *machine, void *event);
void queue_record(queue_machine *machine, queue_event *event, queue_stream *stream);
tsr_status queue_await(queue_machine *machine, const queue_event *event, queue_stream *stream);

/** The table's product (product.c). */
tsr_status queue_gemm(void *self, int index, const tsr_gemm *gemm, tsr_stream stream);

#endif
