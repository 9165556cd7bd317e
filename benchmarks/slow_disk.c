/* Makes every fdatasync take at least SLOW_DISK_NS nanoseconds, as on a disk that gives a second fewer of them: what a
 * store makes of a batch shows only where waiting for the disk is what costs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int fdatasync(int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    long long until = now_ns() + atoll(getenv("SLOW_DISK_NS"));
    int result = real(file);
    long long left = until - now_ns();
    if (left > 0) {
        struct timespec rest = {left / 1000000000LL, left % 1000000000LL};
        nanosleep(&rest, NULL);
    }
    return result;
}
