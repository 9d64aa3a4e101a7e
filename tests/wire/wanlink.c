/* A WAN between two network namespaces, in one process, for kernels without sch_netem.
 *
 *     wanlink NAMESPACE_A NAMESPACE_B INTERFACE ONE_WAY_US GBITS [LOSS_PPM]
 *
 * It opens a TUN device INTERFACE in each of the two, says "ready" and carries packets between
 * them, a thread for each direction, with a propagation delay, a rate, and a queue of one round
 * trip (at least 4 MB) that drops what finds it full. Segmentation is left to the receiver (TSO),
 * so packets are up to 64 KiB and one core carries more than 10 Gbit/s. */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SLOT      66048 /* the largest packet with its virtio header */
#define QUEUE     16384 /* packets under way */
#define AT_ONCE   32    /* packets read before those that are due are looked for again */
#define LEAST_MAX (4u << 20)

struct packet {
    uint64_t due;
    size_t size;
    char *bytes;
};
struct direction {
    int in, out;
    uint64_t delay_ns, most_bytes;
    double ns_per_byte;
    unsigned loss_ppm, seed;
    double free_at; /* when the wire has sent what it was given, in ns */
    struct packet queue[QUEUE];
    size_t head, tail; /* ever growing */
    char *spare[QUEUE + 1];
    size_t n_spare;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_tun(const char *namespace, const char *interface)
{
    char path[256];
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(path, sizeof path, "/var/run/netns/%s", namespace);
    int n = open(path, O_RDONLY | O_CLOEXEC);
    if (n < 0 || setns(n, CLONE_NEWNET))
        die(path);
    close(n);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        die("/dev/net/tun");
    snprintf(r.ifr_name, IFNAMSIZ, "%s", interface);
    if (ioctl(fd, TUNSETIFF, &r) || ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6))
        die("cannot set up the TUN device");
    return fd;
}

static char *slot(struct direction *d)
{
    char *bytes = d->n_spare ? d->spare[--d->n_spare] : malloc(SLOT);
    if (!bytes)
        die("no memory");
    return bytes;
}

static void deliver(struct direction *d, uint64_t now)
{
    for (; d->head != d->tail && d->queue[d->head % QUEUE].due <= now; d->head++) {
        struct packet *p = &d->queue[d->head % QUEUE];
        if (write(d->out, p->bytes, p->size) < 0) {
            /* the other end's queue is full: lost */
        }
        d->spare[d->n_spare++] = p->bytes;
    }
}

static bool lost(struct direction *d, uint64_t now)
{
    return (d->free_at - (double)now) / d->ns_per_byte > (double)d->most_bytes ||
           (d->loss_ppm && (unsigned)rand_r(&d->seed) % 1000000 < d->loss_ppm);
}

/* False: nothing there. */
static bool accept_one(struct direction *d)
{
    char *bytes = slot(d);
    ssize_t size = read(d->in, bytes, SLOT);
    uint64_t now = now_ns();
    if (d->free_at < (double)now)
        d->free_at = (double)now;
    if (size <= 0 || lost(d, now)) {
        d->spare[d->n_spare++] = bytes;
        return size > 0;
    }
    d->free_at += (double)size * d->ns_per_byte;
    d->queue[d->tail++ % QUEUE] =
        (struct packet){(uint64_t)d->free_at + d->delay_ns, (size_t)size, bytes};
    return true;
}

static void wait_for_more(const struct direction *d)
{
    struct pollfd p = {d->in, POLLIN, 0};
    struct timespec rest = {0};
    bool due = d->head != d->tail;
    if (due) {
        uint64_t now = now_ns(), then = d->queue[d->head % QUEUE].due;
        uint64_t left = then > now ? then - now : 0;
        rest = (struct timespec){(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    }
    ppoll(&p, 1, due ? &rest : NULL, NULL);
}

static void *pump(void *arg)
{
    struct direction *d = arg;
    prctl(PR_SET_TIMERSLACK, 1000);
    for (;;) {
        deliver(d, now_ns());
        int n = 0;
        while (n < AT_ONCE && d->tail - d->head < QUEUE && accept_one(d))
            n++;
        if (!n)
            wait_for_more(d);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct direction ways[2];
    pthread_t thread;
    if (argc < 6) {
        fputs("usage: wanlink NAMESPACE_A NAMESPACE_B INTERFACE ONE_WAY_US GBITS [LOSS_PPM]\n",
              stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int ends[2] = {open_tun(argv[1], argv[3]), open_tun(argv[2], argv[3])};
    double gbits = strtod(argv[5], NULL);
    uint64_t us = strtoull(argv[4], NULL, 10);
    uint64_t most = (uint64_t)(gbits * 1e9 / 8 * 2e-6 * (double)us);
    for (int i = 0; i < 2; i++) {
        struct direction *d = &ways[i];
        d->in = ends[i];
        d->out = ends[!i];
        d->delay_ns = us * 1000;
        d->most_bytes = most > LEAST_MAX ? most : LEAST_MAX;
        d->ns_per_byte = 8 / gbits;
        d->loss_ppm = argc > 6 ? (unsigned)strtoul(argv[6], NULL, 10) : 0;
        d->seed = (unsigned)i + 1;
        if (pthread_create(&thread, NULL, pump, d))
            die("cannot start a thread");
    }
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
