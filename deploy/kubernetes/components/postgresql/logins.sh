#!/bin/sh
# Runs once, when the image makes the database. The service's login may count, and change neither the schema nor tokens; the roles'
# rights come with `headroom migrate`.
set -eu

psql --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
    --set=login="$BACKEND_USER" --set=password="${BACKEND_PASSWORD:-$(cat "${BACKEND_PASSWORD_FILE:-/dev/null}")}" <<'SQL'
create role headroom_service nologin;
create role :"login" login password :'password';
grant headroom_service to :"login";
SQL
