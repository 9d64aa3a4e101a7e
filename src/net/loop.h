/* One network thread: a libcurl multi handle, an inbox, deadlines. Internal to the room.
 *
 * Everything below belongs to the loop's own thread but for `synced`. Other threads send *mail*:
 * nodes that lie inside the things they are about, so that posting allocates nothing and cannot
 * fail; they are delivered in order. libcurl waits in curl_multi_poll, which costs as much as
 * epoll up to ~128 transfers a loop; to change that, change this file only. */
#ifndef NET_LOOP_H
#define NET_LOOP_H
#include "base/thread.h"
#include "net/libcurl.h"
#include "net/net.h"
#include "net/probe.h"
#include "net/timers.h"

#define NET_THREADS_MAX 4

struct loop;
struct host;
struct easy;
struct mail {
    struct mail *next;
    void (*deliver)(struct loop *l, struct mail *m);
};
struct loop {
    struct net *net;
    pthread_t thread;
    CURLM *multi;
    struct timers timers; /* of struct transfer */
    size_t transfers;     /* that have arrived and not ended: room in the heap */
    uint64_t now;         /* clock of this turn */
    struct probe probe;
    struct lane *widened; /* since the last transfer_pump_widened */
    struct host *hosts;   /* by name: hosts.h */
    struct easy *losers;  /* hedge.h */
    struct lane *warm;    /* with connections opened ahead: warm.h */
    struct {
        pthread_mutex_t lock;
        struct mail *first, **last;
        bool quit;
    } synced;
};
int loop_start(struct loop *l, struct net *n, int number, struct hr_error *e);
void loop_quit(struct loop *l); /* once nothing is left to do: there is no more mail after it */
void loop_post(struct loop *l, struct mail *m);

struct net {
    int pid;
    int threads;
    bool trace;
    void (*log)(void *arg, int level, const char *text);
    void *log_arg;
    _Atomic uint32_t refs;   /* users: api/, and each client that is not closed */
    _Atomic uint32_t owners; /* users as a whole, and each running thread: the last frees */
    struct {
        pthread_mutex_t lock;
        pthread_cond_t drained;
        bool running;     /* threads and libcurl are there */
        uint32_t clients; /* not yet freed, closed ones too */
        bool abandoned; /* the last user left on a network thread: the last client ends the loops */
    } synced;
    struct curl_api curl;
    struct loop loops[NET_THREADS_MAX];
};
void net_disown(struct net *n);       /* a thread ends */
bool net_forked(const struct net *n); /* in a child of the process that made it */
int net_join(struct net *n,
             struct hr_error *e); /* for a new client: load libcurl, start the threads if need be */
void net_leave(struct net *n);    /* its memory goes */
void net_log(struct net *n, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
