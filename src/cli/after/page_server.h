/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/after/page_server.h - serves pages to browsers of this machine, until they close them.
 *
 * It listens on the loopback interface alone and answers only requests whose path begins with a random
 * token: other users of the machine, and other pages in the browser, do not know it. A page that is open
 * holds a connection (its address and "open"): once the last one has gone and none came back, it ends.
 *
 *     /TOKEN/         the first page: of the trace, or the list of several
 *     /TOKEN/list     the list, as JSON
 *     /TOKEN/N/       the page of trace N of the list, made when it is asked for
 *     /TOKEN/N-M/     what changed from trace N to trace M
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_AFTER_PAGE_SERVER_H
#define SND_CLI_AFTER_PAGE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "sonde/sink.h"

#define SND_SERVED_MAX \
    32 /* connections at once; one more takes the place of the oldest that asks for nothing */

/* What is served. All is borrowed. */
struct snd_served_pages {
    const char *first, *list; /* list NULL: one page alone */
    size_t      first_length, list_length;
    size_t      count; /* traces of the list */
    /* Appends the page of trace `a`, or of what changed from `a` to another `b`. False: `err` has the reason. */
    bool (*make)(void *user, size_t a, size_t b, struct sonde_buffer *page,
                 struct sonde_error *err);
    void *user;
};

struct snd_made_page; /* one that was made for the list */

struct snd_page_server {
    int                            listener;
    unsigned                       port;
    char                           token[33];
    const struct snd_served_pages *pages;
    struct snd_made_page          *made;
    unsigned long                  accepted; /* connections, for their age */
    struct {
        int                   fd; /* -1: free */
        unsigned long         age;
        char                  request[2048];
        size_t                got;       /* of the request */
        char                  head[512]; /* of the answer */
        const char           *body;
        struct snd_made_page *made; /* what the body is of, or NULL */
        size_t                head_length, sent, body_length;
        bool                  is_answered, is_open_page;
    } served[SND_SERVED_MAX];
    bool was_opened;
};

/*
 * `port`: 0 for one that the kernel chooses. Keeps: `pages`. Owns: the caller, until snd_page_server_close().
 * Errors: SONDE_E_IO.
 */
SND_CHECKED enum sonde_status snd_page_server_open(struct snd_page_server        *server,
                                                   const struct snd_served_pages *pages,
                                                   unsigned port, struct sonde_error *err);
/* Returns when a page was open and no one has one open any more. Errors: SONDE_E_IO. */
SND_CHECKED enum sonde_status snd_page_server_run(struct snd_page_server *server,
                                                  struct sonde_error     *err);
void                          snd_page_server_close(struct snd_page_server *server);

#endif
