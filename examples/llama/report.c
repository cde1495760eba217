#include "report.h"

#include "json.h"
#include "text.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Up to this many ranks get a line each; more are summed up. */
enum { RANKS_SHOWN = 8 };

void llama_print_token(const void *user, int64_t token)
{
    if (llama_is_text(user))
        putchar((int)token);
    else
        printf("%lld ", (long long)token);
    fflush(stdout);
}

static double rate(int64_t count, double seconds)
{
    return count > 0 && seconds > 0 ? (double)count / seconds : 0;
}

/* The number of decoding steps: the first token comes from the prompt's pass. */
static int64_t decoded(const llama_generation *generation)
{
    return generation->count > 0 ? generation->count - 1 : 0;
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Prints the bytes that each rank read, or only their sum if there are many ranks. */
static void report_reading(const int64_t *bytes, int ranks)
{
    int64_t sum = 0, least = bytes[0], most = bytes[0];
    for (int rank = 0; rank < ranks; rank++) {
        if (ranks <= RANKS_SHOWN)
            fprintf(stderr, "rank %d read %lld bytes of the checkpoint\n", rank, (long long)bytes[rank]);
        sum += bytes[rank];
        least = bytes[rank] < least ? bytes[rank] : least;
        most = bytes[rank] > most ? bytes[rank] : most;
    }
    if (ranks > RANKS_SHOWN)
        fprintf(stderr, "the ranks read %lld bytes of the checkpoint, from %lld to %lld each\n", (long long)sum,
                (long long)least, (long long)most);
}

static const char *weights_name(const llama_job *job)
{
    return job->source.is_q8 ? "q8" : tsr_dtype_name(llama_weights_dtype(&job->source));
}

void llama_report(const llama_job *job, const llama_outcome *outcome)
{
    const llama_generation *const generation = &outcome->generation;
    /*
     * Standard output gets a line feed after text only on a terminal. Elsewhere it gets the tokens
     * alone, and the line feed goes to standard error, for a log that takes both streams. Under a
     * launcher the terminal does not count: every rank has one, the streams are forwarded
     * separately, and the report might come first.
     */
    const bool seen = !job->processes && isatty(STDOUT_FILENO);
    if (generation->count > 0)
        fputc('\n', seen || !llama_is_text(job->config) ? stdout : stderr);
    fflush(stdout);
    fprintf(stderr, "%d rank%s, weights in %s, loaded in %.3f s\n", job->ranks, plural(job->ranks), weights_name(job),
            outcome->load_seconds);
    if (job->source.is_q8)
        fprintf(stderr, "weights of 8 bits differ from f32 by %.2g of their root mean square\n", outcome->weight_error);
    if (job->source.checkpoint)
        report_reading(outcome->bytes_read, job->ranks);
    fprintf(stderr, "prompt: %lld token%s in %.4f s, %.0f tokens/s\n", (long long)job->request.prompt_count,
            plural(job->request.prompt_count), generation->prompt_seconds,
            rate(job->request.prompt_count, generation->prompt_seconds));
    fprintf(stderr, "decode: %lld token%s in %.4f s, %.0f tokens/s, %lld bytes received per token by all ranks\n",
            (long long)decoded(generation), plural(decoded(generation)), generation->decode_seconds,
            rate(decoded(generation), generation->decode_seconds), (long long)outcome->bytes_received_per_token);
}

/* Returns NULL where memory is short; Jansson passes NULL values on. */
static json_t *make_json(const llama_job *job, const llama_outcome *outcome)
{
    const llama_generation *const generation = &outcome->generation;
    return json_pack(
        "{s:i, s:s, s:s, s:f, s:o, s:o, s:o, s:{s:f, s:f, s:f}, s:{s:f, s:f}, s:I, s:o}", "ranks", job->ranks, "engine",
        job->processes ? "mpi" : "threads", "weights", weights_name(job), "weight_error", outcome->weight_error,
        "prompt_ids", llama_json_ids(job->request.prompt, job->request.prompt_count), "ids",
        llama_json_ids(generation->ids, generation->count), "text",
        llama_json_text(job->config, generation->ids, generation->count), "seconds", "load", outcome->load_seconds,
        "prompt", generation->prompt_seconds, "decode", generation->decode_seconds, "tokens_per_second", "prompt",
        rate(job->request.prompt_count, generation->prompt_seconds), "decode",
        rate(decoded(generation), generation->decode_seconds), "bytes_received_per_token",
        (json_int_t)outcome->bytes_received_per_token, "bytes_read", llama_json_ids(outcome->bytes_read, job->ranks));
}

tsr_status llama_report_json(const llama_job *job, const llama_outcome *outcome)
{
    char *const text = llama_json_take_text(make_json(job, outcome), 9);
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the JSON of %lld tokens",
                              (long long)outcome->generation.count);
    puts(text);
    free(text);
    return TSR_OK;
}
