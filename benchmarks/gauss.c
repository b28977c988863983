/* PsNsQ2sGau for L = 1/2 sum m_i v_i^2 - V(q), written by hand: the comparator of benchmarks/orders.py.
 *
 * For a constant diagonal mass the scheme is Gauss' collocation. With a_j the acceleration at q + z_j,
 *
 *     z_i = h c_i v + h^2 sum_j (A A)_ij a_j          i = 1 ... S, the stages
 *     q  += h v + h^2 sum_j b_j (1 - c_j) a_j
 *     v  += h sum_j b_j a_j
 *
 * The stages lie side by side in vectors: x[coordinate][stage]. The equations are iterated to round-off as the library
 * does: until the increment that would come next is negligible, or increments no longer shrink. A step starts from the
 * last step's accelerations, whose polynomial is prolonged over the next interval. Sums of q and v are compensated.
 *
 * For x86-64 with AVX2 or AVX-512. Compile with -DS=8 (stages) and -DBODIES=0 (Kepler, in the plane) or -DBODIES=6 (so
 * many bodies in space).
 */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) && S > 4
#define V 8
#define ROOT _mm512_sqrt_pd
#define LARGER(x, y) _mm512_max_pd(x, y)
#else
#define V 4
#define ROOT _mm256_sqrt_pd
#define LARGER(x, y) _mm256_max_pd(x, y)
#endif

#define K ((S + V - 1) / V) /* vectors of stages; stages beyond S have coefficients of zero */
#if BODIES
#define N (3 * BODIES)
#define BLOCK (K == 1 ? 9 : K == 2 ? 6 : 3) /* coordinates at a time: their sums fit into the registers */
#else
#define N 2
#define BLOCK 2
#endif
#define UNROLL _Pragma("GCC unroll 32")
#define INLINE static inline __attribute__((always_inline))

typedef double vec __attribute__((vector_size(8 * V)));
typedef int64_t bits __attribute__((vector_size(8 * V)));

static const double NEGLIGIBLE = 2.2e-19, ACCEPTABLE = 1e-7; /* as in the library, relative to the step */
static const int MOST = 60;

INLINE vec magnitude(vec x) { return (vec)((bits)x & INT64_MAX); }

INLINE double largest(vec x)
{
    double top = x[0];
    UNROLL for (int i = 1; i < V; i++) top = x[i] > top ? x[i] : top;
    return top;
}

/* x + y, with what rounding leaves over carried to the next sum */
INLINE void add(double *x, double y, double *carry)
{
    double b = y + *carry, total = *x + b, rounded = total - *x;
    *carry = (*x - (total - rounded)) + (b - rounded);
    *x = total;
}

/* Accelerations a at q + z, for V stages at a time. mu: k of Kepler's problem, or G m of each body. */
INLINE void accelerate(const double *q, vec z[N][K], const double *mu, vec a[N][K])
{
#if BODIES
    for (int k = 0; k < K; k++) {
        vec x[N], sum[N];
        UNROLL for (int d = 0; d < N; d++) x[d] = q[d] + z[d][k];
        UNROLL for (int d = 0; d < N; d++) sum[d] = x[d] - x[d];
        UNROLL for (int i = 0; i < BODIES; i++)
            UNROLL for (int j = i + 1; j < BODIES; j++) {
                vec dx = x[3 * j] - x[3 * i], dy = x[3 * j + 1] - x[3 * i + 1], dz = x[3 * j + 2] - x[3 * i + 2];
                vec r2 = dx * dx + dy * dy + dz * dz;
                vec w = 1.0 / (r2 * ROOT(r2)), wi = mu[i] * w, wj = mu[j] * w;
                sum[3 * i] += wj * dx;
                sum[3 * i + 1] += wj * dy;
                sum[3 * i + 2] += wj * dz;
                sum[3 * j] -= wi * dx;
                sum[3 * j + 1] -= wi * dy;
                sum[3 * j + 2] -= wi * dz;
            }
        UNROLL for (int d = 0; d < N; d++) a[d][k] = sum[d];
    }
#else
    UNROLL for (int k = 0; k < K; k++) {
        vec x = q[0] + z[0][k], y = q[1] + z[1][k];
        vec r2 = x * x + y * y, w = -mu[0] / (r2 * ROOT(r2));
        a[0][k] = w * x;
        a[1][k] = w * y;
    }
#endif
}

/* z = first + W a. Returns the largest change of z; with `scale`, the largest z as well. */
INLINE double combine(vec W[S][K], vec a[N][K], vec first[N][K], vec z[N][K], double *scale)
{
    vec change = first[0][0] - first[0][0], size = change;
    for (int d = 0; d < N; d += BLOCK) {
        vec sum[BLOCK][K];
        UNROLL for (int e = 0; e < BLOCK; e++) UNROLL for (int k = 0; k < K; k++) sum[e][k] = first[d + e][k];
        UNROLL for (int j = 0; j < S; j++)
            UNROLL for (int e = 0; e < BLOCK; e++) {
                double aj = ((const double *)a[d + e])[j];
                UNROLL for (int k = 0; k < K; k++) sum[e][k] += W[j][k] * aj;
            }
        UNROLL for (int e = 0; e < BLOCK; e++)
            UNROLL for (int k = 0; k < K; k++) {
                change = LARGER(change, magnitude(sum[e][k] - z[d + e][k]));
                if (scale) size = LARGER(size, magnitude(sum[e][k]));
                z[d + e][k] = sum[e][k];
            }
    }
    if (scale) *scale = largest(size);
    return largest(change);
}

/* Steps of length h from q, v, which are left at the end; the states of all steps go to `out` unless it is null.
 * Tables by rows of S: squared = A A, prolong takes accelerations at the last step's stages to those of the next.
 * Returns how many times accelerations were evaluated, or minus the step that did not converge. */
long run(long steps, double h, double *q, double *v, const double *mu, const double *c, const double *b,
         const double *squared, const double *prolong, double *out)
{
    vec W[S][K], start[S][K], ch[K], last_q[K], last_v[K], z[N][K], a[N][K], first[N][K];
    double carry_q[N] = {0}, carry_v[N] = {0};
    long count = 1;
    memset(W, 0, sizeof W);
    memset(start, 0, sizeof start);
    memset(ch, 0, sizeof ch);
    memset(last_q, 0, sizeof last_q);
    memset(last_v, 0, sizeof last_v);
    memset(z, 0, sizeof z);
    for (int i = 0; i < S; i++) { /* columns of the tables, so that a row of vectors holds all stages */
        ch[i / V][i % V] = h * c[i];
        last_q[i / V][i % V] = h * h * b[i] * (1 - c[i]);
        last_v[i / V][i % V] = h * b[i];
        for (int j = 0; j < S; j++) {
            double sum = 0;
            for (int m = 0; m < S; m++) sum += squared[S * i + m] * prolong[S * m + j];
            W[j][i / V][i % V] = h * h * squared[S * i + j];
            start[j][i / V][i % V] = h * h * sum;
        }
    }
    accelerate(q, z, mu, a);
    for (long step = 0; step < steps; step++) {
        double scale, before = 0;
        UNROLL for (int d = 0; d < N; d++) UNROLL for (int k = 0; k < K; k++) first[d][k] = ch[k] * v[d];
        combine(start, a, first, z, &scale);
        for (int iteration = 1;; iteration++) {
            accelerate(q, z, mu, a);
            double size = combine(W, a, first, z, 0);
            count++;
            if (size <= NEGLIGIBLE * scale) break;
            if (iteration > 1) {
                double rate = size / before;
                if (rate < 0.5 ? size * rate <= NEGLIGIBLE * scale : size <= ACCEPTABLE * scale) break;
            }
            if (iteration == MOST || !(size < 1e300)) return -1 - step;
            before = size;
        }
        UNROLL for (int d = 0; d < N; d++) {
            vec dq = last_q[0] * a[d][0], dv = last_v[0] * a[d][0];
            UNROLL for (int k = 1; k < K; k++) {
                dq += last_q[k] * a[d][k];
                dv += last_v[k] * a[d][k];
            }
            double sum_q = 0, sum_v = 0;
            UNROLL for (int i = 0; i < V; i++) {
                sum_q += dq[i];
                sum_v += dv[i];
            }
            add(&q[d], h * v[d] + sum_q, &carry_q[d]);
            add(&v[d], sum_v, &carry_v[d]);
        }
        if (out) {
            memcpy(out, q, sizeof(double) * N);
            memcpy(out + N, v, sizeof(double) * N);
            out += 2 * N;
        }
    }
    return count;
}
