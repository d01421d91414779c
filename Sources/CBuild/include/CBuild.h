#ifndef HEADROOM_BUILD_H
#define HEADROOM_BUILD_H

/// The commit that a release was built from, in hexadecimal digits. Empty in a build for development, so that a commit
/// does not make anything new.
const char *headroom_commit(void);

#endif
