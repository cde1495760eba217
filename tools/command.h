/**
 * A subcommand of `tessera`: a row of a table, with the options that it takes.
 *
 * The options of all subcommands are rows of one table (options.c), so that an option has one
 * meaning. A function that can fail returns the tool's exit status, and has printed one line on
 * standard error where the status is not 0.
 */
#ifndef TESSERA_TOOLS_COMMAND_H
#define TESSERA_TOOLS_COMMAND_H

#include <tessera/api.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Exit statuses: 0 done, 1 understood but refused or failed, 2 options or text that do not
 * parse. */
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
    OPT_INPUTS,
    OPT_OUTPUT,
    OPT_TOKENS,
    OPT_HIDDEN,
    OPT_INTERMEDIATE,
    OPT_WEIGHTS,
    OPT_HEADS,
    OPT_KV_HEADS,
    OPT_LAYERS,
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
    OPT_OPERAND,
    OPT_ATTRIBUTE,
    OPT_RESULT,
    OPT_POLICY,
    OPT_GRADIENT,
    OPT_RUN_BYTES,
    OPT_TABLE,
    OPT_IDS,
    OPT_ROWS,
    OPT_OP,
    OPT_BATCH,
    OPT_SKEW,
    OPT_DUPLICATES,
    OPT_JSON,
    OPT_CSV,
    OPT_HELP,
    OPT_COUNT
} tool_option;

#define TAKES(name) (UINT64_C(1) << OPT_##name)

/** Upper bounds: the operands (words that are not options) of a command, and the options on one
 * command line. */
enum { MAX_OPERANDS = 64, MAX_GIVEN = 128 };

/** The arguments of one command line. */
typedef struct tool_arguments {
    /** text of each option's value: "" for a flag, NULL if not given, the last if repeated */
    const char *value[OPT_COUNT];
    const char *operand[MAX_OPERANDS]; /**< operand_count of them, none of them NULL */
    int operand_count;
    struct {
        tool_option option;
        const char *value;
    } given[MAX_GIVEN]; /**< every option given, in the order of the command line */
    int given_count;
} tool_arguments;

/** What a command does where an option is not given: "2", "as many as cores". */
typedef struct tool_default {
    tool_option option;
    const char *text; /**< "": the command has no default of it */
} tool_default;

/** Upper bound of the defaults that a command has of its own. */
enum { MAX_DEFAULTS = 10 };

typedef struct tool_command {
    const char *name;      /**< "bench linear" */
    const char *summary;   /**< half a line, for the list of commands */
    const char *details;   /**< paragraphs for --help */
    const char *examples;  /**< lines for --help */
    uint64_t takes;        /**< a bit 1 << option for each option taken; --help is always taken */
    uint64_t repeats;      /**< a bit 1 << option for each option that may be given more than once */
    uint64_t requires_all; /**< a bit 1 << option for each option that must be given */
    const char *operands;  /**< names of the operands, "OLD.json NEW.json"; NULL: the command takes none */
    int operand_count;
    int optional_operands; /**< how many more it takes */
    /** its defaults where they are not those of all commands; behind the last one, no text */
    tool_default defaults[MAX_DEFAULTS];
    const char *output; /**< help text of --output; NULL: the usual text, of a folder of shards */
    int (*run)(const tool_arguments *given);
} tool_command;

extern const tool_command info_command, layout_command, convert_command, redistribute_command,
    bench_redistribute_command, bench_linear_command, bench_product_command, bench_dispatch_command,
    bench_calibrate_command, plan_command, bench_plan_command, bench_compare_command, bench_simulate_command,
    bench_suite_command, bench_kernels_command, ops_command, bench_ops_command, program_command, bench_program_command,
    rows_gather_command, rows_update_command, bench_rows_command, bench_checkpoint_command, bench_dlpack_command;

/** Reads a subcommand's arguments, argv[1] to argv[argc - 1]. `*help`: --help is among them.
 * Returns EXIT_USAGE for arguments that do not parse. The texts in `out` are those of `argv`,
 * rewritten into our spelling (cli/spelling.h). */
int options_read(const tool_command *command, int argc, char **argv, tool_arguments *out, bool *help);

/** Prints a subcommand's --help. */
void options_help(const tool_command *command);

/** Prints `tessera: SENTENCE` on standard error as one line, with `?` for control characters, and
 * returns `status`. */
int complain(int status, const char *format, ...) TSR_PRINTF(2, 3);

/** Prints a line as complain() does, to tell what the tool waits for; it is not a failure. Any
 * thread. */
void remark(const char *format, ...) TSR_PRINTF(1, 2);

/** complain() with the sentence of the library's last error. */
int complain_status(int status);

/** The last sentence of complain(); "" before the first. */
const char *complaint(void);

/** printf() to standard output. finish_stdout() reports a failure. */
void say(const char *format, ...) TSR_PRINTF(1, 2);

/** Prints the text as it is. NULL stands for a text that there was no memory for; finish_stdout()
 * reports it. */
void say_text(const char *text);

/** Records a lack of memory in code that cannot report it to its caller; finish_stdout() reports
 * it, since the answer may be wrong. */
void say_memory_is_short(void);

/** True after say_memory_is_short(), unless a failure of say() or say_text() was recorded first. */
bool memory_was_short(void);

/** Flushes standard output. Complains and returns EXIT_REFUSED if any say() failed or memory was
 * short. */
int finish_stdout(void);

#endif
