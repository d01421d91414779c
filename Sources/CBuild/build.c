#include "CBuild.h"

// Package.swift defines it, from the environment of script/release.
#ifndef HEADROOM_COMMIT
#define HEADROOM_COMMIT ""
#endif

const char *headroom_commit(void) {
    return HEADROOM_COMMIT;
}
