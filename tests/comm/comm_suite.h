/** Support of the conformance tests of communicators: the engines under test, and checks that ranks
 * can make. */
#ifndef TESTS_COMM_SUITE_H
#define TESTS_COMM_SUITE_H

#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/** Bytes of a sentence that is kept, with the NUL. */
#define SUITE_SENTENCE 1024

/** An engine under test; `run` runs a program on n ranks, as tsr_threads_run() does. */
typedef struct comm_engine {
    const char *name;
    tsr_status (*run)(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);
    bool direct;  /**< tsr_comm_exchange() also compares the calls of the ranks */
    bool watches; /**< peers get an error that names a rank that returns, aborts or is late, or a message of another
                     length */
    bool apart;   /**< ranks are processes: they share no variables, and a message of another length is an error of its
                     receiver */
    int (*rank)(void); /**< with `apart`: returns the rank of this process, and silences all but the first; else NULL */
} comm_engine;

/** The engines that the program knows; the last row has no name. */
extern const comm_engine suite_engines[];

/** The engine that the program's argument names, as "threads". */
extern const comm_engine *suite_engine;

/** Call in main() before the tests: sets suite_engine by the arguments, silences all processes but
 * one, and starts a watchdog that ends a program that hangs. */
void suite_start(int count, char **arguments);

/** Skips the running test if the engine does not watch its ranks. */
#define NEEDS_WATCHING()                                                                                               \
    do {                                                                                                               \
        if (!suite_engine->watches)                                                                                    \
            suite_skip("ranks over this engine do not see what becomes of their peers");                               \
    } while (0)

/** Skips the running test if ranks are processes. */
#define NEEDS_ONE_PROCESS()                                                                                            \
    do {                                                                                                               \
        if (suite_engine->apart)                                                                                       \
            suite_skip("ranks over this engine are processes");                                                        \
    } while (0)

void suite_skip(const char *reason);

/** Runs `body` on `nranks` ranks of the engine and fails the running test with the sentence of the
 * rank that failed. */
void suite_run(int nranks, tsr_rank_main *body, void *arg);
void suite_run_with(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** Ends the rank's program, with the place and the condition as its sentence, unless `condition`
 * holds. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s:%d: not true: %s", __FILE__, __LINE__, #condition);          \
    } while (0)

/** Ends the rank's program unless `call` returns `wanted` with a sentence that holds `part`. */
#define CHECK_ERROR(call, wanted, part) TSR_TRY(suite_check_error((call), (wanted), (part), __FILE__, __LINE__))

tsr_status suite_check_error(tsr_status status, tsr_status wanted, const char *part, const char *file, int line);

/** Checks that the communicator still moves and reduces; collective. */
tsr_status suite_check_usable(tsr_comm *comm);

/** tsr_comm_exchange() on host memory. */
typedef tsr_status suite_exchange(tsr_comm *comm, const tsr_message *sends, size_t send_count,
                                  const tsr_message *receives, size_t receive_count);

/** Both ways to exchange: in one call, and in two halves. */
#define EXCHANGES 2
extern suite_exchange *const suite_exchanges[EXCHANGES];

/** The conformance suite. Each function runs the tests of one file over suite_engine, and returns
 * the number that failed. */
int suite_along(void);
int suite_collectives(void);
int suite_departure(void);
int suite_disagreement(void);
int suite_halves(void);
int suite_meshes(void);
int suite_rows(void);
int suite_split(void);

/** A part of the suite, by name; the last row of the list has no name. */
typedef struct suite_part {
    const char *name;
    int (*run)(void);
} suite_part;
extern const suite_part suite_parts[];

/** The part with this name; NULL if there is none. */
const suite_part *suite_find_part(const char *name);

/** Runs a part under a watchdog of its own; returns the number of tests that failed. */
int suite_run_part(const suite_part *part);

/** The end of a rank's program: its status and sentence. */
typedef struct suite_ending {
    int status;
    char sentence[SUITE_SENTENCE];
} suite_ending;

/** Keeps a rank's own `status` with its sentence. */
void suite_end(suite_ending *ending, tsr_status status);

/** The status, with rank and sentence, of the lowest rank that failed for a reason of its own, else
 * of the lowest that failed. */
tsr_status suite_conclude(const suite_ending *endings, int ranks);

/** Sleeps. */
void suite_sleep(int milliseconds);

/** Waits until `count` has reached `wanted`. Ranks that are processes do not share it, and sleep
 * for `milliseconds` instead. */
void suite_await(atomic_int *count, int wanted, int milliseconds);

#endif
