#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int passes(const char *error) {
    const char *codes[] = {"UNKNOWN ", "UNAVAILABLE ", "OVERLOADED ", "DRAINING "};
    for (int i = 0; i < 4; i++)
        if (!strncmp(error, codes[i], strlen(codes[i]))) return 1;
    return 0;
}

/* A field's value without quotes and backslashes, "" where there is none; none is as long as this has room for. */
static const char *field(const char *reply, const char *name) {
    static char value[1024];
    size_t length = 0, name_length = strlen(name);
    const char *at = strchr(reply, ' ');
    for (int found = 0; at && !found; at = strchr(at, ' ')) {
        found = !strncmp(++at, name, name_length) && at[name_length] == '=';
        if (!(at = strchr(at, '='))) break;
        char end = *++at == '"' ? *at++ : ' ';
        for (; *at && *at != end; at++) {
            if (*at == '\\' && at[1]) at++;
            if (found && length < sizeof value - 1) value[length++] = *at;
        }
    }
    value[length] = 0;
    return value;
}

int main(int count, char **arguments) {
    struct timeval to_connect = {1, 0}, to_be_answered = {3, 0};
    redisContext *headroom = NULL;
    redisReply *reply = NULL;
    int unsure = 0; /* an attempt of this run may have counted the message */
    for (int attempt = 1; count == 3; attempt++) {
        if (!headroom) headroom = redisConnectWithTimeout("127.0.0.1", 6747, to_connect);
        if (!headroom) return 1;
        if (!headroom->err && redisSetTimeout(headroom, to_be_answered) == REDIS_OK)
            reply = redisCommand(headroom, "CONSUME %s key=%s", arguments[1], arguments[2]);
        if (reply && reply->type == REDIS_REPLY_STATUS) break;
        if (attempt == 3 || (reply && !passes(reply->str))) {
            fprintf(stderr, "failed: %s\n", reply ? reply->str : headroom->errstr);
            return 1;
        }
        unsure |= !reply || !strncmp(reply->str, "UNKNOWN ", 8);
        if (!reply) redisFree(headroom), headroom = NULL; /* after an error a context is of no use */
        freeReplyObject(reply), reply = NULL;
        usleep(attempt * 100000);
    }
    if (!reply) return 2;
    int replayed = *field(reply->str, "replayed") != 0;
    if (!strncmp(reply->str, "ALLOWED ", 8)) puts(replayed && !unsure ? "sent before" : "send it");
    puts(field(reply->str, "banner"));
    freeReplyObject(reply);
    redisFree(headroom);
    return 0;
}
