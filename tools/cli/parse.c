#include "cli/parse.h"

#include "cli/spelling.h"

#include <tessera/context.h>
#include <tessera/status.h>

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* The syntax of a mesh. The library judges its sizes, ranks and names. */
#define NUMBER "[0-9]{1,18}"
#define COMMA  " *, *"
#define NAMED  "[A-Za-z_][A-Za-z0-9_]*=" NUMBER
#define MESH_PATTERN                                                                                                   \
    "^(" NUMBER "(x" NUMBER ")*|" NAMED "(" COMMA NAMED ")*)(@(" NUMBER "|\\[" NUMBER "(" COMMA NUMBER ")*\\]))?$"

static bool has_mesh_form(const char *text)
{
    regex_t pattern;
    if (regcomp(&pattern, MESH_PATTERN, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    const bool matches = regexec(&pattern, text, 0, NULL, 0) == 0;
    regfree(&pattern);
    return matches;
}

static int try_mesh(tsr_context *context, const char *text, tsr_mesh **out)
{
    const tsr_status status = tsr_mesh_parse(NULL, context, text, out);
    if (status == TSR_OK)
        return EXIT_DONE;
    return status == TSR_ERROR_ARGUMENT && !has_mesh_form(text) ? EXIT_USAGE : EXIT_REFUSED;
}

/* The default context reads the environment: a wrong value there is reported before the text is
 * parsed. */
static int check_environment(void)
{
    tsr_context *context;
    if (tsr_context_create(NULL, &context) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    tsr_context_destroy(context);
    return EXIT_DONE;
}

int parse_mesh_in(tsr_context *context, const char *option, const char *text, tsr_mesh **out)
{
    int status = !context ? check_environment() : EXIT_DONE;
    if (status != EXIT_DONE)
        return status;
    status = try_mesh(context, text, out);
    return status == EXIT_DONE ? status : complain(status, "%s: %s", option, tsr_status_message());
}

int parse_mesh(const char *text, tsr_mesh **out)
{
    return parse_mesh_in(NULL, "--mesh", text, out);
}

bool parse_number(const char **at, int64_t *out)
{
    if (!isdigit((unsigned char)**at))
        return false;
    char *end;
    errno = 0;
    const long long value = strtoll(*at, &end, 10);
    if (errno != 0)
        return false;
    *at = end;
    *out = value;
    return true;
}

int parse_shape(const char *text, tensor_shape *out)
{
    tensor_shape shape = {0};
    if (strcmp(text, "scalar") == 0) {
        *out = shape;
        return EXIT_DONE;
    }
    for (const char *at = text;; at++) {
        int64_t size;
        if (!parse_number(&at, &size) || (*at != 'x' && *at != '\0'))
            return complain(
                EXIT_USAGE,
                "--shape '%s', character %td: this is not a shape: 31x3, with sizes from 0 to 2^63-1, or scalar", text,
                at - text + 1);
        if (shape.ndim < TSR_MAX_DIMS)
            shape.size[shape.ndim] = size;
        shape.ndim++;
        if (*at == '\0')
            break;
    }
    if (shape.ndim > TSR_MAX_DIMS)
        return complain(EXIT_REFUSED, "--shape '%s' has %d dims; tensors have at most %d", text, shape.ndim,
                        TSR_MAX_DIMS);
    *out = shape;
    return EXIT_DONE;
}

int parse_dtype_of(const char *option, const char *text, tsr_dtype *out)
{
    const tsr_status status = tsr_dtype_parse(text, out);
    if (status == TSR_OK)
        return EXIT_DONE;
    const char *const meant = guess_dtype(text);
    return complain(EXIT_USAGE, meant ? "%s: %s (did you mean '%s'?)" : "%s: %s", option, tsr_status_message(), meant);
}

int parse_dtype(const char *text, tsr_dtype *out)
{
    return parse_dtype_of("--dtype", text ? text : "f32", out);
}

int check_placements(const char *option, const char *text)
{
    const size_t room = strlen(text) + 1;
    int64_t *const numbers = calloc(room, sizeof *numbers);
    if (!numbers)
        return complain(EXIT_REFUSED, "there is no memory for %zu characters of placements", room);
    tsr_placement placements[TSR_MAX_DIMS];
    int count;
    const tsr_status status = tsr_placements_parse(text, placements, TSR_MAX_DIMS, &count, numbers, room, NULL);
    free(numbers);
    return status == TSR_OK ? EXIT_DONE : complain(EXIT_USAGE, "%s: %s", option, tsr_status_message());
}

int parse_layout(const char *option, const char *text, const tsr_mesh *mesh, const tensor_shape *shape, tsr_dtype dtype,
                 tsr_layout **out)
{
    const int status = check_placements(option, text);
    if (status != EXIT_DONE)
        return status;
    if (tsr_layout_parse(mesh, text, shape->ndim, shape->size, dtype, out) == TSR_OK)
        return EXIT_DONE;
    const char *const reason = tsr_status_message();
    /* The library refuses the shape, not the placements, so the option is not named. */
    if (strncmp(reason, "shape ", strlen("shape ")) == 0)
        return complain(EXIT_REFUSED, "%s", reason);
    return complain(EXIT_REFUSED, "%s: %s", option, reason);
}

/* The whole text as a number; `least` is the lower bound that the error names, checked by the
 * caller. */
static int parse_whole(const char *option, const char *text, int least, int64_t *out)
{
    const char *at = text;
    if (!parse_number(&at, out) || *at != '\0')
        return complain(EXIT_USAGE, "%s '%s' is not a number from %d to 2^63-1", option, text, least);
    return EXIT_DONE;
}

int parse_count(const char *option, const char *text, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (!text)
        return EXIT_DONE;
    const int status = parse_whole(option, text, 1, out);
    if (status == EXIT_DONE && *out == 0)
        return complain(EXIT_REFUSED, "%s is 0; it must be 1 at least", option);
    return status;
}

int parse_index(const char *option, const char *text, int64_t *out)
{
    return parse_whole(option, text, 0, out);
}

static const char *const mode_names[] = {[TSR_MODE_DIRECT] = "direct", [TSR_MODE_MESSAGE] = "message"};

const char *mode_name(tsr_mode mode)
{
    return mode_names[mode];
}

int parse_mode(const char *text, tsr_mode *out)
{
    *out = TSR_MODE_DIRECT;
    if (!text)
        return EXIT_DONE;
    for (size_t i = 0; i < sizeof mode_names / sizeof *mode_names; i++) {
        if (strcmp(mode_names[i], text) == 0) {
            *out = (tsr_mode)i;
            return EXIT_DONE;
        }
    }
    return complain(EXIT_USAGE, "--mode '%s' is not known; there are direct and message", text);
}

bool next_coordinate(const tsr_mesh *mesh, int64_t *coordinate)
{
    for (int d = tsr_mesh_ndim(mesh) - 1; d >= 0; d--) {
        if (++coordinate[d] < tsr_mesh_size(mesh, d))
            return true;
        coordinate[d] = 0;
    }
    return false;
}

int parse_policy(const char *text, tsr_policy *out)
{
    static const char *const names[] = {"forbid", "partials", "warn", "allow"};
    *out = TSR_POLICY_FORBID;
    for (int i = 0; text && i < 4; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (tsr_policy)i;
            return EXIT_DONE;
        }
    }
    return text ? complain(EXIT_USAGE, "--policy '%s' is not forbid, partials, warn or allow", text) : EXIT_DONE;
}

int count_rank_threads(const tsr_mesh *mesh, int *out)
{
    int64_t largest = tsr_mesh_count(mesh) - 1;
    if (largest < MAX_RANK_THREADS) {
        int64_t coordinate[TSR_MAX_DIMS] = {0};
        do {
            int64_t rank;
            if (tsr_mesh_rank_at(mesh, coordinate, &rank) != TSR_OK)
                return complain_status(EXIT_REFUSED);
            largest = rank > largest ? rank : largest;
        } while (next_coordinate(mesh, coordinate));
    }
    if (largest >= MAX_RANK_THREADS)
        return complain(EXIT_REFUSED, "the mesh goes up to rank %lld; at most %d rank threads are started",
                        (long long)largest, MAX_RANK_THREADS);
    *out = (int)largest + 1;
    return EXIT_DONE;
}
