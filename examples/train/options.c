#include "options.h"

#include "cli/guess.h"
#include "settings.h"
#include "text.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const train_usage =
    "Usage: tessera-train (MODEL_DIR | CONFIG.json) --data FILE [OPTION...]\n"
    "Trains a Llama, Mistral, Qwen3, Mixtral or Qwen3-MoE, from a Hugging Face checkpoint or from scratch,\n"
    "on a mesh of ranks.\n"
    "\n"
    "      --data FILE        what to learn: bytes of a text where vocab_size is 256, else token numbers,\n"
    "                         a .npy of i32 or i64\n"
    "      --mesh MESH        ranks: dp (data parallel), fsdp (data parallel with weights cut), tp (tensor\n"
    "                         parallel) and cp (windows cut), as in dp=2,tp=2 (default dp=1)\n"
    "      --engine NAME      what ranks are: threads (default), or mpi: processes that mpirun started\n"
    "                         (the default under it)\n"
    "      --steps N          train until step N - 1; steps count from 0 (default 100)\n"
    "      --batch B          windows of a step, of all ranks together (default 16)\n"
    "      --length L         tokens of a window (default 256)\n"
    "      --micro-batches N  cut a step into N parts, which run one after the other; gradients are summed over\n"
    "                         ranks once (default 1)\n"
    "      --order NAME       windows one behind the other (sequential, the default), or drawn (random)\n"
    "      --optimizer NAME   adamw (default), sgd, lion, adafactor or muon\n"
    "      --lr X             learning rate (default 0.001)\n"
    "      --warm-up N        steps in which it grows from lr / N to lr (default 0)\n"
    "      --schedule NAME    after the warm-up: constant (default), or until --steps down to --final-lr,\n"
    "                         along a line (linear) or half a cosine (cosine)\n"
    "      --final-lr X       the learning rate that a schedule ends with (default 0)\n"
    "      --betas A,B        of adamw (default 0.9,0.999) and lion (default 0.9,0.99)\n"
    "      --epsilon X        of adamw (default 1e-8), adafactor and muon\n"
    "      --weight-decay X   default: that of PyTorch's optimizer, for adamw 0.01\n"
    "      --clip X           the largest norm of all gradients together (default: any)\n"
    "      --dropout P        the part of elements that is 0 in training, of embeddings and of what each\n"
    "                         attention and MLP adds (default 0)\n"
    "      --dtype NAME       f32 (default), f64, or bf16: layers see matrices rounded to it,\n"
    "                         which are kept in f32\n"
    "      --loss-scale X     multiply the loss by X, a power of two, which halves where gradients are not finite,\n"
    "                         and skip such a step (default 65536 with bf16; 0: neither, the default without)\n"
    "      --shard NAME       cut matrices along fsdp by whole rows (rows, the default), or anywhere (elements)\n"
    "      --shard-states     cut gradients and the optimizer's states along dp, too (ZeRO-1 and 2)\n"
    "      --seed N           of first weights, drawn windows, dropout and samples (default 0)\n"
    "      --save DIR         write the training's state to DIR at the end\n"
    "      --every K          after every K steps save, and validate\n"
    "      --background       go on training while a state is written, from a copy in memory\n"
    "      --resume DIR       go on from such a state, on any mesh, with the settings that it was saved\n"
    "                         with, as far as none are given\n"
    "      --validation FILE  what to measure the loss on as well, of the kind of --data\n"
    "      --plot FILE.svg    draw the losses\n"
    "      --memory           tell what memory a rank takes, and end; the mesh may have any number of ranks\n"
    "      --sample K         after every K steps let the model write, on the mesh on which it is trained\n"
    "      --prompt TEXT      what samples go on from, for models whose tokens are bytes (vocab_size 256)\n"
    "      --prompt-ids IDS   the same as token numbers: 1,2,3\n"
    "                         (default: the model's begin token, else a line feed or token 0)\n"
    "      --tokens N         tokens of a sample at most (default 128, or as many as there are positions)\n"
    "      --temperature T    draw them from softmax(logits / T) instead of taking the most likely\n"
    "      --json             a JSON object for each step\n"
    "  -h, --help\n"
    "      --version\n"
    "\n"
    "A step's loss is the mean cross-entropy of its batch before the update. The run is the same on any mesh,\n"
    "but for the order of sums.\n"
    "Exit status: 0 done, 1 understood but refused or failed, 2 options that don't parse.\n"
    "\n"
    "Examples:\n"
    "  tessera-train examples/llama/shakespeare/config.json --data shakespeare.txt --mesh dp=2 --steps 1000\n"
    "  mpirun -n 4 tessera-train llama-3.2-1b --data tokens.npy --mesh fsdp=2,tp=2 --batch 8 --length 1024\n";

enum {
    OPTION_DATA = 256,
    OPTION_MESH,
    OPTION_ENGINE,
    OPTION_STEPS,
    OPTION_BATCH,
    OPTION_LENGTH,
    OPTION_MICRO,
    OPTION_ORDER,
    OPTION_OPTIMIZER,
    OPTION_LR,
    OPTION_WARM_UP,
    OPTION_SCHEDULE,
    OPTION_FINAL_LR,
    OPTION_BETAS,
    OPTION_EPSILON,
    OPTION_DECAY,
    OPTION_CLIP,
    OPTION_DROPOUT,
    OPTION_DTYPE,
    OPTION_SCALE,
    OPTION_SHARD,
    OPTION_SHARD_STATES,
    OPTION_SEED,
    OPTION_SAVE,
    OPTION_EVERY,
    OPTION_BACKGROUND,
    OPTION_RESUME,
    OPTION_VALIDATION,
    OPTION_PLOT,
    OPTION_MEMORY,
    OPTION_SAMPLE,
    OPTION_PROMPT,
    OPTION_IDS,
    OPTION_TOKENS,
    OPTION_TEMPERATURE,
    OPTION_JSON,
    OPTION_VERSION,
    OPTION_HELP = 'h'
};

static const struct option KNOWN[] = {
    {"data", required_argument, NULL, OPTION_DATA},
    {"mesh", required_argument, NULL, OPTION_MESH},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"steps", required_argument, NULL, OPTION_STEPS},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"length", required_argument, NULL, OPTION_LENGTH},
    {"micro-batches", required_argument, NULL, OPTION_MICRO},
    {"order", required_argument, NULL, OPTION_ORDER},
    {"optimizer", required_argument, NULL, OPTION_OPTIMIZER},
    {"lr", required_argument, NULL, OPTION_LR},
    {"warm-up", required_argument, NULL, OPTION_WARM_UP},
    {"schedule", required_argument, NULL, OPTION_SCHEDULE},
    {"final-lr", required_argument, NULL, OPTION_FINAL_LR},
    {"betas", required_argument, NULL, OPTION_BETAS},
    {"epsilon", required_argument, NULL, OPTION_EPSILON},
    {"weight-decay", required_argument, NULL, OPTION_DECAY},
    {"clip", required_argument, NULL, OPTION_CLIP},
    {"dropout", required_argument, NULL, OPTION_DROPOUT},
    {"dtype", required_argument, NULL, OPTION_DTYPE},
    {"loss-scale", required_argument, NULL, OPTION_SCALE},
    {"shard", required_argument, NULL, OPTION_SHARD},
    {"shard-states", no_argument, NULL, OPTION_SHARD_STATES},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"save", required_argument, NULL, OPTION_SAVE},
    {"every", required_argument, NULL, OPTION_EVERY},
    {"background", no_argument, NULL, OPTION_BACKGROUND},
    {"resume", required_argument, NULL, OPTION_RESUME},
    {"validation", required_argument, NULL, OPTION_VALIDATION},
    {"plot", required_argument, NULL, OPTION_PLOT},
    {"memory", no_argument, NULL, OPTION_MEMORY},
    {"sample", required_argument, NULL, OPTION_SAMPLE},
    {"prompt", required_argument, NULL, OPTION_PROMPT},
    {"prompt-ids", required_argument, NULL, OPTION_IDS},
    {"tokens", required_argument, NULL, OPTION_TOKENS},
    {"temperature", required_argument, NULL, OPTION_TEMPERATURE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};

static tsr_status parse_whole(const char *option, const char *text, int64_t least, int64_t *out)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value < least || value > INT32_MAX)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--%s %s: a whole number from %lld to %lld is expected", option, text,
                              (long long)least, (long long)INT32_MAX);
    *out = value;
    return TSR_OK;
}

/* Parses a number of at least 0; `end` gets what follows, or nothing may follow where it is NULL.
 * */
static tsr_status parse_real(const char *option, const char *text, char **end, double *out)
{
    char *own;
    const double value = strtod(text, &own);
    if (own == text || (!end && *own != '\0') || !isfinite(value) || value < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--%s %s: a number of at least 0 is expected", option, text);
    if (end)
        *end = own;
    *out = value;
    return TSR_OK;
}

static tsr_status parse_betas(const char *text, tsr_optimizer_options *out)
{
    char *end = NULL;
    TSR_TRY(parse_real("betas", text, &end, &out->beta1));
    if (*end != ',')
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--betas %s: two numbers are expected, as in 0.9,0.95", text);
    TSR_TRY(parse_real("betas", end + 1, NULL, &out->beta2));
    return out->beta1 < 1 && out->beta2 < 1
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "--betas %s: both numbers are below 1", text);
}

static tsr_status parse_seed(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "--seed %s: a whole number of at least 0 is expected", text);
}

/* A power of two that f32 has, so that scaled numbers have the same bits; or 0. */
static tsr_status parse_scale(const char *text, double *out)
{
    int exponent;
    TSR_TRY(parse_real("loss-scale", text, NULL, out));
    if (*out > 0 && (frexp(*out, &exponent) != 0.5 || exponent < -125 || exponent > 128))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "--loss-scale %s: 0, or a power of two from 2^-126 to 2^127, is "
                              "expected",
                              text);
    return TSR_OK;
}

/* One of two or more words. */
static tsr_status parse_word(const char *option, const char *text, const char *const *words, const char *said, int *out)
{
    for (*out = 0; words[*out]; ++*out)
        if (strcmp(words[*out], text) == 0)
            return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "--%s %s: %s is expected", option, text, said);
}

static tsr_status parse_order(const char *text, train_options *out)
{
    static const char *const orders[] = {"sequential", "random", NULL};
    int which;
    TSR_TRY(parse_word("order", text, orders, "sequential or random", &which));
    out->random = which == 1;
    return TSR_OK;
}

static tsr_status parse_shard(const char *text, train_options *out)
{
    static const char *const kinds[] = {"rows", "elements", NULL};
    int which;
    TSR_TRY(parse_word("shard", text, kinds, "rows or elements", &which));
    out->by_elements = which == 1;
    return TSR_OK;
}

static tsr_status parse_schedule(const char *text, train_options *out)
{
    static const char *const names[] = {"constant", "linear", "cosine", NULL};
    static const tsr_schedule_kind kinds[] = {TSR_SCHEDULE_CONSTANT, TSR_SCHEDULE_LINEAR, TSR_SCHEDULE_COSINE};
    int which;
    TSR_TRY(parse_word("schedule", text, names, "constant, linear or cosine", &which));
    out->schedule = kinds[which];
    return TSR_OK;
}

static tsr_status parse_optimizer(const char *text, train_options *out)
{
    static const char *const names[] = {"adamw", "sgd", "lion", "adafactor", "muon", NULL};
    static const tsr_optimizer_kind kinds[] = {TSR_ADAMW, TSR_SGD, TSR_LION, TSR_ADAFACTOR, TSR_MUON};
    int which;
    TSR_TRY(parse_word("optimizer", text, names, "adamw, sgd, lion, adafactor or muon", &which));
    out->optimizer.kind = kinds[which];
    return TSR_OK;
}

static tsr_status parse_dtype(const char *text, train_options *out)
{
    static const char *const names[] = {"f32", "bf16", "f64", NULL};
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_BF16, TSR_F64};
    int which;
    TSR_TRY(parse_word("dtype", text, names, "f32, bf16 or f64", &which));
    out->dtype = dtypes[which];
    return TSR_OK;
}

static tsr_status take_number(int option, const char *value, train_options *out)
{
    switch (option) {
    case OPTION_STEPS:
        return parse_whole("steps", value, 0, &out->steps);
    case OPTION_BATCH:
        return parse_whole("batch", value, 1, &out->batch);
    case OPTION_LENGTH:
        return parse_whole("length", value, 1, &out->length);
    case OPTION_MICRO:
        return parse_whole("micro-batches", value, 1, &out->micro_batches);
    case OPTION_SCALE:
        return parse_scale(value, &out->loss_scale);
    case OPTION_WARM_UP:
        return parse_whole("warm-up", value, 0, &out->warm_up);
    case OPTION_EVERY:
        return parse_whole("every", value, 1, &out->every);
    case OPTION_SAMPLE:
        return parse_whole("sample", value, 1, &out->sample);
    case OPTION_TOKENS:
        return parse_whole("tokens", value, 1, &out->tokens);
    case OPTION_TEMPERATURE:
        return parse_real("temperature", value, NULL, &out->temperature);
    case OPTION_LR:
        return parse_real("lr", value, NULL, &out->rate);
    case OPTION_FINAL_LR:
        return parse_real("final-lr", value, NULL, &out->final_rate);
    case OPTION_CLIP:
        return parse_real("clip", value, NULL, &out->clip);
    case OPTION_DROPOUT:
        return parse_real("dropout", value, NULL, &out->dropout);
    case OPTION_EPSILON:
        return parse_real("epsilon", value, NULL, &out->optimizer.epsilon);
    case OPTION_DECAY:
        return parse_real("weight-decay", value, NULL, &out->optimizer.weight_decay);
    case OPTION_BETAS:
        return parse_betas(value, &out->optimizer);
    default:
        return parse_seed(value, &out->seed);
    }
}

static tsr_status take_option(int option, const char *value, train_options *out)
{
    switch (option) {
    case OPTION_DATA:
        out->data = value;
        return TSR_OK;
    case OPTION_MESH:
        out->mesh = value;
        return TSR_OK;
    case OPTION_ENGINE:
        out->engine = value;
        return TSR_OK;
    case OPTION_SAVE:
        out->save = value;
        return TSR_OK;
    case OPTION_RESUME:
        out->resume = value;
        return TSR_OK;
    case OPTION_VALIDATION:
        out->validation = value;
        return TSR_OK;
    case OPTION_PLOT:
        out->plot = value;
        return TSR_OK;
    case OPTION_PROMPT:
        out->prompt = value;
        return TSR_OK;
    case OPTION_IDS:
        out->prompt_ids = value;
        return TSR_OK;
    case OPTION_OPTIMIZER:
        return parse_optimizer(value, out);
    case OPTION_ORDER:
        return parse_order(value, out);
    case OPTION_SCHEDULE:
        return parse_schedule(value, out);
    case OPTION_DTYPE:
        return parse_dtype(value, out);
    case OPTION_MEMORY:
        out->memory = true;
        return TSR_OK;
    case OPTION_JSON:
        out->json = true;
        return TSR_OK;
    case OPTION_BACKGROUND:
        out->background = true;
        return TSR_OK;
    case OPTION_SHARD:
        return parse_shard(value, out);
    case OPTION_SHARD_STATES:
        out->shards_states = true;
        return TSR_OK;
    case OPTION_HELP:
        out->help = true;
        return TSR_OK;
    case OPTION_VERSION:
        out->version = true;
        return TSR_OK;
    default:
        return take_number(option, value, out);
    }
}

/* Sets the numbers that neither the command line nor a state has given to the optimizer's
 * defaults. */
static tsr_status complete_optimizer(train_options *options)
{
    static const tsr_optimizer_options all[] = {[TSR_SGD] = TSR_SGD_INIT,
                                                [TSR_ADAMW] = TSR_ADAMW_INIT,
                                                [TSR_LION] = TSR_LION_INIT,
                                                [TSR_ADAFACTOR] = TSR_ADAFACTOR_INIT,
                                                [TSR_MUON] = TSR_MUON_INIT};
    const tsr_optimizer_options own = options->optimizer;
    const tsr_optimizer_kind kind = own.kind;
    if (train_settings_have(options, "betas") && kind != TSR_ADAMW && kind != TSR_LION)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--betas is of adamw and lion, not of %s",
                              train_settings_optimizer(kind));
    if (train_settings_have(options, "epsilon") && (kind == TSR_SGD || kind == TSR_LION))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--epsilon is of adamw, adafactor and muon, not of %s",
                              train_settings_optimizer(kind));
    tsr_optimizer_options *const out = &options->optimizer;
    *out = all[kind];
    out->beta1 = isnan(own.beta1) ? out->beta1 : own.beta1;
    out->beta2 = isnan(own.beta2) ? out->beta2 : own.beta2;
    out->epsilon = isnan(own.epsilon) ? out->epsilon : own.epsilon;
    out->weight_decay = isnan(own.weight_decay) ? out->weight_decay : own.weight_decay;
    return TSR_OK;
}

tsr_status train_options_complete(train_options *options)
{
    TSR_TRY(complete_optimizer(options));
    if (options->micro_batches > options->batch)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--micro-batches %lld: a step has %lld windows (--batch)",
                              (long long)options->micro_batches, (long long)options->batch);
    if (train_settings_have(options, "final-lr") && options->final_rate > 0 &&
        options->schedule == TSR_SCHEDULE_CONSTANT)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--final-lr is what a schedule ends with; give --schedule linear or "
                                                  "cosine");
    return TSR_OK;
}

double train_options_loss_scale(const train_options *options)
{
    const double usual = options->dtype == TSR_BF16 ? 65536 : 0;
    return isnan(options->loss_scale) ? usual : options->loss_scale;
}

static tsr_status check_sample(const train_options *options)
{
    llama_tokens ids;
    const bool tells = options->prompt || options->prompt_ids || options->tokens >= 0 || options->temperature > 0;
    if (tells && !options->sample)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--prompt, --prompt-ids, --tokens and --temperature are of samples; "
                                                  "give --sample K, the steps between them");
    if (options->prompt && options->prompt_ids)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--prompt and --prompt-ids exclude each other");
    if (!options->prompt_ids)
        return TSR_OK;
    TSR_TRY(llama_tokens_parse(options->prompt_ids, &ids));
    free(ids.ids);
    return TSR_OK;
}

static tsr_status check(const train_options *options, int operands)
{
    if (operands != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "one MODEL_DIR or CONFIG.json is expected, not %d; try --help",
                              operands);
    if (!options->data && !options->memory)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--data FILE is expected: what to learn; try --help");
    if (options->clip == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--clip 0: a number above 0 is expected; without the option "
                                                  "gradients are not clipped");
    if (options->dropout >= 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--dropout %g: a number from 0 to below 1 is expected",
                              options->dropout);
    if (options->background && !options->save)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--background is how states are saved; give --save DIR");
    if (options->every && !options->save && !options->validation)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--every is how often to save or validate; give --save DIR or "
                                                  "--validation FILE");
    if (options->engine && strcmp(options->engine, "threads") != 0 && strcmp(options->engine, "mpi") != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--engine %s: the engines are threads and mpi", options->engine);
    return check_sample(options);
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

static tsr_status parse(int argc, char **argv, train_options *out)
{
    opterr = 0;
    int which = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", KNOWN, &which)) != -1;) {
        if (option == ':')
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s needs a value", argv[optind - 1]);
        if (option == '?')
            return refuse_option(argv[optind - 1]);
        TSR_TRY(take_option(option, optarg, out));
        train_settings_mark(out, KNOWN[which].name); /* -h, which is no row, marks what came before */
    }
    out->model = argv[optind];
    if (out->help || out->version)
        return TSR_OK;
    TSR_TRY(check(out, argc - optind));
    return out->resume ? TSR_OK : train_options_complete(out);
}

tsr_status train_options_parse(int argc, char **argv, train_options *out)
{
    train_options options = {
        .mesh = "dp=1",
        .dtype = TSR_F32,
        .optimizer = {.kind = TSR_ADAMW, .beta1 = NAN, .beta2 = NAN, .epsilon = NAN, .weight_decay = NAN},
        .rate = 1e-3,
        .clip = INFINITY,
        .steps = 100,
        .batch = 16,
        .length = 256,
        .micro_batches = 1,
        .loss_scale = NAN,
        .tokens = -1};
    TSR_TRY(parse(argc, argv, &options));
    *out = options;
    return TSR_OK;
}
