/* SPDX-License-Identifier: Apache-2.0 */
/* sonde view: the report page in a browser, served to this machine alone. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "cli/commands.h"
#include "cli/after/losses.h"
#include "cli/after/page_server.h"
#include "cli/after/trace_list.h"
#include "export/page/page_template.h"

struct view_args {
    bool    no_open;
    int64_t port;
};

#define AT(member) offsetof(struct view_args, member)
static const struct snd_option options[] = {
    { 'n', "no-open", NULL, "print the address and open no browser", SND_OPTION_FLAG, AT(no_open),
      0 },
    { 'p', "port", "N", "listen on this port of 127.0.0.1 (one that is free)", SND_OPTION_NUMBER,
      AT(port), 1 },
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

    if (!page)
        return snd_failure("%s: no browser on this machine; give one trace, or use --no-open",
                           self->name);
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

/* `page`: what is written to a file where there is no browser; NULL: nothing */
static int serve(const struct snd_command *self, const struct view_args *args, const char *object,
                 const struct snd_served_pages *pages, struct sonde_buffer *page)
{
    static struct snd_page_server server;
    struct sonde_error            err;
    char                          address[80];
    const char                   *opener = args->no_open ? NULL : find_opener();

    if (!args->no_open && !opener)
        return leave_file(self, object, page);
    if (snd_page_server_open(&server, pages, (unsigned)args->port, &err) != SONDE_OK)
        return snd_report_error(self, object, &err);
    snprintf(address, sizeof address, "http://127.0.0.1:%u/%s/", server.port, server.token);
    if (opener && !open_browser(opener, address)) {
        snd_page_server_close(&server);
        return leave_file(self, object, page);
    }
    if (page)
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

/* ------------------------------------------------------------ several traces */

/* A page of the list, when a browser asks for it. */
static bool make_listed(void *user, size_t a, size_t b, struct sonde_buffer *page,
                        struct sonde_error *err)
{
    const struct snd_trace_list *list = user;
    struct sonde_trace          *traces[2] = { NULL, NULL };
    struct sonde_sink            sink = sonde_sink_buffer(page);
    enum sonde_status            st = sonde_trace_open(list->paths[a], &traces[0], err);

    if (st == SONDE_OK && b != a)
        st = sonde_trace_open(list->paths[b], &traces[1], err);
    if (st == SONDE_OK)
        st = b != a ? sonde_diff_page(traces, 1, 1, NULL, &sink, err)
                    : sonde_export(traces[0], "html", NULL, &sink, err);
    sonde_trace_close(traces[0]);
    sonde_trace_close(traces[1]);
    if (st == SONDE_OK && !page->failed)
        allow_connection(page);
    return st == SONDE_OK;
}

/* The page without a trace's data, which shows the list. */
static bool put_list_page(struct sonde_buffer *page)
{
    const char *mark = strstr(snd_html_template, SND_HTML_DATA_MARK);

    if (!mark)
        return false;
    snd_buf_put(page, snd_html_template, (size_t)(mark - snd_html_template));
    snd_buf_text(page, "list");
    snd_buf_text(page, mark + strlen(SND_HTML_DATA_MARK));
    if (!page->failed)
        allow_connection(page);
    return !page->failed;
}

static int serve_list(const struct snd_command *self, const struct view_args *args,
                      const char *object, struct snd_trace_list *list)
{
    struct sonde_buffer page = { 0 }, json = { 0 };
    int                 status;

    snd_trace_list_json(list, &json);
    if (!put_list_page(&page) || json.failed) {
        status = snd_failure("%s: this build has no report page", self->name);
    } else {
        const struct snd_served_pages pages = { .first = page.bytes,
                                                .first_length = page.length,
                                                .list = json.bytes,
                                                .list_length = json.length,
                                                .count = list->count,
                                                .make = make_listed,
                                                .user = list };
        status = serve(self, args, object, &pages, NULL);
    }
    sonde_buffer_release(&page);
    sonde_buffer_release(&json);
    return status;
}

/* Those that were given, or those of a folder. -1: there are none to choose from. */
static int view_list(const struct snd_command *self, const struct view_args *args, int operands,
                     char **argv)
{
    struct snd_trace_list list = { 0 };
    bool                  several = operands > 2;
    int                   status = -1;

    for (int i = 0; several && status < 0 && i < operands; i++) {
        if (access(argv[i], R_OK) != 0)
            status = snd_failure("%s: %s: %s", self->name, argv[i], strerror(errno));
        else if (!snd_trace_list_add(&list, argv[i]))
            status = snd_failure("%s: out of memory", self->name);
    }
    if (operands == 1)
        several = snd_trace_list_folder(&list, argv[0]);
    if (several && status < 0)
        status = serve_list(self, args, argv[0], &list);
    snd_trace_list_release(&list);
    return status;
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
    if (args.port > UINT16_MAX)
        return snd_usage_error(self, "--port: expected an integer from 1 to 65535, got %" PRId64,
                               args.port);
    status = view_list(self, &args, operands, argv);
    if (status >= 0)
        return status;
    int count = operands > 1 ? 2 : 1;
    while (status < 0 && opened < count) {
        status = snd_open_trace(self, operands > 1 ? 1 : operands, &argv[opened], &traces[opened]);
        opened += status < 0;
    }
    if (status < 0)
        status = make_page(self, argv, traces, count, &sink);
    while (opened > 0)
        sonde_trace_close(traces[--opened]);
    if (status < 0) {
        const struct snd_served_pages pages = { .first = page.bytes, .first_length = page.length };
        status = serve(self, &args, argv[count - 1], &pages, &page);
    }
    sonde_buffer_release(&page);
    return status;
}

const struct snd_command snd_command_view = {
    .name = "view",
    .operands = "[TRACE | A B | FOLDER | TRACES]",
    .summary = "open a trace's report page in a browser",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
