// How fast memory is for one thread and for two: the arrays that a step by Störmer and Verlet reads and writes, and next
// to no arithmetic.
//
//     cc -O3 -march=native -pthread stream.c -o stream;  ./stream masses tries
//
// q, p and what rounding left of both are read and written, the force is written: 10 numbers of 8 bytes for each mass,
// with the line that a processor reads before it writes there. Threads are bound to a core each, one and two take turns.
// Prints the least seconds of a pass with one thread and with two.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double *room[5];
static size_t n;
static atomic_int begun, done;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static cpu_set_t core(int k) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(k, &set);
    return set;
}

static void pass(size_t first, size_t end) {
    double *restrict q = room[0], *restrict p = room[1], *restrict cq = room[2], *restrict cp = room[3];
    double *restrict force = room[4];
    for (size_t k = first; k < end; k++) {
        double f = q[k] + cp[k];
        p[k] += f;
        cp[k] = f;
        q[k] += p[k] + cq[k];
        cq[k] = f;
        force[k] = f;
    }
}

static void *help(void *unused) {
    for (int turn = 1;; turn++) {
        while (atomic_load(&begun) < turn)
            if (atomic_load(&begun) < 0) return unused;
        pass(n / 2, n);
        atomic_store(&done, turn);
    }
}

int main(int count, char **given) {
    if (count != 3) return 1;
    n = strtoul(given[1], 0, 10);
    int tries = atoi(given[2]), passes = n < 400000 ? 20 : 2;
    for (int i = 0; i < 5; i++) {
        room[i] = aligned_alloc(64, (8 * n + 63) / 64 * 64);
        memset(room[i], 0, 8 * n);
    }
    pthread_t helper;
    pthread_attr_t how;
    cpu_set_t own = core(0), other = core(1);
    pthread_attr_init(&how);
    // The helper begins on its own core: a first thread with real-time priority would not let it begin on the other.
    pthread_attr_setaffinity_np(&how, sizeof other, &other);
    pthread_setaffinity_np(pthread_self(), sizeof own, &own);
    if (pthread_create(&helper, &how, help, 0)) return 1;
    double one = 1e9, two = 1e9;
    int turn = 0;
    for (int k = 0; k < tries; k++) {
        double clock = now();
        for (int i = 0; i < passes; i++) pass(0, n);
        double spent = (now() - clock) / passes;
        one = spent < one ? spent : one;
        clock = now();
        for (int i = 0; i < passes; i++) {
            atomic_store(&begun, ++turn);
            pass(0, n / 2);
            while (atomic_load(&done) < turn) continue;
        }
        spent = (now() - clock) / passes;
        two = spent < two ? spent : two;
    }
    atomic_store(&begun, -1);
    pthread_join(helper, 0);
    printf("%.6e %.6e\n", one, two);
    return 0;
}
