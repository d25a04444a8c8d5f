/* A program that computes in `spins` for ever. */
volatile int n;

void spins(void) {
    for (;;) n++;
}

int main(void) {
    spins();
}
