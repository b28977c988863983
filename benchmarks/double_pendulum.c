/* Simpson's variational integrator (P2N3Q4Lob) for the double pendulum, written by hand.
 *
 * L = m l^2 (v0^2 + v1^2/2 + v0 v1 cos(q0 - q1)) + m g l (2 cos q0 + cos q1)
 *
 * Unknowns are the increments z = (q_mid - q, q_end - q). Predictor: the last step's parabola.
 * Newton stops as the library does: when the increment that would come next is negligible.
 * The comparator of benchmarks/core.py; usage: double_pendulum STEPS H. Prints processor seconds, the last state and iterations.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNROLL _Pragma("GCC unroll 5") /* short loops of fixed length: gcc leaves some of them rolled otherwise */

typedef struct { double Lq[2], Lv[2], Lqq[3], Lqv[4], Lvv[3]; } point; /* symmetric: 00, 01, 11 */

static inline void at(const double *q, const double *v, double m, double l, double g, point *e)
{
    double a = m * l * l, b = m * g * l;
    double s = sin(q[0] - q[1]), c = cos(q[0] - q[1]);
    double s0 = sin(q[0]), c0 = cos(q[0]), s1 = sin(q[1]), c1 = cos(q[1]);
    double vv = a * v[0] * v[1];
    e->Lq[0] = -vv * s - 2 * b * s0;
    e->Lq[1] = vv * s - b * s1;
    e->Lv[0] = a * (2 * v[0] + v[1] * c);
    e->Lv[1] = a * (v[1] + v[0] * c);
    e->Lqq[0] = -vv * c - 2 * b * c0;
    e->Lqq[1] = vv * c;
    e->Lqq[2] = -vv * c - b * c1;
    e->Lqv[0] = -a * v[1] * s; /* dq0 dv0 */
    e->Lqv[1] = -a * v[0] * s; /* dq0 dv1 */
    e->Lqv[2] = a * v[1] * s;
    e->Lqv[3] = a * v[0] * s;
    e->Lvv[0] = 2 * a;
    e->Lvv[1] = a * c;
    e->Lvv[2] = a;
}

/* Gaussian elimination with partial pivoting; the right-hand side is the fifth column. */
static inline void solve4(double A[4][5], double *x)
{
    UNROLL for (int k = 0; k < 4; k++) {
        int best = k;
        UNROLL for (int i = k + 1; i < 4; i++)
            if (fabs(A[i][k]) > fabs(A[best][k])) best = i;
        if (best != k)
            for (int j = k; j < 5; j++) { double t = A[k][j]; A[k][j] = A[best][j]; A[best][j] = t; }
        double inverse = 1.0 / A[k][k];
        UNROLL for (int i = k + 1; i < 4; i++) {
            double r = A[i][k] * inverse;
            UNROLL for (int j = k + 1; j < 5; j++) A[i][j] -= r * A[k][j];
        }
    }
    UNROLL for (int k = 3; k >= 0; k--) {
        double t = A[k][4];
        UNROLL for (int j = k + 1; j < 4; j++) t -= A[k][j] * x[j];
        x[k] = t / A[k][k];
    }
}

/* x + y, with what rounding leaves over carried to the next sum */
static inline void add(double *x, double y, double *carry)
{
    double b = y + *carry, total = *x + b, rounded = total - *x;
    *carry = (*x - (total - rounded)) + (b - rounded);
    *x = total;
}

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 1000000;
    double h = argc > 2 ? atof(argv[2]) : 0.01;
    double m = argc > 3 ? atof(argv[3]) : 1.0, l = argc > 4 ? atof(argv[4]) : 0.25, g = argc > 5 ? atof(argv[5]) : 9.81;
    double q[2] = {M_PI / 4, M_PI / 3}, p[2] = {0, 0}, eq[2] = {0, 0}, ep[2] = {0, 0}, z[4] = {0, 0, 0, 0};
    static const double D[3][3] = {{-3, 4, -1}, {-1, 0, 1}, {1, -4, 3}}, B[3] = {1. / 6, 2. / 3, 1. / 6};
    double *out = malloc(sizeof(double) * 4 * (size_t)(steps + 1));
    long iterations = 0;
    struct timespec t0, t1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    for (long k = 0; k < steps; k++) {
        double impulse[2] = {0, 0}, before = 0, scale = 0;
        UNROLL for (int j = 0; j < 2; j++) { /* the last parabola over the next interval */
            double z1 = z[j], z2 = z[2 + j];
            z[j] = -3 * z1 + 2 * z2;
            z[2 + j] = -8 * z1 + 5 * z2;
        }
        UNROLL for (int i = 0; i < 4; i++) scale = fmax(scale, fabs(z[i]));
        for (int it = 1; it <= 50; it++) {
            double A[4][5] = {{0}}, G[2][4] = {{0}}, dz[4];
            impulse[0] = impulse[1] = 0;
            A[0][4] = p[0];
            A[1][4] = p[1];
            UNROLL for (int i = 0; i < 3; i++) {
                double Q[2], V[2], hb = h * B[i], b = B[i];
                point e;
                UNROLL for (int j = 0; j < 2; j++) {
                    Q[j] = q[j] + (i == 1 ? z[j] : i == 2 ? z[2 + j] : 0);
                    V[j] = (D[i][1] * z[j] + D[i][2] * z[2 + j]) / h;
                }
                at(Q, V, m, l, g, &e);
                UNROLL for (int j = 0; j < 2; j++) {
                    impulse[j] += hb * e.Lq[j];
                    UNROLL for (int v = 0; v < 2; v++)
                        A[2 * v + j][4] += (i == v ? hb * e.Lq[j] : 0) + b * D[i][v] * e.Lv[j];
                    UNROLL for (int w = 1; w < 3; w++)
                        UNROLL for (int n = 0; n < 2; n++) {
                            double dLq = (i == w ? h * h * b * e.Lqq[j + n] : 0) + h * b * D[i][w] * e.Lqv[2 * j + n];
                            double dLv = (i == w ? h * b * e.Lqv[2 * n + j] : 0) + b * D[i][w] * e.Lvv[j + n];
                            G[j][2 * (w - 1) + n] += dLq;
                            UNROLL for (int v = 0; v < 2; v++)
                                A[2 * v + j][2 * (w - 1) + n] += (i == v ? dLq : 0) + D[i][v] * dLv;
                        }
                }
            }
            UNROLL for (int i = 0; i < 4; i++) A[i][4] *= -h;
            solve4(A, dz);
            double size = 0;
            UNROLL for (int i = 0; i < 4; i++) {
                z[i] += dz[i];
                size = fmax(size, fabs(dz[i]));
                scale = fmax(scale, fabs(z[i]));
            }
            UNROLL for (int j = 0; j < 2; j++)
                UNROLL for (int i = 0; i < 4; i++) impulse[j] += G[j][i] * dz[i] / h;
            iterations++;
            double rate = it > 1 ? size / before : 1;
            if (size <= 2.2e-19 * scale ||
                (it > 1 && (size * rate * rate <= 2.2e-19 * scale || (rate > 0.5 && size <= 1e-7 * scale))))
                break;
            before = size;
        }
        UNROLL for (int j = 0; j < 2; j++) {
            add(&q[j], z[2 + j], &eq[j]);
            add(&p[j], impulse[j], &ep[j]);
        }
        out[4 * k] = q[0];
        out[4 * k + 1] = q[1];
        out[4 * k + 2] = p[0];
        out[4 * k + 3] = p[1];
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    printf("%.9f %.17g %.17g %ld\n", (t1.tv_sec - t0.tv_sec) + 1e-9 * (t1.tv_nsec - t0.tv_nsec), q[0], q[1], iterations);
    free(out);
    return 0;
}
