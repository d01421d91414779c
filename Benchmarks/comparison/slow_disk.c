/*
 * A disk that takes its time: preloaded into a server, no flush returns before HEADROOM_FLUSH_MICROSECONDS have passed
 * since it was asked for. The flush itself still happens.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static struct timespec end_of_flush(void)
{
    const char *microseconds = getenv("HEADROOM_FLUSH_MICROSECONDS");
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += microseconds ? strtol(microseconds, NULL, 10) * 1000L : 0;
    end.tv_sec += end.tv_nsec / 1000000000L;
    end.tv_nsec %= 1000000000L;
    return end;
}

static int flush_slowly(const char *name, int file)
{
    const struct timespec end = end_of_flush();
    int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const int result = flush(file);
    const int error = errno;
    /* A signal wakes it early; the time it is to sleep until stays. */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
    errno = error;
    return result;
}

int fdatasync(int file)
{
    return flush_slowly("fdatasync", file);
}

int fsync(int file)
{
    return flush_slowly("fsync", file);
}
