/* A little HTTP/1.1 server on loopback over a directory, so that tests of loaders also run over the
 * asynchronous path: keep-alive, ranges (also suffixes), 404, replies that arrive in another order
 * than they were asked for, and now and then a 503. A thread per connection; it ends with the
 * process. */
#ifndef TESTS_SERVED_H
#define TESTS_SERVED_H
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char served_root[256];
static int served_fd = -1;
static unsigned served_count; /* atomic: requests */
static bool served_flaky;     /* every 37th reply is a 503 */
static bool served_stuck;     /* atomic: no replies */

static inline bool served_send(int fd, const void *data, size_t n)
{
    for (const char *p = data; n;) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

static inline bool served_reply(int fd, const char *request)
{
    char key[300] = "", path[600], head[300], *data = NULL;
    unsigned number = __atomic_add_fetch(&served_count, 1, __ATOMIC_RELAXED);
    if (sscanf(request, "GET /%299[^ ?]", key) != 1 && strncmp(request, "GET / ", 6) != 0)
        return false;
    usleep(number * 7919 % 3000);
    while (__atomic_load_n(&served_stuck, __ATOMIC_RELAXED))
        usleep(1000);
    if (served_flaky && number % 37 == 0)
        return served_send(fd, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 40);
    snprintf(path, sizeof path, "%s/%s", served_root, key);
    FILE *f = fopen(path, "rb");
    long size = 0, first = 0, n = -1;
    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) < 1 << 30 &&
        (data = malloc((size_t)size + 1))) {
        rewind(f);
        n = (long)fread(data, 1, (size_t)size, f) == size ? size : -1;
    }
    if (f)
        fclose(f);
    if (n < 0) {
        free(data);
        return served_send(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 45);
    }
    const char *range = strcasestr(request, "\r\nRange: bytes=");
    if (range) {
        range += strlen("\r\nRange: bytes=");
        char *end;
        first = strtol(range, &end, 10);
        n = *range == '-'                  ? -first
            : *end == '-' && end[1] >= '0' ? strtol(end + 1, NULL, 10) - first + 1
                                           : size - first;
        first = *range == '-' ? (n < size ? size - n : 0) : first;
        n = first + n > size ? size - first : n;
        if (n <= 0) {
            free(data);
            snprintf(head, sizeof head,
                     "HTTP/1.1 416 No\r\nContent-Length: 0\r\nContent-Range: bytes */%ld\r\n\r\n",
                     size);
            return served_send(fd, head, strlen(head));
        }
        snprintf(head, sizeof head,
                 "HTTP/1.1 206 Partial\r\nContent-Length: %ld\r\nContent-Range: bytes "
                 "%ld-%ld/%ld\r\n\r\n",
                 n, first, first + n - 1, size);
    } else {
        snprintf(head, sizeof head,
                 "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\nAccept-Ranges: bytes\r\n\r\n", n);
    }
    bool fine = served_send(fd, head, strlen(head)) && served_send(fd, data + first, (size_t)n);
    free(data);
    return fine;
}

static void *served_connection(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char request[4096];
    size_t n = 0;
    for (ssize_t got; (got = recv(fd, request + n, sizeof request - 1 - n, 0)) > 0;) {
        n += (size_t)got;
        request[n] = 0;
        char *end = strstr(request, "\r\n\r\n");
        if (!end)
            continue;
        if (!served_reply(fd, request))
            break;
        n = 0; /* clients do not pipeline */
    }
    close(fd);
    return NULL;
}

static void *served_accept(void *arg)
{
    (void)arg;
    int fd, one = 1;
    while ((fd = accept(served_fd, NULL, NULL)) >= 0) {
        pthread_t t;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (pthread_create(&t, NULL, served_connection, (void *)(intptr_t)fd))
            close(fd);
        else
            pthread_detach(t);
    }
    return NULL;
}

/* The port, or -1. */
static inline int served_start(const char *root)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    pthread_t t;
    signal(SIGPIPE, SIG_IGN);
    snprintf(served_root, sizeof served_root, "%s", root);
    served_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (served_fd < 0 || bind(served_fd, (struct sockaddr *)&a, sizeof a) ||
        listen(served_fd, 128) || getsockname(served_fd, (struct sockaddr *)&a, &n) ||
        pthread_create(&t, NULL, served_accept, NULL))
        return -1;
    pthread_detach(t);
    return ntohs(a.sin_port);
}

#endif
