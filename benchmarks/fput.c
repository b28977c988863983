// An FPUT-β chain between walls, by hand: Störmer–Verlet, plain and with compensated sums, and Simpson (P2N3Q4Lob).
//
//     cc -O3 -march=native fput.c -o fput -lm;  ./fput plain | compensated | simpson  masses steps
//
// Prints seconds of processor time per step, iterations per step, and q in the middle of the chain.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static inline double pull(double r) { return r + r * r * r; }

static void forces(int n, const double *restrict x, double *restrict f) {
    for (int k = 1; k < n - 1; k++) f[k] = pull(x[k + 1] - x[k]) - pull(x[k] - x[k - 1]);
    f[0] = pull(x[1] - x[0]) - x[0];
    f[n - 1] = -x[n - 1] - pull(x[n - 1] - x[n - 2]);
}

static inline void add(double *x, double *carry, double move) {  // Knuth's two-sum
    double a = *x, b = move + *carry, total = a + b, rounded = total - a;
    *carry = (a - (total - rounded)) + (b - rounded);
    *x = total;
}

int main(int count, char **given) {
    if (count != 4) return 1;
    int n = atoi(given[2]), steps = atoi(given[3]);
    double h = 0.1, *room[10];
    for (int i = 0; i < 10; i++) {
        room[i] = aligned_alloc(64, 8 * (size_t)(n + 8 - n % 8));
        memset(room[i], 0, 8 * (size_t)n);
    }
    double *q = room[0], *p = room[1], *cq = room[2], *cp = room[3], *f0 = room[4], *fm = room[5], *f1 = room[6];
    double *z1 = room[7], *z2 = room[8], *x = room[9];
    for (int k = 0; k < n; k++) q[k] = 0.5 * sin(M_PI * 300 * (k + 1) / (n + 1)) + 0.2 * sin(0.37 * k);
    long iterations = 0;
    double clock = now();
    if (!strcmp(given[1], "plain")) {
        forces(n, q, f0);
        for (int k = 0; k < n; k++) p[k] += 0.5 * h * f0[k];
        for (int step = 0; step < steps; step++) {
            for (int k = 0; k < n; k++) q[k] += h * p[k];
            for (int k = 1; k < n - 1; k++) p[k] += h * (pull(q[k + 1] - q[k]) - pull(q[k] - q[k - 1]));
            p[0] += h * (pull(q[1] - q[0]) - q[0]);
            p[n - 1] += h * (-q[n - 1] - pull(q[n - 1] - q[n - 2]));
        }
    } else if (!strcmp(given[1], "compensated")) {
        for (int step = 0; step < steps; step++) {
            double push = step ? h : 0.5 * h;
            forces(n, q, f0);
            for (int k = 0; k < n; k++) {
                add(p + k, cp + k, push * f0[k]);
                add(q + k, cq + k, h * p[k]);
            }
        }
    } else {
        // z1 = h p/2 + h² (f0/12 + fm/24), z2 = h p + h² (f0/6 + fm/3), fm at q + z1: fixed-point iteration
        forces(n, q, f0);
        for (int step = 0; step < steps; step++) {
            for (int k = 0; k < n; k++) z1[k] = step ? 2 * z2[k] - 3 * z1[k] : 0.5 * h * p[k];
            double size = 1, before = 1;
            for (int i = 0; i < 60; i++) {
                for (int k = 0; k < n; k++) x[k] = q[k] + z1[k];
                forces(n, x, fm);
                double top = 0, move = 0;
                for (int k = 0; k < n; k++) {
                    double z = 0.5 * h * p[k] + h * h * (f0[k] / 12 + fm[k] / 24), d = fabs(z - z1[k]), a = fabs(z);
                    z1[k] = z;
                    move = d > move ? d : move;
                    top = a > top ? a : top;
                }
                iterations++;
                before = size;
                size = move / top;
                if (i && (size * size / before <= 2.2e-19 || (size > 0.5 * before && size < 1e-13))) break;
            }
            for (int k = 0; k < n; k++) {
                z2[k] = h * p[k] + h * h * (f0[k] / 6 + fm[k] / 3);
                x[k] = q[k] + z2[k];
            }
            forces(n, x, f1);
            for (int k = 0; k < n; k++) {
                add(q + k, cq + k, z2[k]);
                add(p + k, cp + k, h * (f0[k] / 6 + 2.0 / 3 * fm[k] + f1[k] / 6));
            }
            double *swap = f0;
            f0 = f1;
            f1 = swap;
        }
    }
    printf("%.6e %.3f %.15g\n", (now() - clock) / steps, (double)iterations / steps, q[n / 2]);
    return 0;
}
