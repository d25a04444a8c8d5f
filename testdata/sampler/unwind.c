/* A library without frame pointers: its unwind information has a rule for each push. */
__attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }
__attribute__((noinline)) int caller(int x, int y) { volatile int room[40]; room[x & 31] = y; return leaf(room[y & 31]) + leaf(x) + y; }
int outer(int x) { int sum = 0; for (int i = 0; i < x; i++) sum += caller(i, sum); return sum; }
