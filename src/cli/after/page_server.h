/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/after/page_server.h - serves one page to browsers of this machine, until they close it.
 *
 * It listens on the loopback interface alone, on a port that the kernel chooses, and answers only requests
 * whose path begins with a random token: other users of the machine, and other pages in the browser, do not know
 * it. A page that is open holds a connection (TOKEN/open): once the last one has gone and none came back, it ends.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_AFTER_PAGE_SERVER_H
#define SND_CLI_AFTER_PAGE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define SND_SERVED_MAX 32 /* connections at once; more wait */

struct snd_page_server {
    int         listener;
    unsigned    port;
    char        token[33];
    const char *page; /* borrowed */
    size_t      length;
    struct {
        int    fd; /* -1: free */
        char   request[2048];
        size_t got;       /* of the request */
        char   head[512]; /* of the answer */
        size_t head_length, sent, body_length;
        bool   is_answered, is_open_page;
    } served[SND_SERVED_MAX];
    bool was_opened;
};

/* Keeps: `page`. Owns: the caller, until snd_page_server_close(). Errors: SONDE_E_IO. */
SND_CHECKED enum sonde_status snd_page_server_open(struct snd_page_server *server, const char *page,
                                                   size_t length, struct sonde_error *err);
/* Returns when the page was open and no one has it open any more. Errors: SONDE_E_IO. */
SND_CHECKED enum sonde_status snd_page_server_run(struct snd_page_server *server,
                                                  struct sonde_error     *err);
void                          snd_page_server_close(struct snd_page_server *server);

#endif
