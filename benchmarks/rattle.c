/* RATTLE by hand for the double pendulum in the plane: two points, two rods, each step solved to round-off.

   rattle steps h   prints seconds of the processor, the state reached, and the largest |g| at the end. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double m1 = 1.0, m2 = 2.0, gravity = 9.81, l1 = 1.0, l2 = 0.7;

int main(int count, char **given) {
  long steps = atol(given[1]);
  double h = atof(given[2]);
  double a = 0.3, b = 0.2;
  double q[4] = {l1 * sin(a), -l1 * cos(a), l1 * sin(a) + l2 * sin(b), -l1 * cos(a) - l2 * cos(b)};
  double p[4] = {0, 0, 0, 0};
  double w1 = 1 / m1, w2 = 1 / m2, push = 0, pull = 0; /* multipliers, kept as the guess */
  double l11 = l1 * l1, l22 = l2 * l2;
  clock_t begin = clock();
  for (long k = 0; k < steps; k++) {
    double x = q[0], y = q[1], dx = q[2] - q[0], dy = q[3] - q[1];
    double f[4] = {p[0], p[1] - 0.5 * h * m1 * gravity, p[2], p[3] - 0.5 * h * m2 * gravity};
    double e[4], z[4];
    double g0 = 1, g1 = 1;
    for (int i = 0; i < 50; i++) {
      e[0] = f[0] + x * push - dx * pull;
      e[1] = f[1] + y * push - dy * pull;
      e[2] = f[2] + dx * pull;
      e[3] = f[3] + dy * pull;
      z[0] = q[0] + h * w1 * e[0];
      z[1] = q[1] + h * w1 * e[1];
      z[2] = q[2] + h * w2 * e[2];
      z[3] = q[3] + h * w2 * e[3];
      double ex = z[2] - z[0], ey = z[3] - z[1];
      double h0 = 0.5 * (z[0] * z[0] + z[1] * z[1] - l11), h1 = 0.5 * (ex * ex + ey * ey - l22);
      double size = fabs(h0) + fabs(h1);
      if (size < 1e-15 || (i > 1 && size >= fabs(g0) + fabs(g1))) break;
      g0 = h0, g1 = h1;
      double A = h * w1 * (z[0] * x + z[1] * y), B = -h * w1 * (z[0] * dx + z[1] * dy);
      double C = -h * w1 * (ex * x + ey * y), D = h * (w1 + w2) * (ex * dx + ey * dy);
      double det = 1 / (A * D - B * C);
      push -= det * (D * h0 - B * h1);
      pull -= det * (A * h1 - C * h0);
    }
    for (int i = 0; i < 4; i++) q[i] = z[i], p[i] = e[i];
    p[1] -= 0.5 * h * m1 * gravity;
    p[3] -= 0.5 * h * m2 * gravity;
    x = q[0], y = q[1], dx = q[2] - q[0], dy = q[3] - q[1];
    double c0 = w1 * (x * p[0] + y * p[1]), c1 = dx * (w2 * p[2] - w1 * p[0]) + dy * (w2 * p[3] - w1 * p[1]);
    double A = w1 * (x * x + y * y), B = -w1 * (x * dx + y * dy), D = (w1 + w2) * (dx * dx + dy * dy);
    double det = 1 / (A * D - B * B), r = -det * (D * c0 - B * c1), s = -det * (A * c1 - B * c0);
    p[0] += x * r - dx * s;
    p[1] += y * r - dy * s;
    p[2] += dx * s;
    p[3] += dy * s;
  }
  double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
  printf("%.9e %.17g %.17g %.17g %.17g %.3e\n", seconds, q[0], q[1], q[2], q[3],
         fmax(fabs(q[0] * q[0] + q[1] * q[1] - l11),
              fabs((q[2] - q[0]) * (q[2] - q[0]) + (q[3] - q[1]) * (q[3] - q[1]) - l22)));
  return 0;
}
