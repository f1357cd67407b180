/* Stands for a file system whose files cannot be mapped into memory for writing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

typedef void *(*mapper)(void *, size_t, int, int, int, off_t);

static void *map(const char *name, void *at, size_t size, int rights, int flags, int file, off_t from)
{
    if (file >= 0 && (flags & MAP_SHARED) && (rights & PROT_WRITE)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return ((mapper)dlsym(RTLD_NEXT, name))(at, size, rights, flags, file, from);
}

void *mmap(void *at, size_t size, int rights, int flags, int file, off_t from)
{
    return map("mmap", at, size, rights, flags, file, from);
}

void *mmap64(void *at, size_t size, int rights, int flags, int file, off_t from)
{
    return map("mmap64", at, size, rights, flags, file, from);
}
