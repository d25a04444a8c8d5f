/* A program that has managed code compute for ever: that of the library in its argument, ExcelReader.Native,
   which reads rows of text from memory. */
#include <dlfcn.h>
#include <stdio.h>

enum { CSV = 4, OK = 0, BYTES = 4096 };

typedef int (*open_t)(const char *, int, int, const void *, void **);
typedef int (*rows_t)(void *, int, void **);
typedef int (*next_t)(void *, char *, int, int *);
typedef void (*close_t)(void *);

int main(int count, char **words) {
    void *library = count == 2 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (!library) {
        puts(count == 2 ? dlerror() : "usage: reader LIBRARY");
        return 1;
    }
    open_t open = (open_t)dlsym(library, "xl_open_memory");
    rows_t rows = (rows_t)dlsym(library, "xl_rows_open");
    next_t next = (next_t)dlsym(library, "xl_rows_next");
    close_t close_rows = (close_t)dlsym(library, "xl_rows_close");
    close_t close = (close_t)dlsym(library, "xl_close");
    char row[BYTES];
    for (long long turns = 0;; turns++) {
        void *book, *cursor;
        int written, read = 0;
        if (open("a,b\n1,2\n3,4\n", 12, CSV, NULL, &book) != OK || rows(book, 0, &cursor) != OK) return 2;
        while (next(cursor, row, BYTES, &written) == OK && written > 0 && read < 100) read++;
        close_rows(cursor);
        close(book);
        if (turns == 0) {
            printf("reads %d\n", read);
            fflush(stdout);
        }
    }
}
