#include "output.h"

#include "command.h"
#include "npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

int output_check(const char *directory)
{
    if (*directory == '\0')
        return complain(EXIT_REFUSED, "--output is empty; it names a folder");
    if (access(directory, F_OK) != 0)
        return EXIT_DONE;
    if (!is_directory(directory))
        return complain(EXIT_REFUSED, "--output %s is not a folder", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return complain(EXIT_REFUSED, "--output %s cannot be written: %s", directory, strerror(errno));
    return EXIT_DONE;
}

static void remove_folders(output *o)
{
    char *const path = strdup(o->directory);
    for (; path != NULL && o->made > 0; o->made--) {
        size_t length = strlen(path);
        while (length > 1 && path[length - 1] == '/')
            path[--length] = '\0';
        rmdir(path);
        while (length > 0 && path[length - 1] != '/')
            path[--length] = '\0';
    }
    free(path);
}

/** mkdir -p, counting what is new: the last components of the path. */
static int make_folders(output *o)
{
    char *const path = strdup(o->directory);
    if (path == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the path of --output");
    int status = EXIT_DONE;
    for (char *at = path; status == EXIT_DONE && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        const char rest = *at;
        *at = '\0';
        if (mkdir(path, 0777) == 0)
            o->made++;
        else if (errno != EEXIST || !is_directory(path))
            status = complain(EXIT_REFUSED, "--output %s cannot be made: %s", path, strerror(errno));
        *at = rest;
        if (rest != '\0' && at[strspn(at, "/")] == '\0')
            break;
    }
    free(path);
    return status;
}

/** Signals that end the program and can be waited with; the last is seen as a failure to write, and needs no more. */
static const int enders[OUTPUT_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/** The one that came since output_begin(). A handler, because a blocked signal would go to any thread that does not block it. */
static volatile sig_atomic_t came;

static void remember(int signal)
{
    if (signal != SIGPIPE)
        came = signal;
}

static void hold_signals(output *o)
{
    struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};
    came = 0;
    for (int i = 0; i < OUTPUT_SIGNALS; i++) {
        sigaction(enders[i], NULL, &o->before[i]);
        if (o->before[i].sa_handler != SIG_IGN)
            sigaction(enders[i], &action, NULL);
    }
}

/** What came in between acts now. */
static void release_signals(const output *o)
{
    for (int i = 0; i < OUTPUT_SIGNALS; i++)
        sigaction(enders[i], &o->before[i], NULL);
    if (came != 0)
        raise(came);
}

void output_finish(output *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->names[i]);
    free(o->names);
    release_signals(o);
}

int output_begin(const char *directory, output *out)
{
    output o = {.directory = directory};
    hold_signals(&o);
    const int status = make_folders(&o);
    if (status == EXIT_DONE)
        *out = o;
    else
        output_cancel(&o);
    return status;
}

/** The path of a file under its own name, or under the one that it has until all are there; on the heap. */
static char *file_path(const output *o, const char *name, bool published)
{
    char *path;
    const int length = published ? asprintf(&path, "%s/%s", o->directory, name)
                                 : asprintf(&path, "%s/.tessera-%ld-%s", o->directory, (long)getpid(), name);
    return length < 0 ? NULL : path;
}

static bool add_name(output *o, const char *name)
{
    char **const names = realloc(o->names, (o->count + 1) * sizeof *names);
    if (names == NULL)
        return false;
    o->names = names;
    names[o->count] = strdup(name);
    if (names[o->count] == NULL)
        return false;
    o->count++;
    return true;
}

int output_add(output *o, const char *name, const tsr_tensor *tensor)
{
    if (came != 0)
        return complain(EXIT_REFUSED, "interrupted; nothing is left in %s", o->directory);
    char *const path = file_path(o, name, false);
    int status = EXIT_DONE;
    if (path == NULL || !add_name(o, name))
        status = complain(EXIT_REFUSED, "there is no memory for the names of the files");
    else if (npy_save(path, tensor) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    free(path);
    return status;
}

static int publish_file(output *o, const char *name)
{
    char *const from = file_path(o, name, false), *const to = file_path(o, name, true);
    int status = EXIT_DONE;
    if (from == NULL || to == NULL)
        status = complain(EXIT_REFUSED, "there is no memory for the names of the files");
    else if (rename(from, to) != 0)
        status = complain(EXIT_REFUSED, "%s cannot be written: %s", to, strerror(errno));
    else
        o->published++;
    free(from);
    free(to);
    return status;
}

int output_publish(output *o)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < o->count && status == EXIT_DONE; i++)
        status = publish_file(o, o->names[i]);
    return status;
}

void output_cancel(output *o)
{
    for (size_t i = 0; i < o->count; i++) {
        char *const path = file_path(o, o->names[i], i < o->published);
        if (path != NULL)
            unlink(path);
        free(path);
    }
    remove_folders(o);
    output_finish(o);
}
