#!/bin/bash
# Runs once, when the image of PostgreSQL makes the database; the image reads it into its own shell, which ends at the first failure.
# The service's login may count, and change neither the schema nor tokens. The rights of headroom_service come with `headroom migrate`.
# deploy/compose/compose.yml uses this file, too.
(
    BACKEND_PASSWORD=${BACKEND_PASSWORD:-$(cat "$BACKEND_PASSWORD_FILE")}
    # In the environment, because arguments are visible in the list of processes.
    export BACKEND_PASSWORD
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
\getenv login BACKEND_USER
\getenv password BACKEND_PASSWORD
create role headroom_service nologin;
create role :"login" login password :'password';
grant headroom_service to :"login";
SQL
)
