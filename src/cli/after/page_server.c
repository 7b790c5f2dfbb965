/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/after/page_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/text/buf.h"

#define GRACE_MS 5000 /* a page that is loaded again closes its connection, and comes back */

struct snd_made_page {
    struct snd_made_page *next;
    size_t                a, b;
    struct sonde_buffer   page;
    unsigned              users;     /* connections that it is sent to */
    bool                  is_failed; /* the page is the reason */
};

static bool make_token(char token[33])
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

enum sonde_status snd_page_server_open(struct snd_page_server        *server,
                                       const struct snd_served_pages *pages, unsigned port,
                                       struct sonde_error *err)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    socklen_t          size = sizeof address;
    const int          yes = 1;

    memset(server, 0, sizeof *server);
    server->pages = pages;
    for (size_t i = 0; i < SND_SERVED_MAX; i++)
        server->served[i].fd = -1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* A port that was given is free for the next server although connections of the last one linger. */
    if (server->listener < 0 || !make_token(server->token) ||
        setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(server->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(server->listener, SOMAXCONN) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &size) != 0) {
        snd_fail_os(err, SONDE_E_IO, "cannot serve the page on 127.0.0.1:%u", port);
        snd_page_server_close(server);
        return SONDE_E_IO;
    }
    server->port = ntohs(address.sin_port);
    return SONDE_OK;
}

/* ---------------------------------------------------------------- pages made */

/* Releases those that are sent to nobody. */
static void forget_pages(struct snd_page_server *server)
{
    struct snd_made_page **at = &server->made;

    while (*at) {
        struct snd_made_page *one = *at;
        if (one->users > 0) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        sonde_buffer_release(&one->page);
        free(one);
    }
}

/* NULL: out of memory. */
static struct snd_made_page *find_page(struct snd_page_server *server, size_t a, size_t b)
{
    struct sonde_error err = { SONDE_OK, 0, "" };

    for (struct snd_made_page *one = server->made; one; one = one->next)
        if (one->a == a && one->b == b && !one->is_failed)
            return one;
    forget_pages(server);
    struct snd_made_page *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->a = a;
    made->b = b;
    if (!server->pages->make(server->pages->user, a, b, &made->page, &err)) {
        made->is_failed = true;
        snd_buf_clear(&made->page);
        snd_buf_format(&made->page, "%s\n", err.message);
    }
    made->next = server->made;
    server->made = made;
    return made;
}

static void drop(struct snd_page_server *server, size_t i)
{
    close(server->served[i].fd);
    if (server->served[i].made)
        server->served[i].made->users--;
    memset(&server->served[i], 0, sizeof server->served[i]);
    server->served[i].fd = -1;
}

void snd_page_server_close(struct snd_page_server *server)
{
    for (size_t i = 0; i < SND_SERVED_MAX; i++)
        if (server->served[i].fd >= 0)
            drop(server, i);
    forget_pages(server);
    if (server->listener >= 0)
        close(server->listener);
}

/* ------------------------------------------------------------------- answers */

static void answer(struct snd_page_server *server, size_t i, const char *status, const char *type,
                   const char *body, size_t length)
{
    int made =
        snprintf(server->served[i].head, sizeof server->served[i].head,
                 "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\n"
                 "Content-Length: %zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
                 "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
                 "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
                 "\r\n",
                 status, type, length);

    server->served[i].head_length = (size_t)made;
    server->served[i].body = body;
    server->served[i].body_length = length;
    server->served[i].is_answered = true;
}

static void refuse(struct snd_page_server *server, size_t i, const char *status)
{
    answer(server, i, status, "text/plain", "", 0);
}

/*
 * True: the request names this machine as its host, once. Another site's name may resolve to us (DNS
 * rebinding), and of two names nobody knows which counts. The port may be another: that of `ssh -L`.
 */
static bool is_for_us(const char *request)
{
    static const char *const ours[] = { "127.0.0.1", "localhost", "[::1]" };
    static const char        key[] = "\nhost:";
    bool                     is = false;
    size_t                   hosts = 0;

    for (const char *at = request; (at = strcasestr(at, key)) != NULL; hosts++) {
        at += strlen(key);
        at += strspn(at, " \t");
        for (size_t i = 0; i < SND_COUNT_OF(ours); i++) {
            size_t length = strlen(ours[i]);
            if (strncasecmp(at, ours[i], length) != 0)
                continue;
            const char *port = at + length;
            if (*port == ':')
                port += 1 + strspn(port + 1, "0123456789");
            is |= strncmp(port, "\r\n", 2) == 0;
        }
    }
    return is && hosts == 1;
}

/* "3/" or "1-3/" of the list; returns what follows, or NULL. */
static const char *read_numbers(const char *path, size_t count, size_t *a, size_t *b)
{
    char *end;

    if (*path < '0' || *path > '9')
        return NULL;
    *a = *b = strtoul(path, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        *b = strtoul(end + 1, &end, 10);
    return *end == '/' && *a < count && *b < count ? end + 1 : NULL;
}

static void answer_made(struct snd_page_server *server, size_t i, size_t a, size_t b)
{
    struct snd_made_page *made = find_page(server, a, b);

    if (!made || made->page.failed) {
        refuse(server, i, "500 Internal Server Error");
        return;
    }
    made->users++;
    server->served[i].made = made;
    answer(server, i, made->is_failed ? "500 Internal Server Error" : "200 OK",
           made->is_failed ? "text/plain" : "text/html", made->page.bytes, made->page.length);
}

/* `path`: after "/TOKEN/" */
static void answer_path(struct snd_page_server *server, size_t i, const char *path)
{
    const struct snd_served_pages *pages = server->pages;
    const char                    *end = " HTTP/1.";
    size_t                         a = 0, b = 0;
    const char *rest = pages->list ? read_numbers(path, pages->count, &a, &b) : NULL;
    bool        is_made = rest != NULL;

    rest = rest ? rest : path;
    if (strncmp(rest, "open HTTP/1.", 12) == 0)
        server->was_opened = server->served[i].is_open_page = true; /* never answered */
    else if (is_made && strncmp(rest, end, strlen(end)) == 0)
        answer_made(server, i, a, b);
    else if (strncmp(path, end, strlen(end)) == 0)
        answer(server, i, "200 OK", "text/html", pages->first, pages->first_length);
    else if (pages->list && strncmp(path, "list HTTP/1.", 12) == 0)
        answer(server, i, "200 OK", "application/json", pages->list, pages->list_length);
    else
        refuse(server, i, "404 Not Found");
}

static void decide(struct snd_page_server *server, size_t i)
{
    const char *request = server->served[i].request;
    char        start[64];

    snprintf(start, sizeof start, "GET /%s/", server->token);
    if (!is_for_us(request))
        refuse(server, i, "403 Forbidden");
    else if (strncmp(request, start, strlen(start)) != 0)
        refuse(server, i, "404 Not Found");
    else
        answer_path(server, i, request + strlen(start));
}

static void receive(struct snd_page_server *server, size_t i)
{
    size_t  room = sizeof server->served[i].request - 1 - server->served[i].got;
    ssize_t got = recv(server->served[i].fd, server->served[i].request + server->served[i].got,
                       room, 0);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0 || server->served[i].is_open_page) { /* closed, or it sent data unasked */
        drop(server, i);
        return;
    }
    server->served[i].got += (size_t)got;
    server->served[i].request[server->served[i].got] = '\0';
    if (strstr(server->served[i].request, "\r\n\r\n"))
        decide(server, i);
    else if (server->served[i].got + 1 == sizeof server->served[i].request)
        refuse(server, i, "431 Request Header Fields Too Large");
}

static void transmit(struct snd_page_server *server, size_t i)
{
    size_t      head = server->served[i].head_length, sent = server->served[i].sent;
    const char *from = sent < head ? server->served[i].head + sent
                                   : server->served[i].body + (sent - head);
    size_t      left = sent < head ? head - sent : head + server->served[i].body_length - sent;
    ssize_t     done = send(server->served[i].fd, from, left, MSG_NOSIGNAL);

    if (done < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (done < 0) {
        drop(server, i);
        return;
    }
    server->served[i].sent += (size_t)done;
    if (server->served[i].sent == head + server->served[i].body_length) {
        shutdown(server->served[i].fd, SHUT_WR); /* the browser closes once it has all */
        server->served[i].is_answered = false;
        server->served[i].is_open_page = false;
        server->served[i].got = 0;
    }
}

/* A free place: where there is none, that of the oldest connection which has asked for nothing yet. */
static size_t find_place(struct snd_page_server *server)
{
    size_t oldest = SND_SERVED_MAX;

    for (size_t i = 0; i < SND_SERVED_MAX; i++) {
        if (server->served[i].fd < 0)
            return i;
        if (server->served[i].is_answered || server->served[i].is_open_page)
            continue;
        if (oldest == SND_SERVED_MAX || server->served[i].age < server->served[oldest].age)
            oldest = i;
    }
    if (oldest < SND_SERVED_MAX)
        drop(server, oldest);
    return oldest;
}

static void accept_one(struct snd_page_server *server)
{
    int    fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t place = fd >= 0 ? find_place(server) : SND_SERVED_MAX;

    if (place < SND_SERVED_MAX) {
        server->served[place].fd = fd;
        server->served[place].age = server->accepted++;
    } else if (fd >= 0) {
        close(fd); /* 32 pages are open, or being sent */
    }
}

/* ---------------------------------------------------------------------- loop */

enum sonde_status snd_page_server_run(struct snd_page_server *server, struct sonde_error *err)
{
    struct pollfd waits[SND_SERVED_MAX + 1];

    for (;;) {
        bool is_open = false;
        for (size_t i = 0; i < SND_SERVED_MAX; i++) {
            waits[i] = (struct pollfd){ .fd = server->served[i].fd,
                                        .events = server->served[i].is_answered ? POLLOUT
                                                                                : POLLIN };
            is_open |= server->served[i].fd >= 0 &&
                       (server->served[i].is_open_page || server->served[i].is_answered);
        }
        waits[SND_SERVED_MAX] = (struct pollfd){ .fd = server->listener, .events = POLLIN };
        int ready = poll(waits, SND_SERVED_MAX + 1, server->was_opened && !is_open ? GRACE_MS : -1);
        if (ready == 0)
            return SONDE_OK;
        if (ready < 0 && errno != EINTR)
            return snd_fail_os(err, SONDE_E_IO, "cannot wait for the browser");
        for (size_t i = 0; ready > 0 && i < SND_SERVED_MAX; i++) {
            if (!waits[i].revents)
                continue;
            if (server->served[i].is_answered)
                transmit(server, i);
            else
                receive(server, i);
        }
        if (ready > 0 && waits[SND_SERVED_MAX].revents)
            accept_one(server);
    }
}
