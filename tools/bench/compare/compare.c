/* bench compare: compares two files of benchmarks line by line, against the spread of their
 * times. */
#include "bench/compare/lines.h"
#include "cli/real.h"
#include "cli/report.h"

#include <math.h>
#include <stdlib.h>

#define LOSS 0.1

/* A line of the old file and the line of the new file with the same identity. */
typedef struct comparison {
    const bench_line *old, *new;
    double ratio; /* new median time over old */
    double noise; /* uncertainty of the ratio: the sum of spread_noise() of both */
    bool slower;
} comparison;

typedef struct job {
    double loss;
    bench_lines old, new;
    comparison *rows;
    size_t count, slower;
    size_t certain; /* those of the `slower` whose ratio exceeds 1 by more than the noise */
    size_t wrong;   /* number of new lines with wrong results, compared or not */
} job;

/* Selects lines of a file. */
typedef bool is_meant(const bench_line *line);

/* An old time of 0 is as fast as a new one of 0, and infinitely faster than any other. */
static double ratio_of(double old, double new)
{
    if (old > 0)
        return new / old;
    return new > 0 ? INFINITY : 1;
}

static comparison compare_lines(const bench_line *old, const bench_line *new, double loss)
{
    const double ratio = ratio_of(old->seconds.median, new->seconds.median);
    return (comparison){old, new, ratio, spread_noise(old->seconds) + spread_noise(new->seconds), ratio > 1 + loss};
}

/* Matches lines by identity; repeated ones in the order of their files. */
static int match_lines(job *j)
{
    j->rows = calloc(j->old.count + 1, sizeof *j->rows);
    if (!j->rows)
        return complain(EXIT_REFUSED, "there is no memory for %zu lines", j->old.count);
    for (size_t i = 0; i < j->old.count; i++) {
        bench_line *const new = bench_lines_take(&j->new, j->old.at[i].identity);
        if (!new)
            continue;
        j->old.at[i].taken = true;
        j->rows[j->count] = compare_lines(&j->old.at[i], new, j->loss);
        const comparison *const c = &j->rows[j->count++];
        j->slower += c->slower;
        j->certain += c->slower && c->ratio > 1 + c->noise;
    }
    for (size_t i = 0; i < j->new.count; i++)
        j->wrong += j->new.at[i].wrong;
    return EXIT_DONE;
}

static bool is_alone(const bench_line *line)
{
    return !line->taken;
}

static bool is_wrong(const bench_line *line)
{
    return line->wrong;
}

/* null for infinity, which JSON lacks. */
static json_t *real_to_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *rows_to_json(const job *j)
{
    json_t *array = json_array();
    for (size_t i = 0; i < j->count; i++) {
        const comparison *const c = &j->rows[i];
        json_t *const row = json_pack("{ss sf sf so so sb}", "key", c->old->key, "old", c->old->seconds.median, "new",
                                      c->new->seconds.median, "ratio", real_to_json(c->ratio), "noise",
                                      real_to_json(c->noise), "slower", c->slower);
        array = json_with_item(array, row);
    }
    return array;
}

static json_t *keys_to_json(const bench_lines *lines, is_meant *meant)
{
    json_t *array = json_array();
    for (size_t i = 0; i < lines->count; i++)
        if (meant(&lines->at[i]))
            array = json_with_item(array, json_string(lines->at[i].key));
    return array;
}

static int report_json(const job *j)
{
    return print_json(json_pack("{sI sI so sf so so so sI}", "compared", (json_int_t)j->count, "slower",
                                (json_int_t)j->slower, "rows", rows_to_json(j), "loss", j->loss, "only_old",
                                keys_to_json(&j->old, is_alone), "only_new", keys_to_json(&j->new, is_alone), "wrong",
                                keys_to_json(&j->new, is_wrong), "untimed",
                                (json_int_t)j->old.untimed + (json_int_t)j->new.untimed));
}

static const char *word_of(const comparison *c)
{
    if (c->slower)
        return "slower";
    return c->ratio > 1 + c->noise ? "worse" : c->ratio < 1 - c->noise ? "better" : "";
}

static void print_keys(const char *what, const bench_lines *lines, is_meant *meant)
{
    for (size_t i = 0; i < lines->count; i++)
        if (meant(&lines->at[i]))
            say("# %s: %s\n", what, lines->at[i].key);
}

static int report_text(const job *j)
{
    const size_t untimed = j->old.untimed + j->new.untimed;
    say("# %zu line%s compared, %zu slower by more than %g; %zu only in the old file, %zu only in the new one\n",
        j->count, j->count == 1 ? "" : "s", j->slower, j->loss, j->old.count - j->count, j->new.count - j->count);
    if (untimed > 0)
        say("# %zu %s no seconds, and %s left out\n", untimed, untimed == 1 ? "line has" : "lines have",
            untimed == 1 ? "is" : "are");
    print_keys("only in the old file", &j->old, is_alone);
    print_keys("only in the new file", &j->new, is_alone);
    print_keys("wrong", &j->new, is_wrong);
    say("#%12s %12s %8s %8s %8s  what\n#%12s %12s\n", "old", "new", "ratio", "noise", "", "(us)", "(us)");
    for (size_t i = 0; i < j->count; i++) {
        const comparison *const c = &j->rows[i];
        say(" %12.2f %12.2f %8.3f %8.3f %8s  %s\n", 1e6 * c->old->seconds.median, 1e6 * c->new->seconds.median,
            c->ratio, c->noise, word_of(c), c->old->key);
    }
    return EXIT_DONE;
}

/* The sentence mentions lines without seconds, since two files of calibrate have no others. */
static int refuse_strangers(const tool_arguments *given, const job *j)
{
    return complain(EXIT_REFUSED, "no line of %s measured what a line of %s did: there is nothing to compare%s",
                    given->operand[1], given->operand[0],
                    j->old.untimed + j->new.untimed > 0 ? "; lines without seconds, as calibrate's, are left out" : "");
}

static int refuse_slower(const job *j)
{
    const bool one = j->slower == 1;
    return complain(EXIT_REFUSED, "%zu of %zu lines %s slower by more than %g, %zu of them beyond %s noise", j->slower,
                    j->count, one ? "is" : "are", j->loss, j->certain, one ? "its" : "their");
}

static int judge(const tool_arguments *given, const job *j)
{
    if (j->count == 0)
        return refuse_strangers(given, j);
    const int status = given->value[OPT_JSON] ? report_json(j) : report_text(j);
    if (status == EXIT_DONE && j->wrong > 0)
        return complain(EXIT_REFUSED, "%zu of %zu new lines %s wrong results", j->wrong, j->new.count,
                        j->wrong == 1 ? "has" : "have");
    if (status == EXIT_DONE && j->slower > 0)
        return refuse_slower(j);
    return status;
}

static int run_compare(const tool_arguments *given)
{
    job j = {.rows = NULL};
    int status = parse_real("--loss", given->value[OPT_LOSS], LOSS, &j.loss);
    if (status == EXIT_DONE)
        status = bench_lines_read(given->operand[0], &j.old);
    if (status == EXIT_DONE)
        status = bench_lines_read(given->operand[1], &j.new);
    if (status == EXIT_DONE)
        status = bench_lines_identify(&j.old, &j.new);
    if (status == EXIT_DONE)
        status = match_lines(&j);
    if (status == EXIT_DONE)
        status = judge(given, &j);
    free(j.rows);
    bench_lines_finish(&j.old);
    bench_lines_finish(&j.new);
    return status;
}

const tool_command bench_compare_command = {
    .name = "bench compare",
    .summary = "what became slower from one file of benchmarks to another",
    .details = "Both files hold what benchmarks print with --json, an object on each line. Lines are matched by all "
               "fields that are not measured "
               "and that both files know, "
               "repeated ones in their order; a ratio is the new median over the old one, so that more than 1 is "
               "slower. Its noise is half of "
               "what the old and the new times spread over, from least to most, each relative to its median: \"worse\" "
               "and \"better\" are "
               "beyond it. Lines of one file alone are named. Exit status 1 if a line is \"slower\", its ratio being "
               "more than 1 and --loss, or "
               "if results of the new file are wrong.",
    .examples = "  tessera bench suite --quick --json > old.json\n"
                "  tessera bench suite --quick --json > new.json\n"
                "  tessera bench compare old.json new.json --loss 0.2\n",
    .takes = TAKES(LOSS) | TAKES(JSON),
    .operands = "OLD.json NEW.json",
    .operand_count = 2,
    .run = run_compare,
};
