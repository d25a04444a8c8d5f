/* Memory of each kind for native.cs.
   Built by the tests with: cc -shared -fPIC -O1 -fno-builtin -o libkeeping.so native.c */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

enum kind { MALLOC, CALLOC, REALLOC, POSIX_MEMALIGN, ALIGNED_ALLOC, MAP };

/* Not a tail call: the function stays on the stack. */
static void *touched(void *memory)
{
    *(volatile char *)memory = 1;
    return memory;
}

void *take(enum kind kind, size_t bytes)
{
    void *memory = NULL;
    switch (kind) {
    case MALLOC: memory = malloc(bytes); break;
    case CALLOC: memory = calloc(bytes / 8, 8); break;
    case REALLOC: memory = realloc(touched(malloc(bytes / 2)), bytes); break;
    case POSIX_MEMALIGN: if (posix_memalign(&memory, 256, bytes)) return NULL; break;
    case ALIGNED_ALLOC: memory = aligned_alloc(256, bytes); break;
    case MAP: memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); break;
    }
    return touched(memory);
}

void give(enum kind kind, void *memory, size_t bytes)
{
    if (kind == MAP) munmap(memory, bytes); else free(memory);
}
