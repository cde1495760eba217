/**
 * What a subcommand of `tessera` is: a row of a table, with the options that it takes.
 *
 * All options of all subcommands are rows of one table too (options.c), so that an option means the same everywhere. Every function that
 * may fail returns the tool's exit status, having printed one line on standard error where that is not 0.
 */
#ifndef TESSERA_TOOLS_COMMAND_H
#define TESSERA_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tessera/api.h>

/** Exit statuses; formats of results and options say when. */
enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2 };

typedef enum tool_option {
    OPT_MESH,
    OPT_TO_MESH,
    OPT_SHAPE,
    OPT_PLACEMENTS,
    OPT_FROM,
    OPT_TO,
    OPT_DTYPE,
    OPT_INPUT,
    OPT_INPUT_SHARDS,
    OPT_OUTPUT,
    OPT_TOKENS,
    OPT_HIDDEN,
    OPT_INTERMEDIATE,
    OPT_WEIGHTS,
    OPT_BEGIN,
    OPT_END,
    OPT_FACTOR,
    OPT_ITERATIONS,
    OPT_WARM_UP,
    OPT_CALLS,
    OPT_NEW_RESULT,
    OPT_CHECK,
    OPT_RANKS,
    OPT_PROFILE,
    OPT_MODE,
    OPT_OBJECTIVE,
    OPT_MAX_WORKSPACE,
    OPT_RANKS_PER_NODE,
    OPT_NODES,
    OPT_RANK,
    OPT_RELABEL,
    OPT_SAVE,
    OPT_SVG,
    OPT_SWEEP,
    OPT_ENGINE,
    OPT_DEVICE,
    OPT_LOSS,
    OPT_LINKS,
    OPT_VALIDATE,
    OPT_QUICK,
    OPT_KERNEL,
    OPT_RUN_BYTES,
    OPT_JSON,
    OPT_CSV,
    OPT_HELP,
    OPT_COUNT
} tool_option;

#define TAKES(name) (UINT64_C(1) << OPT_##name)

/** Most words of a command that are no options, and most options of one command line. */
enum { MAX_OPERANDS = 2, MAX_GIVEN = 128 };

/** What was given: the text of each option's value ("" for a flag), NULL for what was not. */
typedef struct tool_arguments {
    const char *value[OPT_COUNT];      /**< of an option that is repeated: the last */
    const char *operand[MAX_OPERANDS]; /**< all that the command takes */
    struct {
        tool_option option;
        const char *value;
    } given[MAX_GIVEN]; /**< all options, in the order in which they stand there */
    int given_count;
} tool_arguments;

typedef struct tool_command {
    const char *name;     /**< "bench linear" */
    const char *summary;  /**< half a line */
    const char *details;  /**< paragraphs for --help */
    const char *examples; /**< lines for --help */
    uint64_t takes;       /**< bit 1 << option; --help is taken by all */
    uint64_t repeats;     /**< likewise, of those that may be given more than once */
    uint64_t requires_all;
    const char *operands; /**< words that it needs besides options, "OLD.json NEW.json"; NULL: none */
    int operand_count;
    const char *output; /**< what its --output is; NULL: the folder of shards */
    int (*run)(const tool_arguments *given);
} tool_command;

extern const tool_command info_command, layout_command, redistribute_command, bench_redistribute_command, bench_linear_command,
    bench_product_command, bench_dispatch_command, bench_calibrate_command, plan_command, bench_plan_command, bench_compare_command,
    bench_simulate_command, bench_suite_command, bench_kernels_command;

/** Reads a subcommand's own arguments, argv[0] being no part of them. `*help` says that --help was among them. */
int options_read(const tool_command *command, int argc, char **argv, tool_arguments *out, bool *help);

/** Prints a subcommand's --help. */
void options_help(const tool_command *command);

/** Prints `tessera: SENTENCE` on standard error, in one line whatever the arguments hold, and returns `status`. */
int complain(int status, const char *format, ...) TSR_PRINTF(2, 3);

/** Tells the user what the tool waits for, as complain() does, and is no failure. Any thread. */
void remark(const char *format, ...) TSR_PRINTF(1, 2);

/** complain() with the library's sentence. */
int complain_status(int status);

/** What was complained of last; "" before that. */
const char *complaint(void);

/** printf() to standard output. What cannot be written, or formatted, is told by finish_stdout(). */
void say(const char *format, ...) TSR_PRINTF(1, 2);

/** The text as it is; NULL stands for a lack of memory, and is told as that. */
void say_text(const char *text);

/** Says that something had no memory which could not tell its caller, so that the answer is not what it should be. */
void say_memory_is_short(void);
bool memory_was_short(void);

/** Writes out what standard output still holds; a failure of any say(), and a lack of memory, shows
 * here. */
int finish_stdout(void);

#endif
