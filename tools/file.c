#include "file.h"

#include "command.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_open_file(const char *option, const char *path, size_t most, FILE *file, char **out)
{
    char *const text = malloc(most);
    if (text == NULL)
        return complain(EXIT_REFUSED, "there is no memory for %s %s", option, path);
    int status = EXIT_DONE;
    const size_t bytes = fread(text, 1, most, file);
    if (ferror(file))
        status = complain(EXIT_REFUSED, "%s %s cannot be read: %s", option, path, strerror(errno));
    else if (bytes == most)
        status = complain(EXIT_REFUSED, "%s %s has %zu bytes or more, which is too long for text", option, path, bytes);
    else if (memchr(text, '\0', bytes) != NULL)
        status = complain(EXIT_REFUSED, "%s %s is no text: byte %zu is 0", option, path, strlen(text) + 1);
    if (status == EXIT_DONE) {
        text[bytes] = '\0';
        *out = text;
    } else
        free(text);
    return status;
}

int file_read_text(const char *option, const char *path, size_t most, char **out)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return complain(EXIT_REFUSED, "%s %s cannot be read: %s", option, path, strerror(errno));
    const int status = read_open_file(option, path, most, file, out);
    fclose(file);
    return status;
}

/** The path that a new file takes: behind symbolic links. On the heap; NULL if there is no memory. */
static char *final_path(const char *path)
{
    char *const behind = realpath(path, NULL);
    return behind != NULL || errno == ENOMEM ? behind : strdup(path);
}

static int check_final(const char *option, const char *path)
{
    struct stat facts;
    if (*path == '\0')
        return complain(EXIT_REFUSED, "%s is empty; it names a file", option);
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return complain(EXIT_REFUSED, "%s %s is not a regular file", option, path);
    char *const copy = strdup(path);
    if (copy == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the path of %s", option);
    int status = EXIT_DONE;
    if (access(dirname(copy), W_OK | X_OK) != 0)
        status = complain(EXIT_REFUSED, "%s %s cannot be written: %s", option, path, strerror(errno));
    free(copy);
    return status;
}

int file_check_output(const char *option, const char *path)
{
    char *const final = final_path(path);
    if (final == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the path of %s", option);
    const int status = check_final(option, final);
    free(final);
    return status;
}

/** As open() would make it; mkstemp() lets its owner alone read. */
static int set_usual_mode(int descriptor)
{
    const mode_t mask = umask(0);
    umask(mask);
    return fchmod(descriptor, 0666 & ~mask);
}

static bool write_all(int descriptor, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t written = write(descriptor, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        bytes -= (size_t)written;
    }
    return fsync(descriptor) == 0;
}

/** `name` is a template for mkstemp(). False with errno set, having removed what was made. */
static bool replace_through(char *name, const char *path, const void *data, size_t bytes)
{
    const int descriptor = mkstemp(name);
    if (descriptor < 0)
        return false;
    bool done = set_usual_mode(descriptor) == 0 && write_all(descriptor, data, bytes);
    done = close(descriptor) == 0 && done;
    done = done && rename(name, path) == 0;
    if (!done) {
        const int reason = errno;
        unlink(name);
        errno = reason;
    }
    return done;
}

static int replace_final(const char *option, const char *path, const void *data, size_t bytes)
{
    char *name;
    if (asprintf(&name, "%s.XXXXXX", path) < 0)
        return complain(EXIT_REFUSED, "there is no memory for the path of %s", option);
    int status = check_final(option, path);
    if (status == EXIT_DONE && !replace_through(name, path, data, bytes))
        status = complain(EXIT_REFUSED, "%s %s cannot be written: %s", option, path, strerror(errno));
    free(name);
    return status;
}

int file_replace(const char *option, const char *path, const void *data, size_t bytes)
{
    char *const final = final_path(path);
    if (final == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the path of %s", option);
    const int status = replace_final(option, final, data, bytes);
    free(final);
    return status;
}
