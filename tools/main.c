/* tessera: the library's tool. Each subcommand has a folder; this file finds the subcommand. */
#include "cli/guess.h"
#include "cli/report.h"
#include "command.h"
#include "place/engines.h"
#include "place/held_log.h"

#include <tessera/run.h>
#include <tessera/version.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const tool_command *const commands[] = {
    &info_command,
    &layout_command,
    &convert_command,
    &plan_command,
    &redistribute_command,
    &rows_gather_command,
    &rows_update_command,
#ifdef TESSERA_TOOL_BLAS
    &ops_command,
    &program_command,
#endif
    &bench_redistribute_command,
#ifdef TESSERA_TOOL_BLAS
    &bench_linear_command,
    &bench_product_command,
    &bench_ops_command,
    &bench_program_command,
#endif
    &bench_dispatch_command,
    &bench_calibrate_command,
    &bench_plan_command,
    &bench_compare_command,
    &bench_simulate_command,
    &bench_suite_command,
    &bench_kernels_command,
    &bench_rows_command,
    &bench_checkpoint_command,
    &bench_dlpack_command,
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

/* The number of words of `name` if argv[0], argv[1], .. begin with them; else 0. */
static int name_words(const char *name, int argc, char **argv)
{
    int words = 0;
    for (const char *at = name; *at != '\0'; words++) {
        const size_t length = strcspn(at, " ");
        if (words >= argc || strlen(argv[words]) != length || memcmp(argv[words], at, length) != 0)
            return 0;
        at += length + (at[length] == ' ');
    }
    return words;
}

static void list_commands(const char *prefix)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strncmp(commands[i]->name, prefix, strlen(prefix)) == 0)
            say("  tessera %-20s %s\n", commands[i]->name, commands[i]->summary);
}

static int print_help(const char *prefix)
{
    say("Usage: tessera %sCOMMAND [OPTION...]\nSharded tensors on device meshes.\n\n", prefix);
    list_commands(prefix);
    say("\n'tessera help COMMAND', or COMMAND --help or -h, explains a command, with examples. Results go to standard "
        "output, everything else to standard "
        "error.\n"
        "Exit status: 0 done, 1 understood but refused or failed, 2 options or text that don't parse.\n");
    return EXIT_DONE;
}

static bool is_word(const char *word, const char *name)
{
    return word && strcmp(word, name) == 0;
}

static bool asks_for_help(const char *word)
{
    return is_word(word, "--help") || is_word(word, "-h");
}

/* Sorts the engines given: `*processes` if one of them is mpi, or none is given; `*others` if one
 * is not mpi. */
static void sort_engines(const tool_arguments *given, bool *processes, bool *others)
{
    static const char name[] = "mpi";
    *processes = !given->value[OPT_ENGINE];
    *others = false;
    for (int i = 0; i < given->given_count; i++) {
        if (given->given[i].option != OPT_ENGINE)
            continue;
        for (const char *at = given->given[i].value;; at += strcspn(at, ",") + 1) {
            const size_t length = strcspn(at, ",");
            const bool is_mpi = length == strlen(name) && strncmp(at, name, length) == 0;
            *processes = *processes || is_mpi;
            *others = *others || !is_mpi;
            if (at[length] == '\0')
                break;
        }
    }
}

/* Under a launcher: a command that does not use mpi runs in the process of rank 0 alone. */
static int run_launched(const tool_command *command, const tool_arguments *given)
{
    bool processes = false, others = false;
    /* without --validate it only computes */
    const bool may_run = (command->takes & TAKES(VALIDATE)) == 0 || given->value[OPT_VALIDATE];
    if ((command->takes & TAKES(ENGINE)) != 0 && may_run)
        sort_engines(given, &processes, &others);
    if (processes && others)
        return complain(
            EXIT_USAGE,
            "--engine: under a launcher mpi runs on all processes, and other engines in one of them; run them apart");
    return processes || tsr_launch_get().rank == 0 ? command->run(given) : EXIT_DONE;
}

/* The command whose name argv[0], argv[1], .. begin with, and the words of the name; NULL: none. */
static const tool_command *find_command(int argc, char **argv, int *words)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        *words = name_words(commands[i]->name, argc, argv);
        if (*words > 0)
            return commands[i];
    }
    return NULL;
}

/* First words that several commands share, each with a blank behind it. */
static const char *const families[] = {"bench ", "rows "};

#define FAMILY_COUNT (sizeof families / sizeof *families)

/* The family whose word this is; NULL: none. */
static const char *find_family(const char *word)
{
    for (size_t i = 0; word && i < FAMILY_COUNT; i++)
        if (strlen(word) + 1 == strlen(families[i]) && strncmp(word, families[i], strlen(word)) == 0)
            return families[i];
    return NULL;
}

/* The name of a command behind the word of its family; NULL for a command of no family, or of
 * another one than `family`. */
static const char *name_within(const tool_command *command, const char *family)
{
    return strncmp(command->name, family, strlen(family)) == 0 ? command->name + strlen(family) : NULL;
}

static void guess_within(guess *g, const char *family)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (name_within(commands[i], family))
            guess_try(g, name_within(commands[i], family));
}

/* Complains of `word`, which names no command of the family; NULL: there is no word. */
static int complain_within(const char *family, const char *word)
{
    guess g = {.word = word};
    char text[GUESS_TEXT];
    const int length = (int)strlen(family) - 1;
    if (!word)
        return complain(EXIT_USAGE, "%.*s needs to be told which; try 'tessera %.*s --help'", length, family, length,
                        family);
    guess_within(&g, family);
    return complain(EXIT_USAGE, "there is no %s '%s'%s; try 'tessera %.*s --help'",
                    family == families[0] ? "benchmark" : "command of rows", word, guess_say(&g, "", text), length,
                    family);
}

/* Offers the words of families, and the commands that belong to none. */
static void guess_commands(guess *g)
{
    guess_try(g, "bench");
    guess_try(g, "rows");
    guess_try(g, "help");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!strchr(commands[i]->name, ' '))
            guess_try(g, commands[i]->name);
}

/* Complains of words that name no command. */
static int complain_about_command(const char *word, const char *next)
{
    guess g = {.word = word}, benchmark = {.word = word};
    char text[GUESS_TEXT];
    if (find_family(word))
        return complain_within(find_family(word), next);
    guess_commands(&g);
    guess_within(&benchmark, families[0]);
    return complain(EXIT_USAGE, "there is no command '%s'%s; try 'tessera --help'", word,
                    g.name ? guess_say(&g, "", text) : guess_say(&benchmark, "bench ", text));
}

/* `tessera help WORDS`. */
static int explain(int argc, char **argv)
{
    int words;
    const tool_command *const command = find_command(argc, argv, &words);
    if (argc == 0 || asks_for_help(argv[0]) || (argc == 1 && is_word(argv[0], "help")))
        return print_help("");
    if (!command)
        return argc == 1 && find_family(argv[0]) ? print_help(find_family(argv[0]))
                                                 : complain_about_command(argv[0], argv[1]);
    if (words < argc)
        return complain(EXIT_USAGE, "unexpected argument '%s'; try 'tessera help %s'", argv[words], command->name);
    options_help(command);
    return EXIT_DONE;
}

/* A command line that begins with no command. */
static int run_without_command(int argc, char **argv)
{
    if (argc < 2)
        return complain(EXIT_USAGE, "no command is given; try 'tessera --help'");
    if (is_word(argv[1], "help"))
        return explain(argc - 2, argv + 2);
    if (asks_for_help(argv[1]))
        return print_help("");
    if (find_family(argv[1]) && asks_for_help(argv[2]))
        return print_help(find_family(argv[1]));
    if (is_word(argv[1], "--version")) {
        say("tessera %s\n", tsr_version());
        return EXIT_DONE;
    }
    return complain_about_command(argv[1], argv[2]);
}

static int run_command(int argc, char **argv)
{
    int words;
    const tool_command *const command = find_command(argc - 1, argv + 1, &words);
    if (!command)
        return tsr_launch_get().rank > 0 ? EXIT_DONE : run_without_command(argc, argv);
    tool_arguments given;
    bool help;
    const int status = options_read(command, argc - words, argv + words, &given, &help);
    if (status != EXIT_DONE)
        return status;
    if (!help)
        return tsr_launch_get().ranks > 1 ? run_launched(command, &given) : command->run(&given);
    if (tsr_launch_get().rank == 0)
        options_help(command);
    return EXIT_DONE;
}

/* Opens /dev/null, for reading, in place of each closed standard stream, so that no file of the
 * command gets its descriptor. */
static void take_closed_streams(void)
{
    int file;
    do
        file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0)
        close(file);
}

int main(int argc, char **argv)
{
    take_closed_streams();
    /* Writing beyond the file size limit then fails with EFBIG, and the command cleans up. */
    signal(SIGXFSZ, SIG_IGN);
    json_begin();
    held_log_begin();
    int status = argc > 0 ? run_command(argc, argv) : EXIT_USAGE;
    if (status == EXIT_DONE)
        status = finish_stdout();
    engines_leave();
    return status;
}
