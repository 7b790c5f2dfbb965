/* SPDX-License-Identifier: Apache-2.0 */
/* sonde view: the report page in a browser, served to this machine alone. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "cli/commands.h"
#include "cli/after/losses.h"
#include "cli/after/page_server.h"

struct view_args {
    bool no_open;
};

#define AT(member) offsetof(struct view_args, member)
static const struct snd_option options[] = {
    { 'n', "no-open", NULL, "print the address and open no browser", SND_OPTION_FLAG, AT(no_open),
      0 },
};

extern char **environ;

/* The program that opens an address: $BROWSER, or xdg-open where there is a desktop. */
static const char *find_opener(void)
{
    const char *browser = getenv("BROWSER");

    if (browser && *browser)
        return browser;
    return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") ? "xdg-open" : NULL;
}

/* True: it was started, and did not fail at once. Does not wait for it to end. */
static bool open_browser(const char *opener, const char *address)
{
    char                      *argv[] = { (char *)opener, (char *)address, NULL };
    posix_spawn_file_actions_t quiet;
    pid_t                      pid;
    int                        status;

    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(&pid, opener, &quiet, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&quiet);
    if (rc != 0)
        return false;
    for (int tries = 0; tries < 20; tries++) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        usleep(50000);
    }
    return true;
}

/* Without a browser: writes the page to a file, to be opened elsewhere. */
static int leave_file(const struct snd_command *self, const char *object,
                      const struct sonde_buffer *page)
{
    struct sonde_buffer name = { 0 };
    size_t              length = strlen(object);
    int                 status = SND_EXIT_OK;

    while (length > 1 && object[length - 1] == '/')
        length--;
    snd_buf_put(&name, object, length);
    snd_buf_text(&name, ".html");
    FILE *file = name.failed ? NULL : fopen(name.bytes, "we");
    if (!file || fwrite(page->bytes, 1, page->length, file) != page->length)
        status = snd_failure("%s: cannot write %s: %s", self->name, snd_buf_string(&name),
                             strerror(errno));
    if (file && fclose(file) != 0 && status == SND_EXIT_OK)
        status = snd_failure("%s: cannot write %s: %s", self->name, name.bytes, strerror(errno));
    if (status == SND_EXIT_OK) {
        fprintf(
            stderr,
            "sonde: view: no browser on this machine; open this file in one, or use --no-open\n");
        printf("%s\n", name.bytes);
        status = snd_finish_stdout(self);
    }
    sonde_buffer_release(&name);
    return status;
}

/*
 * Lets the page keep a connection to this server: when it ends, the page was closed. Not for a page
 * in a file.
 */
static void allow_connection(struct sonde_buffer *page)
{
    static const char none[] = "connect-src 'none'", self[] = "connect-src 'self'";
    char             *at = strstr(page->bytes, none);

    if (at)
        memcpy(at, self, sizeof self - 1);
}

static int serve(const struct snd_command *self, const struct view_args *args, const char *object,
                 struct sonde_buffer *page)
{
    struct snd_page_server server;
    struct sonde_error     err;
    char                   address[80];
    const char            *opener = args->no_open ? NULL : find_opener();

    if (!args->no_open && !opener)
        return leave_file(self, object, page);
    if (snd_page_server_open(&server, page->bytes, page->length, &err) != SONDE_OK)
        return snd_report_error(self, object, &err);
    snprintf(address, sizeof address, "http://127.0.0.1:%u/%s/", server.port, server.token);
    if (opener && !open_browser(opener, address)) {
        snd_page_server_close(&server);
        return leave_file(self, object, page);
    }
    allow_connection(page);
    printf("%s\n", address);
    fflush(stdout);
    fprintf(stderr, "sonde: view: serving until the page is closed; Ctrl-C ends it\n");
    enum sonde_status st = snd_page_server_run(&server, &err);
    snd_page_server_close(&server);
    return st == SONDE_OK ? SND_EXIT_OK : snd_report_error(self, object, &err);
}

/* The page of a trace, or of the second of two with what changed since the first. -1 to go on. */
static int make_page(const struct snd_command *self, char **paths, struct sonde_trace **traces,
                     int count, const struct sonde_sink *sink)
{
    struct sonde_error err;

    snd_progress_start("sonde: making the page");
    enum sonde_status st = count > 1 ? sonde_diff_page(traces, 1, 1, NULL, sink, &err)
                                     : sonde_export(traces[0], "html", NULL, sink, &err);
    snd_progress_stop();
    if (st != SONDE_OK)
        return snd_report_error(self, paths[count - 1], &err);
    for (int i = 0; i < count; i++)
        snd_say_losses(self->name, traces[i]);
    return -1;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct view_args    args = { 0 };
    struct sonde_buffer page = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&page);
    struct sonde_trace *traces[2];
    int                 operands, opened = 0;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands > 2)
        return snd_usage_error(self, "expected one trace, or two to compare, got %d", operands);
    int count = operands > 1 ? 2 : 1;
    while (status < 0 && opened < count) {
        status = snd_open_trace(self, operands > 1 ? 1 : operands, &argv[opened], &traces[opened]);
        opened += status < 0;
    }
    if (status < 0)
        status = make_page(self, argv, traces, count, &sink);
    while (opened > 0)
        sonde_trace_close(traces[--opened]);
    if (status < 0)
        status = serve(self, &args, argv[count - 1], &page);
    sonde_buffer_release(&page);
    return status;
}

const struct snd_command snd_command_view = {
    .name = "view",
    .operands = "[TRACE | A B]",
    .summary = "open a trace's report page in a browser",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
