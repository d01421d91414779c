/*
 * The ceiling of script/bench: about the least that a server does which counts each message in PostgreSQL before it
 * answers.
 *
 * One thread reads requests and appends them to the array `waiting`. Each lane, a thread with one database connection,
 * takes what waits there, counts it with one statement and writes the replies.
 *
 * It is a yardstick and not a service: it has no plans, keys, receipts, deadlines or limits, and trusts its clients. If
 * something is not as the benchmark sends it, it ends, because a figure would be worth nothing then.
 *
 * With QUERIES, the folder of Headroom's statements, each lane counts with Headroom's instead, in Headroom's database
 * with numbered users, and with keys. Headroom beside that is what the service costs; that beside the ceiling is what
 * the statement costs.
 *
 * usage: ceiling PORT CONNINFO [QUERIES]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* Headroom's defaults. */
    LANES = 2,
    BATCH_MAXIMUM = 512,
    WAITING_MAXIMUM = 1 << 16,
    /* A power of two, so that positions may overflow. */
    IN_FLIGHT_MAXIMUM = 256,
    USER_TEXT_LENGTH = 36,
    KEY_LENGTH = 32,
    REPLY_MAXIMUM = 256,
    PARAMETERS_MAXIMUM = 24,
    PARAMETERS_LENGTH = 1024 + BATCH_MAXIMUM * 160,
    /* In PostgreSQL's catalog. */
    INT8_TYPE = 20,
    INT4_TYPE = 23,
    TEXT_TYPE = 25,
    UUID_TYPE = 2950,
    ARRAY_HEADER_LENGTH = 20
};

static const char CONSUME[] = "*2\r\n$7\r\nCONSUME\r\n$36\r\n", KEYED_CONSUME[] = "*3\r\n$7\r\nCONSUME\r\n$36\r\n";
static const char KEY[] = "$36\r\nkey=";
static const char PING[] = "*1\r\n$4\r\nPING\r\n";

/* The ordinal connects counts with users, in whatever order the rows are updated. */
static const char STATEMENT[] =
    "update message_usage as usage set message_count = usage.message_count + batch.messages, updated_at = now() "
    "from unnest($1::uuid[], $2::int[]) with ordinality as batch (user_id, messages, ordinal) "
    "where usage.user_id = batch.user_id and usage.billing_period = '2026-11' and now() < usage.usable_until "
    "and usage.message_count + batch.messages <= usage.\"limit\" "
    "returning batch.ordinal, usage.message_count, usage.\"limit\"";

/* A plan for the arrays of one batch would be made for each batch, and might read the whole table. */
static const char SETTINGS[] = "set plan_cache_mode = force_generic_plan";
/* Those of Headroom's lanes (LaneSettings.swift, PinnedSettings.swift) as far as they change what a statement costs.
 * The timeouts are longer, because no statement is repeated here. */
static const char HEADROOM_SETTINGS[] =
    "set role headroom_service; set search_path = pg_catalog, pg_temp; set enable_hashjoin = off; "
    "set enable_mergejoin = off; set enable_seqscan = off; set enable_bitmapscan = off; "
    "set max_parallel_workers_per_gather = 0; set plan_cache_mode = force_generic_plan; set jit = off; "
    "set lock_timeout = '60s'; set statement_timeout = '60s'; set idle_in_transaction_session_timeout = '60s'";
static const char USERS[] =
    "select usage.entitlement_version, usage.\"limit\", usage.billing_period, revised.buckets_revision "
    "from public.message_usage as usage, headroom.present_revisions as revised order by usage.user_id";

struct reply {
    char user[USER_TEXT_LENGTH], key[KEY_LENGTH];
    bool has_key;
    int used, limit;
    bool is_counted;
};

/* Two lanes may have requests of one connection. Each stores its replies here, and the one with the oldest writes all
 * that are due, so that a connection's replies are in the order of its requests. */
struct connection {
    int socket;
    size_t input_length;
    char input[1 << 14];
    /* Of the members below. */
    pthread_mutex_t lock;
    /* Numbers of requests; the reply of request n is at n % IN_FLIGHT_MAXIMUM. */
    unsigned received, answered;
    bool is_closed;
    struct reply replies[IN_FLIGHT_MAXIMUM];
};

struct request {
    struct connection *connection;
    unsigned position;
    unsigned char user[16];
    /* 0 until the request is counted. */
    int used;
    int limit;
};

/* The requests of one user that a statement counts. */
struct group {
    struct request **requests;
    int count;
};

/* Of a statement, in PostgreSQL's binary formats. */
struct parameters {
    int count;
    /* Where each one begins in `bytes`. */
    const char *values[PARAMETERS_MAXIMUM];
    char *end;
    char bytes[PARAMETERS_LENGTH];
};

struct lane {
    PGconn *database;
    /* Of Headroom's receipt. */
    unsigned char uuid[16];
    int64_t number;
    /* At the beginning of the batch, requests that the statement before has left out. */
    int left_out;
    struct request batch[BATCH_MAXIMUM];
    struct parameters parameters;
    char output[IN_FLIGHT_MAXIMUM * REPLY_MAXIMUM];
};

/* What Headroom caches. */
struct user {
    int64_t entitlement_version;
    int limit;
};

static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_wait = PTHREAD_COND_INITIALIZER;
static struct request waiting[WAITING_MAXIMUM];
static int waiting_count;
/* Requests that the reader has not appended to `waiting` yet. */
static struct request read_requests[WAITING_MAXIMUM];
static int read_count;
/* NULL without Headroom's statements. */
static const char *queries;
/* By their numbers. */
static struct user *users;
static int user_count, buckets_revision;
static char period[16];

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "ceiling: %s: %s\n", what, why);
    exit(1);
}

/* Connections */

static struct reply *reply_to(const struct request *request)
{
    return &request->connection->replies[request->position % IN_FLIGHT_MAXIMUM];
}

/* Unlocks a connection, and frees it if its client has closed it and no lane needs it any more. */
static void release(struct connection *connection)
{
    const bool is_over = connection->is_closed && connection->answered == connection->received;
    pthread_mutex_unlock(&connection->lock);
    if (is_over) {
        close(connection->socket);
        pthread_mutex_destroy(&connection->lock);
        free(connection);
    }
}

static void send_bytes(const struct connection *connection, const char *bytes, size_t length)
{
    /* The client may have closed the connection; the reader notices that. */
    if (write(connection->socket, bytes, length) < 0) {
        return;
    }
}

/* Writes the replies that are due, with the fields of Headroom's. The connection is locked. */
static void write_replies(struct lane *lane, struct connection *connection)
{
    size_t length = 0;
    for (; connection->answered != connection->received; connection->answered++) {
        struct reply *reply = &connection->replies[connection->answered % IN_FLIGHT_MAXIMUM];
        if (!reply->is_counted) {
            break;
        }
        reply->is_counted = false;
        length += (size_t)snprintf(lane->output + length, REPLY_MAXIMUM,
            "+ALLOWED user=%.*s plan=bench state=active tier=silent display=hidden used=%d limit=%d remaining=%d "
            "period=2026-11 resets=2026-12-01T00:00:00Z\r\n",
            USER_TEXT_LENGTH, reply->user, reply->used, reply->limit, reply->limit - reply->used);
    }
    if (length > 0) {
        send_bytes(connection, lane->output, length);
    }
}

/* Lanes */

static int take_batch(struct lane *lane)
{
    pthread_mutex_lock(&waiting_lock);
    while (waiting_count == 0 && lane->left_out == 0) {
        pthread_cond_wait(&some_wait, &waiting_lock);
    }
    const int room = BATCH_MAXIMUM - lane->left_out, count = waiting_count < room ? waiting_count : room;
    waiting_count -= count;
    memcpy(lane->batch + lane->left_out, waiting, (size_t)count * sizeof *waiting);
    memmove(waiting, waiting + count, (size_t)waiting_count * sizeof *waiting);
    if (waiting_count > 0) {
        pthread_cond_signal(&some_wait);
    }
    pthread_mutex_unlock(&waiting_lock);
    return lane->left_out + count;
}

static int by_user(const void *first, const void *second)
{
    const struct request *a = *(struct request *const *)first, *b = *(struct request *const *)second;
    const int order = memcmp(a->user, b->user, sizeof a->user);
    /* Requests of one user stay in the order of their arrival. */
    return order != 0 ? order : (a > b) - (a < b);
}

static void put(struct parameters *to, const void *bytes, size_t length)
{
    memcpy(to->end, bytes, length);
    to->end += length;
}

/* The number's lowest bytes, the highest of them first. */
static void put_number(struct parameters *to, int64_t number, size_t size)
{
    const uint64_t bytes = htobe64((uint64_t)number << (64 - 8 * size));
    put(to, &bytes, size);
}

static int get_int(const char *from)
{
    uint32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (int)be32toh(bytes);
}

static struct parameters *begin_parameters(struct lane *lane)
{
    lane->parameters.count = 0;
    lane->parameters.end = lane->parameters.bytes;
    return &lane->parameters;
}

static void begin_parameter(struct parameters *to)
{
    to->values[to->count++] = to->end;
}

/* One dimension, no nulls, subscripts from 1. */
static void begin_array(struct parameters *to, int type, int count)
{
    begin_parameter(to);
    const int header[] = {1, 0, type, count, 1};
    for (int i = 0; i < 5; i++) {
        put_number(to, header[i], 4);
    }
}

static void append(struct parameters *to, const void *bytes, size_t length)
{
    put_number(to, (int64_t)length, 4);
    put(to, bytes, length);
}

static void append_number(struct parameters *to, int64_t number, size_t size)
{
    put_number(to, (int64_t)size, 4);
    put_number(to, number, size);
}

static void append_users(struct parameters *to, const struct group *groups, int count)
{
    begin_array(to, UUID_TYPE, count);
    for (int i = 0; i < count; i++) {
        append(to, groups[i].requests[0]->user, 16);
    }
}

static void append_messages(struct parameters *to, const struct group *groups, int count, int type, size_t size)
{
    begin_array(to, type, count);
    for (int i = 0; i < count; i++) {
        append_number(to, groups[i].count, size);
    }
}

static void append_equal(struct parameters *to, int number, int count)
{
    begin_array(to, INT4_TYPE, count);
    for (int i = 0; i < count; i++) {
        append_number(to, number, 4);
    }
}

static PGresult *execute(struct lane *lane, const char *statement)
{
    const struct parameters *parameters = &lane->parameters;
    int lengths[PARAMETERS_MAXIMUM], formats[PARAMETERS_MAXIMUM];
    const char *end = parameters->end;
    for (int i = parameters->count - 1; i >= 0; i--) {
        lengths[i] = (int)(end - parameters->values[i]);
        formats[i] = 1;
        end = parameters->values[i];
    }
    PGresult *result
        = PQexecPrepared(lane->database, statement, parameters->count, parameters->values, lengths, formats, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fail("the statement", PQerrorMessage(lane->database));
    }
    return result;
}

static void note_count(const struct group *group, int used_after, int limit)
{
    for (int i = 0; i < group->count; i++) {
        group->requests[i]->used = used_after - group->count + i + 1;
        group->requests[i]->limit = limit;
    }
}

static void count_with_update(struct lane *lane, const struct group *groups, int count)
{
    struct parameters *parameters = begin_parameters(lane);
    append_users(parameters, groups, count);
    append_messages(parameters, groups, count, INT4_TYPE, 4);
    PGresult *result = execute(lane, "count");
    if (PQntuples(result) != count) {
        fail("the statement", "not every user was counted");
    }
    for (int row = 0; row < count; row++) {
        /* The low half of a bigint. */
        const int ordinal = get_int(PQgetvalue(result, row, 0) + 4);
        note_count(&groups[ordinal - 1], get_int(PQgetvalue(result, row, 1)), get_int(PQgetvalue(result, row, 2)));
    }
    PQclear(result);
}

/* Headroom's statements */

static const struct user *user_of(const struct group *group)
{
    /* The last 12 digits are the number. */
    long number = 0;
    for (int i = 10; i < 16; i++) {
        const unsigned char digits = group->requests[0]->user[i];
        number = number * 100 + (digits >> 4) * 10 + (digits & 15);
    }
    if (number >= user_count) {
        fail("a user", "has no row");
    }
    return &users[number];
}

/* headroom.count_batch and headroom.count_keyed_batch document the parameters and `counts`. */
static void count_with_headroom(struct lane *lane, const struct group *groups, int count, bool has_keys)
{
    struct parameters *parameters = begin_parameters(lane);
    begin_parameter(parameters);
    put_number(parameters, 0, 2);
    begin_parameter(parameters);
    put(parameters, lane->uuid, sizeof lane->uuid);
    begin_parameter(parameters);
    put_number(parameters, ++lane->number, 8);
    append_users(parameters, groups, count);
    begin_array(parameters, TEXT_TYPE, 1);
    append(parameters, period, strlen(period));
    append_equal(parameters, 1, count);
    append_messages(parameters, groups, count, INT8_TYPE, 8);
    begin_array(parameters, INT8_TYPE, count);
    for (int i = 0; i < count; i++) {
        append_number(parameters, user_of(&groups[i])->entitlement_version, 8);
    }
    if (has_keys) {
        begin_array(parameters, TEXT_TYPE, count);
        for (int i = 0; i < count; i++) {
            append(parameters, reply_to(groups[i].requests[0])->key, KEY_LENGTH);
        }
        begin_array(parameters, TEXT_TYPE, count);
        for (int i = 0; i < count; i++) {
            append(parameters, "consume", 7);
        }
        append_equal(parameters, 1, count);
        append_messages(parameters, groups, count, INT8_TYPE, 8);
        append_equal(parameters, 0, count);
        /* Empty lists of parts, plans and limits, and the revision of the plans: no message names a model or a member. */
        begin_array(parameters, TEXT_TYPE, 0);
        begin_parameter(parameters);
        put_number(parameters, 0, 4);
        static const int lists[] = {
            TEXT_TYPE, INT4_TYPE, TEXT_TYPE, TEXT_TYPE, INT8_TYPE, INT4_TYPE, INT4_TYPE, INT4_TYPE
        };
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            begin_array(parameters, lists[i], 0);
        }
    }
    begin_parameter(parameters);
    put_number(parameters, buckets_revision, 4);
    PGresult *result = execute(lane, has_keys ? "count_keyed_batch" : "count_batch");
    const int column = PQfnumber(result, "counts");
    if (PQgetlength(result, 0, column) != ARRAY_HEADER_LENGTH + 12 * count
        || !PQgetisnull(result, 0, PQfnumber(result, "usage_rows"))) {
        fail("the statement", "not every user was counted, or a user's entitlement has changed");
    }
    const char *counted = PQgetvalue(result, 0, column) + ARRAY_HEADER_LENGTH + 4;
    for (int i = 0; i < count; i++, counted += 12) {
        const struct group *group = &groups[(get_int(counted) & 0xffff) - 1];
        note_count(group, get_int(counted + 4), user_of(group)->limit);
    }
    PQclear(result);
}

static void must_succeed(const struct lane *lane, PGresult *result)
{
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail("preparing the session", PQerrorMessage(lane->database));
    }
    PQclear(result);
}

static void prepare_query(struct lane *lane, const char *name)
{
    char path[4096], sql[4096] = "";
    snprintf(path, sizeof path, "%s/%s.sql", queries, name);
    FILE *file = fopen(path, "r");
    if (file == NULL || fread(sql, 1, sizeof sql - 1, file) == 0) {
        fail("reading", path);
    }
    fclose(file);
    must_succeed(lane, PQprepare(lane->database, name, sql, 0, NULL));
}

static void read_users(struct lane *lane)
{
    PGresult *result = PQexec(lane->database, USERS);
    user_count = PQntuples(result);
    if (user_count == 0) {
        fail("reading the users", PQerrorMessage(lane->database));
    }
    users = calloc((size_t)user_count, sizeof *users);
    for (int row = 0; row < user_count; row++) {
        users[row].entitlement_version = atoll(PQgetvalue(result, row, 0));
        users[row].limit = atoi(PQgetvalue(result, row, 1));
    }
    snprintf(period, sizeof period, "%s", PQgetvalue(result, 0, 2));
    buckets_revision = atoi(PQgetvalue(result, 0, 3));
    PQclear(result);
}

static void prepare_headroom(struct lane *lane)
{
    if (users == NULL) {
        read_users(lane);
    }
    prepare_query(lane, "count_batch");
    prepare_query(lane, "count_keyed_batch");
    prepare_query(lane, "open_lane");
    struct parameters *parameters = begin_parameters(lane);
    begin_parameter(parameters);
    put_number(parameters, 0, 2);
    if (getrandom(lane->uuid, sizeof lane->uuid, 0) != sizeof lane->uuid) {
        fail("getrandom", "no bytes");
    }
    begin_parameter(parameters);
    put(parameters, lane->uuid, sizeof lane->uuid);
    PQclear(execute(lane, "open_lane"));
}

/* Lanes */

/* Counts a batch with one statement. One user's requests are one row; users ascend, so that lanes lock rows in the same
 * order. If the requests have keys, of which a statement takes one for each user, the user's others are left out. */
static void count_batch(struct lane *lane, int count)
{
    struct request *sorted[BATCH_MAXIMUM];
    struct group groups[BATCH_MAXIMUM];
    int group_count = 0;
    const bool has_keys = reply_to(&lane->batch[0])->has_key;
    for (int i = 0; i < count; i++) {
        sorted[i] = &lane->batch[i];
        if (reply_to(sorted[i])->has_key != has_keys) {
            fail("a batch", "only some of its requests have keys");
        }
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_user);
    for (int i = 0; i < count; i++) {
        if (i == 0 || memcmp(sorted[i - 1]->user, sorted[i]->user, sizeof sorted[i]->user) != 0) {
            groups[group_count++] = (struct group){.requests = &sorted[i], .count = 1};
        } else if (!has_keys) {
            groups[group_count - 1].count++;
        }
    }
    if (queries != NULL) {
        count_with_headroom(lane, groups, group_count, has_keys);
    } else {
        count_with_update(lane, groups, group_count);
    }
}

/* Requests that were read together are together in the batch, so that most connections get one write. */
static void answer_batch(struct lane *lane, int count)
{
    lane->left_out = 0;
    for (int i = 0; i < count;) {
        struct connection *connection = lane->batch[i].connection;
        pthread_mutex_lock(&connection->lock);
        for (; i < count && lane->batch[i].connection == connection; i++) {
            if (lane->batch[i].used == 0) {
                lane->batch[lane->left_out++] = lane->batch[i];
                continue;
            }
            struct reply *reply = reply_to(&lane->batch[i]);
            reply->used = lane->batch[i].used;
            reply->limit = lane->batch[i].limit;
            reply->is_counted = true;
        }
        write_replies(lane, connection);
        release(connection);
    }
}

static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    for (;;) {
        const int count = take_batch(lane);
        count_batch(lane, count);
        answer_batch(lane, count);
    }
    return NULL;
}

static void start_lane(const char *conninfo)
{
    struct lane *lane = calloc(1, sizeof *lane);
    lane->database = PQconnectdb(conninfo);
    if (PQstatus(lane->database) != CONNECTION_OK) {
        fail("connecting", PQerrorMessage(lane->database));
    }
    must_succeed(lane, PQexec(lane->database, queries != NULL ? HEADROOM_SETTINGS : SETTINGS));
    if (queries != NULL) {
        prepare_headroom(lane);
    } else {
        must_succeed(lane, PQprepare(lane->database, "count", STATEMENT, 0, NULL));
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_lane, lane) != 0) {
        fail("a lane", "no thread");
    }
}

/* The reader */

static const size_t CONSUME_LENGTH = sizeof CONSUME - 1 + USER_TEXT_LENGTH + 2;
static const size_t KEYED_LENGTH = sizeof CONSUME - 1 + USER_TEXT_LENGTH + 2 + sizeof KEY - 1 + KEY_LENGTH + 2;

/* The length of the CONSUME with which the text begins; 0 if it begins with no complete one. */
static size_t consume_length(const char *text, size_t length)
{
    if (length >= CONSUME_LENGTH && memcmp(text, CONSUME, sizeof CONSUME - 1) == 0) {
        return CONSUME_LENGTH;
    }
    const bool has_key = queries != NULL && length >= KEYED_LENGTH
        && memcmp(text, KEYED_CONSUME, sizeof KEYED_CONSUME - 1) == 0
        && memcmp(text + CONSUME_LENGTH, KEY, sizeof KEY - 1) == 0;
    return has_key ? KEYED_LENGTH : 0;
}

/* The length of the first request, an array; 0 until it is complete. */
static size_t request_length(const char *text, size_t length)
{
    const size_t consume = consume_length(text, length);
    if (consume > 0) {
        return consume;
    }
    /* Each word has a line with its length; words of the benchmark's requests contain no line ends. */
    const char *end = text;
    for (long lines = 1 + 2 * strtol(text + 1, NULL, 10); lines > 0; lines--) {
        end = memchr(end, '\n', length - (size_t)(end - text));
        if (end == NULL) {
            return 0;
        }
        end++;
    }
    return (size_t)(end - text);
}

static unsigned char hex_value(char digit)
{
    /* Letters have bit 6, and end in 1 to 6. */
    return (unsigned char)((digit & 15) + 9 * (digit >> 6));
}

static void take_request(struct connection *connection, const char *text, size_t length)
{
    if (connection->received - connection->answered == IN_FLIGHT_MAXIMUM || read_count == WAITING_MAXIMUM) {
        fail("the reader", "too many requests are in flight");
    }
    struct request *request = &read_requests[read_count++];
    request->connection = connection;
    request->position = connection->received++;
    struct reply *reply = reply_to(request);
    const char *user = text + sizeof CONSUME - 1;
    memcpy(reply->user, user, USER_TEXT_LENGTH);
    reply->has_key = length == KEYED_LENGTH;
    if (reply->has_key) {
        memcpy(reply->key, text + CONSUME_LENGTH + sizeof KEY - 1, KEY_LENGTH);
    }
    for (int i = 0; i < 16; i++, user += 2) {
        user += *user == '-';
        request->user[i] = (unsigned char)(hex_value(user[0]) << 4 | hex_value(user[1]));
    }
}

/* Takes the complete requests out of a connection's input. The connection is locked. */
static void take_requests(struct connection *connection)
{
    size_t from = 0, length;
    while (from < connection->input_length
        && (length = request_length(connection->input + from, connection->input_length - from)) > 0) {
        const char *request = connection->input + from;
        from += length;
        if (consume_length(request, length) > 0) {
            take_request(connection, request, length);
        } else {
            /* The load generators send others only before the first CONSUME, so no reply is due before this one. */
            const bool is_ping = length == sizeof PING - 1 && memcmp(request, PING, length) == 0;
            const char *reply = is_ping ? "+PONG\r\n" : "-UNKNOWN the ceiling knows CONSUME and PING\r\n";
            send_bytes(connection, reply, strlen(reply));
        }
    }
    connection->input_length -= from;
    memmove(connection->input, connection->input + from, connection->input_length);
}

static void receive(int poll, struct connection *connection)
{
    const ssize_t count = read(connection->socket, connection->input + connection->input_length,
        sizeof connection->input - connection->input_length);
    if (count > 0) {
        connection->input_length += (size_t)count;
        pthread_mutex_lock(&connection->lock);
        take_requests(connection);
    } else {
        epoll_ctl(poll, EPOLL_CTL_DEL, connection->socket, NULL);
        pthread_mutex_lock(&connection->lock);
        connection->is_closed = true;
    }
    release(connection);
}

/* Once for all that was ready: a lane that began with the first request would have a small batch. */
static void append_to_waiting(void)
{
    pthread_mutex_lock(&waiting_lock);
    if (waiting_count + read_count > WAITING_MAXIMUM) {
        fail("the reader", "too many requests wait");
    }
    memcpy(waiting + waiting_count, read_requests, (size_t)read_count * sizeof *waiting);
    waiting_count += read_count;
    pthread_cond_signal(&some_wait);
    pthread_mutex_unlock(&waiting_lock);
    read_count = 0;
}

static void accept_connection(int poll, int listener)
{
    struct connection *connection = calloc(1, sizeof *connection);
    connection->socket = accept(listener, NULL, NULL);
    if (connection->socket < 0) {
        fail("accept", "no connection");
    }
    pthread_mutex_init(&connection->lock, NULL);
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(poll, EPOLL_CTL_ADD, connection->socket, &event);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: ceiling PORT CONNINFO [QUERIES]\n");
        return 2;
    }
    queries = argv[3];
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < LANES; i++) {
        start_lane(argv[2]);
    }
    const int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1024) != 0) {
        fail("listen", argv[1]);
    }
    struct epoll_event listening = {.events = EPOLLIN}, ready[256];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &listening);
    for (;;) {
        const int count = epoll_wait(poll, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.ptr == NULL) {
                accept_connection(poll, listener);
            } else {
                receive(poll, ready[i].data.ptr);
            }
        }
        if (read_count > 0) {
            append_to_waiting();
        }
    }
}
