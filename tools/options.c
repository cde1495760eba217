#include "cli/guess.h"
#include "cli/help.h"
#include "cli/spelling.h"
#include "command.h"
#include "place/held_log.h"

#include <tessera/run.h>
#include <tessera/status.h>

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* argp's keys lie beyond every character, so that an option without a letter has no short form. */
#define KEY(option) (0x100 + (int)(option))

static const struct {
    const char *name, *value, *help;
    const char *otherwise; /* its default; NULL: none, or one that each command has of its own */
    char letter;           /* the short form; 0: none */
} rows[OPT_COUNT] = {
    [OPT_MESH] = {"mesh", "MESH",
                  "the grid of ranks: 2x4 or dp=2,tp=4, then optionally @8 (first rank) or @[3,1,0,2] (ranks)"},
    [OPT_TO_MESH] = {"to-mesh", "MESH", "the grid of ranks that it moves to", "that of --mesh"},
    [OPT_SHAPE] = {"shape", "SHAPE", "the global shape: 31x3, or scalar"},
    [OPT_PLACEMENTS] = {"placements", "PLACEMENTS",
                        "one placement for each mesh dim: R, P, P(max), S(0), S(1;balanced), .."},
    [OPT_FROM] = {"from", "PLACEMENTS", "the placements that the tensor has: one for each mesh dim, as R, P, S(0)"},
    [OPT_TO] = {"to", "PLACEMENTS", "the placements that it shall have"},
    [OPT_DTYPE] = {"dtype", "DTYPE", "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool c64 c128",
                   "f32"},
    [OPT_INPUT] = {"input", "X.npy", "the global tensor"},
    [OPT_INPUT_SHARDS] = {"input-shards", "DIR", "the folder in which rank-N.npy is rank N's local tensor"},
    [OPT_INPUTS] = {"inputs", "DIR",
                    "the folder in which NAME.npy is the whole tensor of each input, parameter and state"},
    [OPT_OUTPUT] = {"output", "PATH",
                    "where the result goes: a folder, made if need be, for rank-N.npy, each rank's local tensor"},
    [OPT_TOKENS] = {"tokens", "N", "rows of the activations"},
    [OPT_HIDDEN] = {"hidden", "N", "features that go in and come out"},
    [OPT_INTERMEDIATE] = {"intermediate", "N", "features between the two layers"},
    [OPT_WEIGHTS] = {"weights", "DTYPE", "what weights are kept in: f16 or bf16 beside f32", "that of --dtype"},
    [OPT_HEADS] = {"heads", "N", "heads of queries"},
    [OPT_KV_HEADS] = {"kv-heads", "N", "heads of keys and values"},
    [OPT_LAYERS] = {"layers", "N", "blocks of a whole model"},
    [OPT_BEGIN] = {"begin", "BYTES", "the first size of a sweep: 64, 4K, 16M, 1G, 1T", .letter = 'b'},
    [OPT_END] = {"end", "BYTES", "the last size", "that of --begin", 'e'},
    [OPT_FACTOR] = {"factor", "F", "from each size to the next", "2", 'f'},
    [OPT_ITERATIONS] = {"iterations", "N", "how often to measure", "11", 'n'},
    [OPT_WARM_UP] = {"warm-up", "N", "how often to run before", "2", 'w'},
    [OPT_CALLS] = {"calls", "N", "how many calls a time is the mean of", "as many as take long enough to be timed"},
    [OPT_NEW_RESULT] = {"new-result", NULL,
                        "each call makes a new result, as tsr_redistribute() does, and frees the one before"},
    [OPT_CHECK] = {"check", "0|1", "1: compare results with what they must be, after timing; 0: do not", "1", 'c'},
    [OPT_RANKS] = {"ranks", "N", "how many ranks there are"},
    [OPT_PROFILE] = {"profile", "FILE", "what links cost, as bench calibrate writes it",
                     "the profile in TSR_COST, else a built-in one"},
    [OPT_MODE] = {"mode", "MODE", "direct (read the peers' memory) or message (pack, send, unpack)", "direct"},
    [OPT_OBJECTIVE] = {"objective", "WHAT", "what is made least: bytes or time", "bytes"},
    [OPT_MAX_WORKSPACE] = {"max-workspace", "BYTES", "the most workspace that the move may take on any rank",
                           "no bound"},
    [OPT_RANKS_PER_NODE] = {"ranks-per-node", "N", "ranks 0 to N-1 share a node, the next N the next",
                            "all ranks share one"},
    [OPT_NODES] = {"nodes", "LIST",
                   "nodes of any sizes, in place of --ranks-per-node: how many ranks each has, 7,8, or the node of "
                   "every rank, [0,1,0,1]"},
    [OPT_RANK] = {"rank", "N", "whose plan; nothing is computed for other ranks", "all ranks"},
    [OPT_RELABEL] = {"relabel", NULL, "choose the order of the destination's ranks that keeps most bytes in place"},
    [OPT_SAVE] = {"save", "FILE", "write the plan, for any rank to load"},
    [OPT_SVG] = {"svg", "FILE", "draw a picture of what is said"},
    [OPT_SWEEP] = {"sweep", NULL,
                   "a line for the mesh and for each that halving its longest even dim leaves, down to 16 ranks"},
    [OPT_ENGINE] = {"engine", "ENGINE", "what ranks are: threads, mpi (processes) or nccl (GPUs)",
                    "threads; mpi where mpirun started several processes"},
    [OPT_DEVICE] = {"device", "DEVICE", "where tensors lie: host, cuda, or the path of a shared object with devices",
                    "host"},
    [OPT_LOSS] = {"loss", "SHARE", "how much slower is refused: 0.1 is a tenth more time", "0.1"},
    [OPT_LINKS] = {"links", "TEXT",
                   "what links cost: 'inside=2e-6,450e9 between=1e-5,50e9', seconds and bytes a second",
                   "those of --profile"},
    [OPT_VALIDATE] = {"validate", NULL, "measure links and moves here, and say how far the model is off"},
    [OPT_QUICK] = {"quick", NULL, "small sizes: seconds instead of minutes"},
    [OPT_KERNEL] = {"kernel", "KERNEL", "what is measured: copy, reduce or reduce-to-all", "copy,reduce"},
    [OPT_OPERAND] = {"operand", "SHAPE:DTYPE:PLACEMENTS",
                     "an operand, in order: 4x8:f32:S(0),R; none for an optional one that is left out"},
    [OPT_ATTRIBUTE] = {"attribute", "NAME=VALUE", "an attribute; lists are 2,0,1, and shapes 4x6", "as the row says"},
    [OPT_RESULT] = {"result", "PLACEMENTS", "what the first result shall be", "what the rule gives"},
    [OPT_POLICY] = {"policy", "POLICY",
                    "what may be done about operands that do not fit: forbid, partials, warn or allow", "forbid"},
    [OPT_GRADIENT] = {"gradient", "DY.npy", "the whole gradient of a result"},
    [OPT_RUN_BYTES] = {"run-bytes", "BYTES", "how many bytes lie together: 4K", "1K,4K,16K,64K,1M, and all of them"},
    [OPT_TABLE] = {"table", "T.npy", "the whole table"},
    [OPT_IDS] = {"ids", "DIR", "the folder in which rank-N.npy has the ids of rank N: any number of i64 or i32"},
    [OPT_ROWS] = {"rows", "DIR", "the folder in which rank-N.npy has the rows of the ids of rank N"},
    [OPT_OP] = {"op", "OP",
                "what rows do to those of the table: assign, add, mean or max; bench rows also: gather and experts"},
    [OPT_BATCH] = {"batch", "N", "how many ids a rank brings in a call"},
    [OPT_SKEW] = {"skew", "SKEW", "which rows are named: uniform, or zipf, where a few rows are named often",
                  "uniform"},
    [OPT_DUPLICATES] = {"duplicates", "PERCENT", "how many of a hundred ids of a rank repeat another one of the call",
                        "0"},
    [OPT_JSON] = {"json", NULL, "print JSON"},
    [OPT_CSV] = {"csv", NULL, "print comma-separated values"},
    [OPT_HELP] = {"help", NULL, "print this help", .letter = 'h'},
};

static bool taken(const tool_command *command, int option)
{
    return option == OPT_HELP || (command->takes & UINT64_C(1) << option) != 0;
}

static int key_of(int option)
{
    return rows[option].letter != 0 ? rows[option].letter : KEY(option);
}

/* The option with this key, if the command takes it; else OPT_COUNT. */
static int option_of(const tool_command *command, int key)
{
    int option = 0;
    while (option < OPT_COUNT && (key_of(option) != key || !taken(command, option)))
        option++;
    return option;
}

/* The last sentence of complain() in this process. */
static char sentence[2048];

const char *complaint(void)
{
    return sentence;
}

static void write_sentence(char *to, size_t room, const char *format, va_list arguments)
{
    vsnprintf(to, room, format, arguments);
    for (char *c = to; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
}

static void print_sentence(int rank, const char *text)
{
    /* Keeps the order of the lines where standard output and standard error go to one place. */
    fflush(stdout);
    if (rank > 0)
        fprintf(stderr, "tessera: rank %d: %s\n", rank, text);
    else
        fprintf(stderr, "tessera: %s\n", text);
}

void remark(const char *format, ...)
{
    char text[sizeof sentence];
    va_list arguments;
    va_start(arguments, format);
    write_sentence(text, sizeof text, format, arguments);
    va_end(arguments);
    print_sentence(tsr_launch_get().rank, text);
}

int complain(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_sentence(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    /* All ranks of a launcher have the same options, so rank 0 alone complains of them. */
    const int rank = tsr_launch_get().rank;
    if (status == EXIT_USAGE && rank > 0)
        return status;
    held_log_drop();
    print_sentence(rank, sentence);
    return status;
}

int complain_status(int status)
{
    return complain(status, "%s", tsr_status_message());
}

static int complain_about_letter(const tool_command *command, const char *word)
{
    const int option = option_of(command, word[1]);
    if (option == OPT_COUNT)
        return complain(EXIT_USAGE, "unknown option '%s'; most options are long, try 'tessera %s --help'", word,
                        command->name);
    return complain(EXIT_USAGE, "option '%s' needs a value: -%c %s", word, word[1], rows[option].value);
}

/* Complains of an option that the command does not take: `word`, whose name has `length` characters
 * behind "--". */
static int complain_about_name(const tool_command *command, const char *word, size_t length)
{
    char name[64], text[GUESS_TEXT];
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : (int)sizeof name - 1, word + 2);
    guess g = {.word = name};
    for (int i = 0; i < OPT_COUNT; i++)
        if (taken(command, i))
            guess_try(&g, rows[i].name);
    return complain(EXIT_USAGE, "unknown option '%s'%s; try 'tessera %s --help'", word, guess_say(&g, "--", text),
                    command->name);
}

/* Complains of a word that getopt() refused, and returns EXIT_USAGE; EXIT_DONE if nothing is wrong
 * with it. */
static int complain_about_word(const tool_command *command, const char *word)
{
    if (word[0] != '-' || word[1] == '\0')
        return EXIT_DONE;
    if (word[1] != '-')
        return complain_about_letter(command, word);
    const size_t length = strcspn(word + 2, "=");
    int matches = 0, found = OPT_COUNT;
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!taken(command, i) || strncmp(rows[i].name, word + 2, length) != 0)
            continue;
        found = i;
        matches++;
        if (rows[i].name[length] == '\0') {
            matches = 1;
            break;
        }
    }
    if (matches == 0)
        return complain_about_name(command, word, length);
    if (matches > 1)
        return complain(EXIT_USAGE, "option '%s' may mean several; try 'tessera %s --help'", word, command->name);
    if (rows[found].value)
        return complain(EXIT_USAGE, "option '--%s' needs a value: --%s %s", rows[found].name, rows[found].name,
                        rows[found].value);
    if (word[2 + length] == '=')
        return complain(EXIT_USAGE, "option '--%s' takes no value", rows[found].name);
    return EXIT_DONE;
}

typedef struct reading {
    const tool_command *command;
    tool_arguments *out;
    int operands; /* operands read so far */
    int status;
} reading;

/* Looks at two words, since getopt() may or may not have stepped past the word that it refused. */
static int complain_about_option(const tool_command *command, const struct argp_state *state)
{
    for (int i = state->next - 1; i <= state->next && i < state->argc; i++) {
        const int status = i > 0 ? complain_about_word(command, state->argv[i]) : EXIT_DONE;
        if (status != EXIT_DONE)
            return status;
    }
    return complain(EXIT_USAGE, "options that do not parse; try 'tessera %s --help'", command->name);
}

static error_t take_operand(reading *r, const char *word)
{
    if (r->operands == r->command->operand_count + r->command->optional_operands) {
        r->status = complain(EXIT_USAGE, "unexpected argument '%s'; try 'tessera %s --help'", word, r->command->name);
        return EINVAL;
    }
    r->out->operand[r->operands++] = word;
    r->out->operand_count = r->operands;
    return 0;
}

/* Rewrites the value of an option into our spelling. */
static const char *spell_value(const tool_command *command, tool_option option, char *value)
{
    const char *const kind = rows[option].value;
    if (option == OPT_SHAPE)
        return spell_shape(value, (command->repeats & TAKES(SHAPE)) != 0);
    if (strcmp(kind, "MESH") == 0)
        spell_mesh(value);
    if (strcmp(kind, "PLACEMENTS") == 0)
        spell_placements(value);
    if (strcmp(kind, "DTYPE") == 0)
        spell_dtypes(value);
    return value;
}

static error_t take_value(reading *r, tool_option option, char *text)
{
    tool_arguments *const out = r->out;
    const char *const value = text ? spell_value(r->command, option, text) : "";
    const bool repeats = (r->command->repeats & UINT64_C(1) << option) != 0 || !rows[option].value;
    if (out->value[option] && !repeats) {
        r->status = complain(EXIT_USAGE, "--%s is given twice, as '%s' and as '%s'; %s takes one", rows[option].name,
                             out->value[option], value, r->command->name);
        return EINVAL;
    }
    if (out->given_count == MAX_GIVEN) {
        r->status = complain(EXIT_USAGE, "more than %d options are given", MAX_GIVEN);
        return EINVAL;
    }
    out->value[option] = value;
    out->given[out->given_count].option = option;
    out->given[out->given_count++].value = value;
    return 0;
}

static error_t take_option(int key, char *value, struct argp_state *state)
{
    reading *const r = state->input;
    if (key == ARGP_KEY_ARG)
        return take_operand(r, value);
    if (key == ARGP_KEY_ERROR && r->status == EXIT_DONE)
        r->status = complain_about_option(r->command, state);
    const int option = option_of(r->command, key);
    return option == OPT_COUNT ? ARGP_ERR_UNKNOWN : take_value(r, (tool_option)option, value);
}

static const char *help_of(const tool_command *command, int option)
{
    return option == OPT_OUTPUT && command->output ? command->output : rows[option].help;
}

static void list_options(const tool_command *command, struct argp_option list[OPT_COUNT + 1])
{
    int used = 0;
    for (int i = 0; i < OPT_COUNT; i++)
        if (taken(command, i))
            list[used++] = (struct argp_option){.name = rows[i].name,
                                                .key = key_of(i),
                                                .arg = rows[i].value,
                                                .doc = help_of(command, i),
                                                .group = i + 1};
    list[used] = (struct argp_option){0};
}

static int require_options(const tool_command *command, const tool_arguments *given)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if ((command->requires_all & UINT64_C(1) << i) != 0 && !given->value[i])
            return complain(EXIT_USAGE, "%s needs --%s %s; try 'tessera %s --help'", command->name, rows[i].name,
                            rows[i].value, command->name);
    return EXIT_DONE;
}

static int require_all(const reading *r)
{
    if (r->operands < r->command->operand_count)
        return complain(EXIT_USAGE, "%s needs %s; try 'tessera %s --help'", r->command->name, r->command->operands,
                        r->command->name);
    return require_options(r->command, r->out);
}

int options_read(const tool_command *command, int argc, char **argv, tool_arguments *out, bool *help)
{
    struct argp_option list[OPT_COUNT + 1];
    list_options(command, list);
    const struct argp argp = {.options = list, .parser = take_option};
    *out = (tool_arguments){{NULL}};
    reading r = {.command = command, .out = out};
    const error_t error = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &r);
    if (r.status != EXIT_DONE)
        return r.status;
    if (error != 0)
        return complain(EXIT_REFUSED, "reading the options: %s", strerror(error));
    *help = out->value[OPT_HELP] != NULL;
    return *help ? EXIT_DONE : require_all(&r);
}

/* The default of an option; NULL: it has none. */
static const char *default_of(const tool_command *command, int option)
{
    for (int i = 0; i < MAX_DEFAULTS && command->defaults[i].text; i++)
        if ((int)command->defaults[i].option == option)
            return command->defaults[i].text[0] != '\0' ? command->defaults[i].text : NULL;
    return (command->requires_all & UINT64_C(1) << option) == 0 ? rows[option].otherwise : NULL;
}

static void help_row(const tool_command *command, int option)
{
    char text[512];
    const char *const otherwise = default_of(command, option);
    snprintf(text, sizeof text, otherwise ? "%s (default: %s)" : "%s", help_of(command, option), otherwise);
    help_option(rows[option].letter, rows[option].name, rows[option].value, text);
}

/* argp's own help is not used: it aborts, or ends early, where memory is short. */
void options_help(const tool_command *command)
{
    say("Usage: tessera %s [OPTION...]%s%s\n", command->name, command->operands ? " " : "",
        command->operands ? command->operands : "");
    help_words(command->details, 0, 0);
    say_text("\n");
    for (int i = 0; i < OPT_COUNT; i++)
        if (taken(command, i))
            help_row(command, i);
    say("\nExamples:\n%s", command->examples);
}
