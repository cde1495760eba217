#include "options.h"

#include "cli/guess.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most threads that one process starts. */
#define MOST_RANKS 4096

const char *const llama_usage =
    "Usage: tessera-llama (MODEL_DIR | --random CONFIG.json) [OPTION...]\n"
    "Runs a Hugging Face checkpoint of a Llama, Mistral, Qwen3, Mixtral or Qwen3-MoE,\n"
    "tensor-parallel on rank threads.\n"
    "\n"
    "      --ranks N          ranks to share the model (default 1)\n"
    "      --engine NAME      what ranks are: threads (default), or mpi: processes\n"
    "                         that mpirun started (the default under it)\n"
    "      --prompt TEXT      text to go on from, for models whose tokens are bytes (vocab_size 256)\n"
    "      --prompt-ids IDS   the same as token numbers: 1,2,3\n"
    "                         (default: the model's begin token, else a line feed or token 0)\n"
    "      --tokens N         tokens to generate at most (default 128, or as many as positions are left)\n"
    "      --temperature T    draw from softmax(logits / T) instead of taking the most likely token\n"
    "      --seed N           seed of drawing, and of random weights (default 0)\n"
    "      --random CONFIG    random weights for that config.json, the same on any number of ranks\n"
    "      --weights KIND     keep matrices as the checkpoint has them (checkpoint, the default),\n"
    "                         in f32 or bf16, or in 8 bits with a scale for each 32 (q8); sums are\n"
    "                         in f32 always\n"
    "      --tp-plan FILE     cut weights by the rules in FILE, JSON, as transformers' tp_plan; without\n"
    "                         it by those in config.json, where it has some, else as README.md says\n"
    "      --logits FILE.npy  write the prompt's logits: f32 [prompt length, vocab_size]\n"
    "      --json             print one JSON object instead of the text\n"
    "  -h, --help\n"
    "      --version\n"
    "\n"
    "The text goes to standard output as it is generated, the report to standard error.\n"
    "Exit status: 0 done, 1 understood but refused or failed, 2 options that don't parse.\n"
    "\n"
    "Examples:\n"
    "  tessera-llama examples/llama/shakespeare --ranks 2 --prompt 'ROMEO:'\n"
    "  mpirun -n 2 tessera-llama examples/llama/shakespeare --engine mpi --prompt 'ROMEO:'\n"
    "  tessera-llama --random config.json --seed 1 --ranks 4 --prompt-ids 1,2,3 --tokens 64 --json\n";

enum {
    OPTION_RANKS = 256,
    OPTION_ENGINE,
    OPTION_PROMPT,
    OPTION_IDS,
    OPTION_TOKENS,
    OPTION_TEMPERATURE,
    OPTION_SEED,
    OPTION_RANDOM,
    OPTION_WEIGHTS,
    OPTION_LOGITS,
    OPTION_PLAN,
    OPTION_JSON,
    OPTION_VERSION,
    OPTION_HELP = 'h'
};

static const struct option KNOWN[] = {
    {"ranks", required_argument, NULL, OPTION_RANKS},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"prompt", required_argument, NULL, OPTION_PROMPT},
    {"prompt-ids", required_argument, NULL, OPTION_IDS},
    {"tokens", required_argument, NULL, OPTION_TOKENS},
    {"temperature", required_argument, NULL, OPTION_TEMPERATURE},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"random", required_argument, NULL, OPTION_RANDOM},
    {"weights", required_argument, NULL, OPTION_WEIGHTS},
    {"logits", required_argument, NULL, OPTION_LOGITS},
    {"tp-plan", required_argument, NULL, OPTION_PLAN},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};

/* Parses a number of digits only: no sign, no space. */
static tsr_status parse_number(const char *option, const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value > most)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %s: a whole number from 0 to %llu is expected", option, text,
                              (unsigned long long)most);
    *out = value;
    return TSR_OK;
}

static tsr_status parse_ranks(const char *text, int *out)
{
    uint64_t ranks = 0;
    TSR_TRY(parse_number("--ranks", text, MOST_RANKS, &ranks));
    if (ranks == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--ranks 0: at least 1 is needed");
    *out = (int)ranks;
    return TSR_OK;
}

static tsr_status parse_temperature(const char *text, double *out)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--temperature %s: a number of at least 0 is expected", text);
    *out = value;
    return TSR_OK;
}

static tsr_status parse_weights(const char *text, llama_options *out)
{
    static const struct {
        const char *name;
        tsr_dtype dtype;
        bool is_q8;
    } kinds[] = {{"checkpoint", TSR_DTYPE_NONE, false},
                 {"f32", TSR_F32, false},
                 {"bf16", TSR_BF16, false},
                 {"q8", TSR_DTYPE_NONE, true}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, text) == 0) {
            out->weights = kinds[i].dtype;
            out->is_q8 = kinds[i].is_q8;
            return TSR_OK;
        }
    return tsr_status_set(TSR_ERROR_ARGUMENT, "--weights %s: weights are kept as checkpoint, f32, bf16 or q8", text);
}

static tsr_status take_option(int option, const char *value, llama_options *out)
{
    uint64_t tokens = 0;
    switch (option) {
    case OPTION_RANKS:
        out->ranks_given = true;
        return parse_ranks(value, &out->ranks);
    case OPTION_TOKENS:
        TSR_TRY(parse_number("--tokens", value, INT32_MAX, &tokens));
        out->tokens = (int64_t)tokens;
        return TSR_OK;
    case OPTION_SEED:
        return parse_number("--seed", value, UINT64_MAX, &out->seed);
    case OPTION_TEMPERATURE:
        return parse_temperature(value, &out->temperature);
    case OPTION_ENGINE:
        out->engine = value;
        break;
    case OPTION_PROMPT:
        out->prompt = value;
        break;
    case OPTION_IDS:
        free(out->prompt_ids.ids);
        out->prompt_ids = (llama_tokens){0};
        return llama_tokens_parse(value, &out->prompt_ids);
    case OPTION_RANDOM:
        out->random = value;
        break;
    case OPTION_WEIGHTS:
        return parse_weights(value, out);
    case OPTION_LOGITS:
        out->logits = value;
        break;
    case OPTION_PLAN:
        out->tp_plan = value;
        break;
    case OPTION_JSON:
        out->json = true;
        break;
    case OPTION_HELP:
        out->help = true;
        break;
    default:
        out->version = true;
    }
    return TSR_OK;
}

static tsr_status check(const llama_options *options, int operands)
{
    if (operands > 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "one MODEL_DIR is expected, not %d", operands);
    if ((operands == 1) == (options->random != NULL))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "either MODEL_DIR or --random CONFIG.json is expected; try --help");
    if (options->prompt && options->prompt_ids.ids)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--prompt and --prompt-ids exclude each other");
    if (options->tp_plan && options->is_q8)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "--tp-plan and --weights q8 exclude each other: a plan does not say how scales are cut");
    if (options->engine && strcmp(options->engine, "threads") != 0 && strcmp(options->engine, "mpi") != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--engine %s: the engines are threads and mpi", options->engine);
    return TSR_OK;
}

/* Refuses a word that getopt() did. */
static tsr_status refuse_option(const char *word)
{
    char name[32], text[GUESS_TEXT];
    const char *begin = word + strspn(word, "-");
    const size_t length = strcspn(begin, "=");
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : (int)sizeof name - 1, begin);
    guess g = {.word = name};
    for (size_t i = 0; KNOWN[i].name; i++)
        guess_try(&g, KNOWN[i].name);
    if (g.name && strcmp(g.name, name) == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: --%s takes no value; try --help", word, g.name);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s is not an option%s; try --help", word, guess_say(&g, "--", text));
}

static tsr_status parse(int argc, char **argv, llama_options *out)
{
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", KNOWN, NULL)) != -1;) {
        if (option == ':')
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s needs a value", argv[optind - 1]);
        if (option == '?')
            return refuse_option(argv[optind - 1]);
        TSR_TRY(take_option(option, optarg, out));
    }
    out->directory = argv[optind];
    return out->help || out->version ? TSR_OK : check(out, argc - optind);
}

tsr_status llama_options_parse(int argc, char **argv, llama_options *out)
{
    llama_options options = {.ranks = 1, .tokens = -1};
    const tsr_status status = parse(argc, argv, &options);
    if (status == TSR_OK)
        *out = options;
    else
        llama_options_finish(&options);
    return status;
}

void llama_options_finish(llama_options *options)
{
    free(options->prompt_ids.ids);
    *options = (llama_options){0};
}
