/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/after/page_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRACE_MS 5000 /* a page that is loaded again closes its connection, and comes back */

static bool make_token(char token[33])
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

enum sonde_status snd_page_server_open(struct snd_page_server *server, const char *page,
                                       size_t length, struct sonde_error *err)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t          size = sizeof address;

    memset(server, 0, sizeof *server);
    server->page = page;
    server->length = length;
    for (size_t i = 0; i < SND_SERVED_MAX; i++)
        server->served[i].fd = -1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listener < 0 || !make_token(server->token) ||
        bind(server->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(server->listener, SND_SERVED_MAX) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &size) != 0) {
        snd_fail_os(err, SONDE_E_IO, "cannot serve the page on the loopback interface");
        snd_page_server_close(server);
        return SONDE_E_IO;
    }
    server->port = ntohs(address.sin_port);
    return SONDE_OK;
}

void snd_page_server_close(struct snd_page_server *server)
{
    for (size_t i = 0; i < SND_SERVED_MAX; i++)
        if (server->served[i].fd >= 0)
            close(server->served[i].fd);
    if (server->listener >= 0)
        close(server->listener);
}

/* ------------------------------------------------------------------- answers */

static void drop(struct snd_page_server *server, size_t i)
{
    close(server->served[i].fd);
    memset(&server->served[i], 0, sizeof server->served[i]);
    server->served[i].fd = -1;
}

static void answer(struct snd_page_server *server, size_t i, const char *status, size_t length)
{
    int made =
        snprintf(server->served[i].head, sizeof server->served[i].head,
                 "HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\n"
                 "Content-Length: %zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
                 "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
                 "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
                 "\r\n",
                 status, length);

    server->served[i].head_length = (size_t)made;
    server->served[i].body_length = length;
    server->served[i].is_answered = true;
}

/* A request for another host name is refused: another site's name may resolve to us (DNS rebinding). */
static bool is_for_us(const struct snd_page_server *server, const char *request)
{
    char host[64];

    snprintf(host, sizeof host, "\r\nHost: 127.0.0.1:%u\r\n", server->port);
    return strstr(request, host) != NULL;
}

static void decide(struct snd_page_server *server, size_t i)
{
    const char *request = server->served[i].request;
    char        page[64], open[64];

    snprintf(page, sizeof page, "GET /%s/ HTTP/1.", server->token);
    snprintf(open, sizeof open, "GET /%s/open HTTP/1.", server->token);
    if (!is_for_us(server, request))
        answer(server, i, "403 Forbidden", 0);
    else if (strncmp(request, page, strlen(page)) == 0)
        answer(server, i, "200 OK", server->length);
    else if (strncmp(request, open, strlen(open)) == 0)
        server->was_opened = server->served[i].is_open_page = true; /* never answered */
    else
        answer(server, i, "404 Not Found", 0);
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
        answer(server, i, "431 Request Header Fields Too Large", 0);
}

static void transmit(struct snd_page_server *server, size_t i)
{
    size_t      head = server->served[i].head_length, sent = server->served[i].sent;
    const char *from = sent < head ? server->served[i].head + sent : server->page + (sent - head);
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

static void accept_one(struct snd_page_server *server)
{
    for (size_t i = 0; i < SND_SERVED_MAX; i++) {
        if (server->served[i].fd >= 0)
            continue;
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            server->served[i].fd = fd;
        return;
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
